// SPDX-License-Identifier: Apache-2.0
/* libsyncline_level_zero.so, the half that keeps what a program asks of its devices through Level
 * Zero until the devices have done it (level_zero_work.c). The other half (level_zero.c) hears the
 * program's calls from the loader's tracing layer.
 *
 * A kernel says when it ran in an event of a pool with timestamps: the program's own where it gives
 * one, else one of ours. Of a command list that is executed again and again each execution is work
 * of its own, asked for by that execution.
 *
 * Threads: any; one lock guards it all. The program's events are only ever read.
 */
#ifndef SYNCLINE_INSTRUMENTATION_DEVICE_LEVEL_ZERO_H_
#define SYNCLINE_INSTRUMENTATION_DEVICE_LEVEL_ZERO_H_

#include <level_zero/ze_api.h>
#include <stdint.h>

#include "instrumentation/device/device.h"

#define LEVEL_ZERO "Level Zero"

/* The loader's functions that are called here. */
struct level_zero_calls {
  ze_result_t (*kernel_name)(ze_kernel_handle_t, size_t*, char*);
  ze_result_t (*pool_create)(ze_context_handle_t, const ze_event_pool_desc_t*, uint32_t,
                             ze_device_handle_t*, ze_event_pool_handle_t*);
  ze_result_t (*pool_destroy)(ze_event_pool_handle_t);
  ze_result_t (*event_create)(ze_event_pool_handle_t, const ze_event_desc_t*, ze_event_handle_t*);
  ze_result_t (*event_destroy)(ze_event_handle_t);
  ze_result_t (*event_reset)(ze_event_handle_t);
  ze_result_t (*event_status)(ze_event_handle_t);
  ze_result_t (*event_times)(ze_event_handle_t, ze_kernel_timestamp_result_t*);
  ze_result_t (*device_properties)(ze_device_handle_t, ze_device_properties_t*);
  ze_result_t (*device_times)(ze_device_handle_t, uint64_t*, uint64_t*);
};

/* Once, before all others. */
DEVICE_HIDDEN void LevelZeroUses(const struct level_zero_calls* calls);
/* Whether commands are recorded from now on. */
DEVICE_HIDDEN void LevelZeroRecords(int on);

DEVICE_HIDDEN void LevelZeroQueueIsMade(ze_command_queue_handle_t queue);
DEVICE_HIDDEN void LevelZeroQueueEnds(ze_command_queue_handle_t queue);
DEVICE_HIDDEN void LevelZeroListIsMade(ze_command_list_handle_t list, ze_context_handle_t context,
                                       ze_device_handle_t device, int immediate);
/* `gone`: it is destroyed, else made empty. */
DEVICE_HIDDEN void LevelZeroListIsEmptied(ze_command_list_handle_t list, int gone);

struct level_zero_command;
/* A command is about to be put into a list; NULL: it is not recorded. `name`: NULL of a kernel.
 * `*event`, which it will signal, may be set where the program gives none. */
DEVICE_HIDDEN struct level_zero_command* LevelZeroAppends(ze_command_list_handle_t list,
                                                          enum syncline_device_kind kind,
                                                          const char* name,
                                                          ze_kernel_handle_t kernel, uint64_t bytes,
                                                          ze_event_handle_t* event);
DEVICE_HIDDEN void LevelZeroAppended(ze_command_list_handle_t list,
                                     struct level_zero_command* command, int well);
/* Around the execution of lists that are not immediate. */
DEVICE_HIDDEN void LevelZeroExecutes(ze_command_queue_handle_t queue, uint32_t count,
                                     const ze_command_list_handle_t* lists);
DEVICE_HIDDEN void LevelZeroExecuted(uint32_t count, const ze_command_list_handle_t* lists,
                                     int well);
/* Whether events of this pool are not to be read. */
DEVICE_HIDDEN void LevelZeroLeavesPool(ze_event_pool_handle_t pool, int is_left);
DEVICE_HIDDEN void LevelZeroEventIsMade(ze_event_pool_handle_t pool, ze_event_handle_t event);
/* The program takes its event back (resets or, `gone`, destroys it): what it says is read now, or
 * lost. */
DEVICE_HIDDEN void LevelZeroEventEnds(ze_event_handle_t event, int gone);
/* Something else than a kept command signals it, or resets it on the device: what it says is not
 * believed from now on. NULL: there is none. */
DEVICE_HIDDEN void LevelZeroSignalsToo(ze_event_handle_t event);
/* With all that is in it. */
DEVICE_HIDDEN void LevelZeroContextEnds(ze_context_handle_t context);
/* Reads what is done. How much is not, or is not told yet. */
DEVICE_HIDDEN uint32_t LevelZeroRead(void);
/* The process ends: reads what is done, and calls nothing any more. */
DEVICE_HIDDEN void LevelZeroEnds(void);
/* In a forked child, where Level Zero is of no use: nothing is called there. */
DEVICE_HIDDEN void LevelZeroIsForked(void);

#endif /* SYNCLINE_INSTRUMENTATION_DEVICE_LEVEL_ZERO_H_ */

// SPDX-License-Identifier: Apache-2.0
/* A program on the driver that fake_level_zero.c is, below the loader of the system.
 *
 *   level_zero_program FOLDER [old | cost | TORCH]
 *
 * Three threads. In a step two of them copy, fill, and launch a kernel in each of the tasks
 * "multiply" and "add", named after the task and the thread, on an immediate list; "add" signals an
 * event of the program's, which waits for it and resets it. The third puts the same into a list
 * that it executes on a queue, twice, and empties. It goes on until FOLDER/stop is there; then it
 * destroys all it has. Exit status 3: the program got other than it asked for. old: the third also
 * executes a list that was made before any recording, and signals an event that other processes may
 * open. cost: it does nothing but say what a launch
 * takes, until FOLDER/stop is there. TORCH: a library to be loaded first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <level_zero/ze_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "syncline/annotate.h"

static char stop[4200];
static ze_context_handle_t context;
static ze_device_handle_t device;
static ze_module_handle_t module;

static void Must(ze_result_t result) {
  if (result == ZE_RESULT_SUCCESS) return;
  fprintf(stderr, "level_zero_program: error %x\n", (unsigned)result);
  exit(3);
}

static ze_kernel_handle_t Kernel(const char* name) {
  const ze_kernel_desc_t of = {.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = name};
  ze_kernel_handle_t kernel;
  Must(zeKernelCreate(module, &of, &kernel));
  return kernel;
}

/* Made before the first step; NULL: there is none. */
static ze_command_list_handle_t old;
static ze_event_handle_t shared; /* with other processes */

static void MakeOld(void) {
  const ze_event_pool_desc_t of_pool = {
      .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = ZE_EVENT_POOL_FLAG_IPC, .count = 1};
  const ze_event_desc_t of_event = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC};
  ze_event_pool_handle_t pool;
  Must(zeEventPoolCreate(context, &of_pool, 1, &device, &pool));
  Must(zeEventCreate(pool, &of_event, &shared));
  const ze_group_count_t groups = {1, 1, 1};
  const ze_command_list_desc_t of = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
  Must(zeCommandListCreate(context, device, &of, &old));
  Must(zeCommandListAppendLaunchKernel(old, Kernel("old:50"), &groups, NULL, 0, NULL));
  Must(zeCommandListClose(old));
}

static uint64_t Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int Compare(const void* a, const void* b) {
  return *(const uint64_t*)a < *(const uint64_t*)b ? -1 : 1;
}

static void Cost(void) {
  enum { kLaunches = 5000 };
  static uint64_t took_ns[kLaunches];
  const ze_group_count_t groups = {1, 1, 1};
  const ze_command_queue_desc_t of = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
  ze_kernel_handle_t kernel = Kernel("empty:0");
  ze_command_list_handle_t list;
  Must(zeCommandListCreateImmediate(context, device, &of, &list));
  while (access(stop, F_OK) != 0) {
    for (int i = 0; i < kLaunches; i++) {
      const uint64_t begin_ns = Now();
      Must(zeCommandListAppendLaunchKernel(list, kernel, &groups, NULL, 0, NULL));
      took_ns[i] = Now() - begin_ns;
      if (i % 100 == 0) usleep(1000);
    }
    qsort(took_ns, kLaunches, sizeof *took_ns, Compare);
    printf("a launch: %llu ns (median)\n", (unsigned long long)took_ns[kLaunches / 2]);
    fflush(stdout);
  }
}

static void* Work(void* number_as_pointer) {
  static const char* const kMultiply[] = {"multiply_0:300", "multiply_1:300", "multiply_2:300"};
  static const char* const kAdd[] = {"add_0:100", "add_1:100", "add_2:100"};
  const unsigned number = (unsigned)(uintptr_t)number_as_pointer;
  const int immediate = number < 2;
  const ze_group_count_t groups = {1, 1, 1};
  ze_kernel_handle_t multiply = Kernel(kMultiply[number]);
  ze_kernel_handle_t add = Kernel(kAdd[number]);
  const ze_command_queue_desc_t of_queue = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
  const ze_command_list_desc_t of_list = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
  ze_command_queue_handle_t queue = NULL;
  ze_command_list_handle_t list;
  if (immediate) {
    Must(zeCommandListCreateImmediate(context, device, &of_queue, &list));
  } else {
    Must(zeCommandQueueCreate(context, device, &of_queue, &queue));
    Must(zeCommandListCreate(context, device, &of_list, &list));
  }
  const ze_event_pool_desc_t of_pool = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .count = 1};
  const ze_event_desc_t of_event = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC};
  ze_event_pool_handle_t pool;
  ze_event_handle_t event;
  Must(zeEventPoolCreate(context, &of_pool, 1, &device, &pool));
  Must(zeEventCreate(pool, &of_event, &event));
  char bytes[64];
  for (uint64_t step = 0; access(stop, F_OK) != 0; step++) {
    syncline_step_begin(step);
    Must(zeCommandListAppendMemoryCopy(list, bytes, bytes + 32, 32, NULL, 0, NULL));
    Must(zeCommandListAppendMemoryFill(list, bytes, "", 1, 64, immediate ? NULL : shared, 0, NULL));
    if (zeCommandListAppendLaunchKernel(list, add, NULL, event, 0, NULL) == ZE_RESULT_SUCCESS) {
      exit(3); /* the driver refuses it */
    }
    syncline_phase_begin("multiply");
    Must(zeCommandListAppendLaunchKernel(list, multiply, &groups, NULL, 0, NULL));
    syncline_phase_end();
    syncline_phase_begin("add");
    Must(zeCommandListAppendLaunchKernel(list, add, &groups, event, 0, NULL));
    syncline_phase_end();
    if (immediate) {
      Must(zeEventHostSynchronize(event, UINT64_MAX));
      Must(zeEventHostReset(event));
    } else {
      Must(zeCommandListClose(list));
      for (int i = 0; i < 2; i++) {
        syncline_phase_begin("execute");
        Must(zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
        syncline_phase_end();
        Must(zeCommandQueueSynchronize(queue, UINT64_MAX));
        Must(zeEventHostReset(event));
      }
      Must(zeCommandListReset(list));
      if (old) Must(zeCommandQueueExecuteCommandLists(queue, 1, &old, NULL));
    }
    syncline_step_end();
    usleep(2000);
  }
  Must(zeEventDestroy(event));
  Must(zeEventPoolDestroy(pool));
  Must(zeCommandListDestroy(list));
  return NULL;
}

int main(int count, char** arguments) {
  if (count < 2) return 2;
  snprintf(stop, sizeof stop, "%s/stop", arguments[1]);
  const char* how = count > 2 ? arguments[2] : "";
  if (strchr(how, '/') && !dlopen(arguments[2], RTLD_NOW)) return 2;
  Must(zeInit(0));
  uint32_t one = 1;
  ze_driver_handle_t driver;
  Must(zeDriverGet(&one, &driver));
  Must(zeDeviceGet(driver, &one, &device));
  const ze_context_desc_t of_context = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
  const ze_module_desc_t of_module = {.stype = ZE_STRUCTURE_TYPE_MODULE_DESC};
  Must(zeContextCreate(driver, &of_context, &context));
  Must(zeModuleCreate(context, device, &of_module, &module, NULL));
  if (strcmp(how, "old") == 0) MakeOld();
  if (strcmp(how, "cost") == 0) Cost();
  pthread_t threads[3];
  for (uintptr_t i = 0; i < 3; i++) pthread_create(&threads[i], NULL, Work, (void*)i);
  char ready[4200];
  snprintf(ready, sizeof ready, "%s/ready", arguments[1]);
  fclose(fopen(ready, "w"));
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  Must(zeContextDestroy(context));
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* libsyncline_level_zero.so: a device's clock, and events of our own that it stamps. The caller
 * holds the lock of level_zero_work.c. */
#ifndef SYNCLINE_INSTRUMENTATION_DEVICE_LEVEL_ZERO_EVENTS_H_
#define SYNCLINE_INSTRUMENTATION_DEVICE_LEVEL_ZERO_EVENTS_H_

#include "instrumentation/device/level_zero.h"

DEVICE_HIDDEN extern struct level_zero_calls level_zero;

/* Where a handle is looked for. */
#define LEVEL_ZERO_BUCKETS 1024
DEVICE_HIDDEN size_t LevelZeroBucket(const void* handle);

/* A set of handles. */
struct level_zero_set {
  struct level_zero_member* members[LEVEL_ZERO_BUCKETS];
};
DEVICE_HIDDEN int LevelZeroHas(struct level_zero_set* set, const void* handle);
/* Puts it there, or (`is_member` is 0) takes it out. */
DEVICE_HIDDEN void LevelZeroPut(struct level_zero_set* set, const void* handle, int is_member);

struct level_zero_device {
  struct level_zero_device* next;
  ze_device_handle_t handle;
  uint64_t mask; /* of a kernel's stamps, which wrap */
  double tick_ns;
  double turn_ns;     /* after so long a stamp comes again */
  uint64_t ppm;       /* how far the clock may be off its rate */
  uint64_t paired_ns; /* when it was compared with ours; 0: never */
  uint64_t half_ns;   /* that is within so much of the truth */
  uint64_t ticks;     /* what it was then */
  char name[64];
};

/* NULL: it says nothing of its clock. */
DEVICE_HIDDEN struct level_zero_device* LevelZeroDeviceOf(ze_device_handle_t handle);

/* In the trace clock, each within `bound_ns` of the truth; and in the device's. */
struct level_zero_span {
  uint64_t begin_ns;
  uint64_t end_ns;
  uint64_t bound_ns;
  uint64_t begin_ticks;
  uint64_t end_ticks;
};
/* Where what the event says lies, which is less than half a turn of the device's clock ago. -1: it
 * cannot be told. */
DEVICE_HIDDEN int LevelZeroPlace(struct level_zero_device* device, ze_event_handle_t event,
                                 struct level_zero_span* span);

/* How far `later` is behind `earlier` on the device's clock, less than half a turn away. */
DEVICE_HIDDEN int64_t LevelZeroTicksFrom(const struct level_zero_device* device, uint64_t earlier,
                                         uint64_t later);

struct level_zero_own_event {
  struct level_zero_own_event* next;
  ze_event_handle_t handle;
  struct level_zero_pool* pool;
};
/* NULL: there is none left. */
DEVICE_HIDDEN struct level_zero_own_event* LevelZeroTakeEvent(ze_context_handle_t context,
                                                              ze_device_handle_t device);
/* It may be taken again. Not for one that may yet be signalled. */
DEVICE_HIDDEN void LevelZeroGiveBack(struct level_zero_own_event* event);
/* All events of this context end. */
DEVICE_HIDDEN void LevelZeroEndPools(ze_context_handle_t context);

#endif /* SYNCLINE_INSTRUMENTATION_DEVICE_LEVEL_ZERO_EVENTS_H_ */

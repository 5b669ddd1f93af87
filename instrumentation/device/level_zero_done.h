// SPDX-License-Identifier: Apache-2.0
/* libsyncline_level_zero.so: what a device has done, until it is told in the device's order. What
 * it did one after the other does not overlap then, though its clock and ours were compared anew in
 * between. Threads: any. */
#ifndef SYNCLINE_INSTRUMENTATION_DEVICE_LEVEL_ZERO_DONE_H_
#define SYNCLINE_INSTRUMENTATION_DEVICE_LEVEL_ZERO_DONE_H_

#include "instrumentation/device/level_zero_events.h"

struct level_zero_done {
  const struct level_zero_device* device;
  enum syncline_device_kind kind;
  uint32_t queue; /* no other one of the process has this number */
  int immediate;  /* it is an immediate list */
  uint64_t bytes;
  uint64_t launch;
  struct level_zero_span span;
  const char* name; /* it is copied */
};
/* 0, or -1: there is no memory. */
DEVICE_HIDDEN int LevelZeroIsDone(const struct level_zero_done* done);
/* Of all that was done before a time, in each queue's order: what was done later may have come
 * before something that is not yet known to be done. Returns how many are left. */
DEVICE_HIDDEN size_t LevelZeroTell(uint64_t before_ns);

#endif /* SYNCLINE_INSTRUMENTATION_DEVICE_LEVEL_ZERO_DONE_H_ */

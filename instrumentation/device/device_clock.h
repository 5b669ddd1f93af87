// SPDX-License-Identifier: Apache-2.0
/* Which clock a driver stamps its device's work with, and its stamps in the trace clock
 * (CLOCK_MONOTONIC). No driver says which; but it stamps when a command was put into its queue, and
 * that was during our call: the clock is the one by which it was. */
#ifndef SYNCLINE_INSTRUMENTATION_DEVICE_DEVICE_CLOCK_H_
#define SYNCLINE_INSTRUMENTATION_DEVICE_DEVICE_CLOCK_H_

#include <stdint.h>

#define DEVICE_CLOCKS 4
/* All clocks at about one time, ns: CLOCK_MONOTONIC, _MONOTONIC_RAW, _REALTIME, _BOOTTIME. */
struct device_times {
  uint64_t ns[DEVICE_CLOCKS];
};
void device_times_now(struct device_times* now);

/* The clock, an index into device_times.ns, by which `stamp` lies between the two; -1: none, or
 * several that differ. */
int device_clock_of(uint64_t stamp, const struct device_times* before,
                    const struct device_times* after);

/* `stamp` of that clock in CLOCK_MONOTONIC, by what both clocks are now. */
struct device_placed {
  uint64_t ns;
  uint64_t bound_ns; /* it is within so much of the truth */
};
struct device_placed device_clock_place(int clock, uint64_t stamp);

#endif /* SYNCLINE_INSTRUMENTATION_DEVICE_DEVICE_CLOCK_H_ */

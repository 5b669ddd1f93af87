// SPDX-License-Identifier: Apache-2.0
/* Which clock a driver stamps its device's work with, and its stamps in the trace clock
 * (CLOCK_MONOTONIC). No driver says which; but it stamps when a command was put into its queue, and
 * that was during our call: the clock is one by which it was. */
#ifndef SYNCLINE_INSTRUMENTATION_DEVICE_DEVICE_CLOCK_H_
#define SYNCLINE_INSTRUMENTATION_DEVICE_DEVICE_CLOCK_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DEVICE_CLOCKS 4
#define DEVICE_ALL_CLOCKS ((1u << DEVICE_CLOCKS) - 1)
/* All clocks at about one time, ns: CLOCK_MONOTONIC, _MONOTONIC_RAW, _REALTIME, _BOOTTIME. */
struct device_times {
  uint64_t ns[DEVICE_CLOCKS];
};
void device_times_now(struct device_times* now);

/* The clocks by which `stamp` lies between the two: a bit of each. Clocks that differ by less than
 * the call took cannot be told apart by it. */
uint32_t device_clocks_of(uint64_t stamp, const struct device_times* before,
                          const struct device_times* after);

/* `stamp` of one of `clocks`, nobody knows which, in CLOCK_MONOTONIC, by what they are now. */
struct device_placed {
  uint64_t ns;
  uint64_t bound_ns; /* it is within so much of the truth, by whichever of them */
};
struct device_placed device_clock_place(uint32_t clocks, uint64_t stamp);

#ifdef __cplusplus
}
#endif

#endif /* SYNCLINE_INSTRUMENTATION_DEVICE_DEVICE_CLOCK_H_ */

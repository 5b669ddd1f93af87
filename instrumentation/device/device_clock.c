// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "instrumentation/device/device_clock.h"

#include <time.h>

/* Clocks are slewed by at most so much (NTP's limit, in the kernel). */
#define SLEW_PPM 500u

static const clockid_t kClocks[DEVICE_CLOCKS] = {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW,
                                                 CLOCK_REALTIME, CLOCK_BOOTTIME};

static uint64_t Now(int clock) {
  struct timespec now = {0, 0};
  clock_gettime(kClocks[clock], &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void device_times_now(struct device_times* now) {
  for (int i = 0; i < DEVICE_CLOCKS; i++) now->ns[i] = Now(i);
}

uint32_t device_clocks_of(uint64_t stamp, const struct device_times* before,
                          const struct device_times* after) {
  uint32_t found = 0;
  for (int i = 0; i < DEVICE_CLOCKS; i++) {
    if (stamp >= before->ns[i] && stamp <= after->ns[i]) found |= 1u << i;
  }
  return found;
}

static struct device_placed PlaceBy(int clock, uint64_t stamp) {
  if (clock == 0) return (struct device_placed){stamp, 0};
  const uint64_t first = Now(0);
  const uint64_t theirs = Now(clock);
  const uint64_t last = Now(0);
  const uint64_t age = theirs > stamp ? theirs - stamp : stamp - theirs;
  const uint64_t bound = (last - first + 1) / 2 + age / 1000000u * SLEW_PPM + SLEW_PPM;
  /* The middle of the bracket is `theirs`. Unsigned: differences wrap around rightly. */
  return (struct device_placed){first + (last - first) / 2 - theirs + stamp, bound};
}

struct device_placed device_clock_place(uint32_t clocks, uint64_t stamp) {
  struct device_placed placed = {0, 0};
  int first = 1;
  for (int i = 0; i < DEVICE_CLOCKS; i++) {
    if (!(clocks >> i & 1)) continue;
    const struct device_placed by = PlaceBy(i, stamp);
    if (first) placed = by;
    first = 0;
    const uint64_t apart = by.ns > placed.ns ? by.ns - placed.ns : placed.ns - by.ns;
    if (apart + by.bound_ns > placed.bound_ns) placed.bound_ns = apart + by.bound_ns;
  }
  return placed;
}

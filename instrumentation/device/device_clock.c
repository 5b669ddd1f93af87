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

int device_clock_of(uint64_t stamp, const struct device_times* before,
                    const struct device_times* after) {
  int found = -1;
  for (int i = 0; i < DEVICE_CLOCKS; i++) {
    if (stamp < before->ns[i] || stamp > after->ns[i]) continue;
    /* CLOCK_BOOTTIME is CLOCK_MONOTONIC until the machine sleeps: then either will do. */
    const uint64_t apart = found < 0                           ? 0
                           : before->ns[i] > before->ns[found] ? before->ns[i] - before->ns[found]
                                                               : before->ns[found] - before->ns[i];
    if (apart > 1000) return -1;
    if (found < 0) found = i;
  }
  return found;
}

struct device_placed device_clock_place(int clock, uint64_t stamp) {
  if (clock == 0) return (struct device_placed){stamp, 0};
  const uint64_t first = Now(0);
  const uint64_t theirs = Now(clock);
  const uint64_t last = Now(0);
  const uint64_t age = theirs > stamp ? theirs - stamp : stamp - theirs;
  const uint64_t bound = (last - first + 1) / 2 + age / 1000000u * SLEW_PPM + 1;
  /* The middle of the bracket is `theirs`. Unsigned: differences wrap around rightly. */
  return (struct device_placed){first + (last - first) / 2 - theirs + stamp, bound};
}

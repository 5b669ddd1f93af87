// SPDX-License-Identifier: Apache-2.0
/* CLOCK_MONOTONIC, ns. */
#ifndef SYNCLINE_INSTRUMENTATION_BLOCK_MONOTONIC_H_
#define SYNCLINE_INSTRUMENTATION_BLOCK_MONOTONIC_H_

#include <stdint.h>
#include <time.h>

static inline uint64_t syncline_monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif /* SYNCLINE_INSTRUMENTATION_BLOCK_MONOTONIC_H_ */

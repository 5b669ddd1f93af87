// SPDX-License-Identifier: Apache-2.0
/* What the programs of docs/annotate.md call their own; included before them. */
#ifndef SYNCLINE_TESTS_ANNOTATE_JOB_H_
#define SYNCLINE_TESTS_ANNOTATE_JOB_H_

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The first one says that the loop has begun. Ends when $JOB_UNTIL is there. */
static inline int more_steps(void) {
  static int begun;
  if (!begun) fclose(fopen(getenv("JOB_READY"), "w"));
  begun = 1;
  return access(getenv("JOB_UNTIL"), F_OK) != 0;
}
static inline void load_batch(void) { usleep(2000); }
static inline void train(void) { usleep(4000); }

/* Where the program is a part without main: two threads, three batches in flight. */
#ifdef __cplusplus
extern "C" {
#endif
double batches_in_flight(void);
void batch_requested(uint64_t batch);
void batch_arrived(uint64_t batch);
#ifdef __cplusplus
}
#endif

#endif /* SYNCLINE_TESTS_ANNOTATE_JOB_H_ */

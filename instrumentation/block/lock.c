// SPDX-License-Identifier: Apache-2.0
/* The lock of the process's data. Who holds it waits for nobody; only a fork holds it while others'
 * fork handlers run. */
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>

#include "instrumentation/block/internal.h"

#define SECOND_NS 1000000000
#define LOOK_AGAIN_NS 1000000 /* whether a fork holds the lock */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int forking; /* a fork holds it */

void syncline_lock(void) { pthread_mutex_lock(&mutex); }
void syncline_unlock(void) { pthread_mutex_unlock(&mutex); }

int syncline_lock_timed(pthread_mutex_t* which, long ns) {
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += (limit.tv_nsec + ns) / SECOND_NS;
  limit.tv_nsec = (limit.tv_nsec + ns) % SECOND_NS;
  return pthread_mutex_timedlock(which, &limit);
}
int syncline_lock_for(long ns) { return syncline_lock_timed(&mutex, ns); }

void syncline_fork_holds_lock(int holds) { forking = holds; }

int syncline_lock_unless_forking(void) {
  while (pthread_mutex_trylock(&mutex) != 0 && syncline_lock_for(LOOK_AGAIN_NS) != 0) {
    if (forking) return 0;
  }
  return 1;
}

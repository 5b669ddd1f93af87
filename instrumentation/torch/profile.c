// SPDX-License-Identifier: Apache-2.0
/* libsyncline_torch.so, for `syncline run --kineto` only: the thread that calls the hook's profiler
 * (syncline_kineto.py) when a recording begins or ends and when a piece is due. Its own, because a
 * profile's end takes seconds in which the other thread has things to do.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "instrumentation/block/block.h"
#include "instrumentation/torch/watch.h"

#define MS 1000000u
#define FLUSH_S 1

static struct {
  pthread_mutex_t mutex; /* held while the interpreter is called; guards `stopped` */
  int stopped;
  syncline_torch_profile_turn turn;
  int runs; /* a profile runs in this process */
  int ran;
  int exiting;
  sem_t flushed;
  pid_t owner;
} profile = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void* Watch(void* unused) {
  (void)unused;
  prctl(PR_SET_NAME, "syncline-kineto");
  for (;;) {
    const volatile uint32_t* gate = syncline_gate;
    const uint32_t value = *gate;
    pthread_mutex_lock(&profile.mutex);
    if (profile.stopped || __atomic_load_n(&profile.exiting, __ATOMIC_ACQUIRE)) break;
    const int sleep_ms = profile.turn(value);
    pthread_mutex_unlock(&profile.mutex);
    syncline_torch_wait(gate, value, (uint64_t)sleep_ms * MS);
  }
  pthread_mutex_unlock(&profile.mutex);
  return NULL;
}

static void* FlushAll(void* unused) {
  (void)unused;
  fflush(NULL);
  sem_post(&profile.flushed);
  return NULL;
}

/* What exit() does for C's streams, which takes no locks then: a thread that waits for input holds
 * its stream's. */
static void Flush(void) {
  FILE* const first[] = {stdout, stderr};
  for (int i = 0; i < 2; i++) {
    if (ftrylockfile(first[i]) != 0) continue;
    fflush_unlocked(first[i]);
    funlockfile(first[i]);
  }
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += FLUSH_S;
  sem_init(&profile.flushed, 0, 0);
  if (syncline_torch_thread(FlushAll) != 0) return;
  while (sem_timedwait(&profile.flushed, &until) != 0 && errno == EINTR) {
  }
}

/* The process ends by C's exit(). Python's own end has come before and left no profile running; but
 * when the program has called exit() itself, one runs: PyTorch's variables of this thread are gone
 * by now, so nobody can end it, and PyTorch's destructors would die of it. In a forked child
 * libkineto's destructor waits for a thread that is not there. Either ends here instead, with its
 * own status. */
static void AtExit(int status, void* unused) {
  (void)unused;
  if (getpid() == profile.owner && !__atomic_load_n(&profile.runs, __ATOMIC_ACQUIRE)) return;
  __atomic_store_n(&profile.exiting, 1, __ATOMIC_RELEASE);
  Flush();
  _exit(status);
}

SYNCLINE_EXPORT int syncline_torch_profile_start(syncline_torch_profile_turn turn) {
  if (!turn || profile.turn) return -1;
  profile.turn = turn;
  profile.owner = getpid();
  return syncline_torch_thread(Watch);
}

SYNCLINE_EXPORT void syncline_torch_profile_stop(void) {
  pthread_mutex_lock(&profile.mutex);
  profile.stopped = 1;
  pthread_mutex_unlock(&profile.mutex);
}

SYNCLINE_EXPORT void syncline_torch_profile_runs(int runs) {
  if (runs && !profile.ran) {
    profile.ran = 1;
    on_exit(AtExit, NULL); /* behind PyTorch's own, so before them */
  }
  __atomic_store_n(&profile.runs, runs, __ATOMIC_RELEASE);
}

SYNCLINE_EXPORT uint64_t syncline_torch_profile_events(void) { return syncline_events_count(); }

SYNCLINE_EXPORT void syncline_torch_profile_forked(void) {
  static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  profile.mutex = fresh;
  profile.stopped = 1;
}

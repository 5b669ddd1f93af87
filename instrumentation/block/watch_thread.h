// SPDX-License-Identifier: Apache-2.0
/* A thread of our own in the program, which sleeps on the gate. */
#ifndef SYNCLINE_INSTRUMENTATION_BLOCK_WATCH_THREAD_H_
#define SYNCLINE_INSTRUMENTATION_BLOCK_WATCH_THREAD_H_

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Until the gate is no longer `value`, somebody wakes those who wait on it, or the time is over; 0:
 * without a limit. */
static inline void SynclineGateWait(const volatile uint32_t* gate, uint32_t value,
                                    uint64_t limit_ns) {
  const struct timespec limit = {(time_t)(limit_ns / 1000000000u), (long)(limit_ns % 1000000000u)};
  syscall(SYS_futex, gate, FUTEX_WAIT, value, limit_ns ? &limit : NULL, NULL, 0);
}

/* 0, or -1. Nobody joins it, and no signal of the program's is handled by it. */
static inline int SynclineStartThread(void* (*body)(void*)) {
  sigset_t all, before;
  pthread_t thread;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return -1;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread, &attributes, body, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return error == 0 ? 0 : -1;
}

#endif /* SYNCLINE_INSTRUMENTATION_BLOCK_WATCH_THREAD_H_ */

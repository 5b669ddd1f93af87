// SPDX-License-Identifier: Apache-2.0
/* Scenario of itt_traps: threads whose first call is in a signal handler that interrupted the
 * allocator (strict_allocator.c), in a program with many thread-specific keys. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "instrumentation/tests/traps.h"

#define KEYS 40 /* glibc has 32 in the thread itself, and allocates room for more */
#define THREADS 5

static struct TrapPart trap;
static void (*interrupt_next)(void);

static void OnSignal(int number) {
  (void)number;
  TrapTask(&trap);
}

/* Some handlers run on a stack of their own. */
static void* Interrupted(void* argument) {
  static __thread char room[1 << 16];
  const stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
  if ((intptr_t)argument % 2) sigaltstack(&stack, NULL);
  interrupt_next();
  void* volatile memory = malloc(100);
  free(memory);
  TrapTask(&trap);
  return argument;
}

/* Where handlers return to; as the kernel has it. */
static uintptr_t ReturnsTo(int signal) {
  struct {
    uintptr_t handler;
    unsigned long flags;
    uintptr_t returns_to;
    uint64_t mask;
  } action = {0};
  syscall(SYS_rt_sigaction, signal, NULL, &action, sizeof action.mask);
  return action.returns_to;
}

/* Blocks the signal for good, as threads of libraries do, and is recorded: though its stack has
 * been used for calls that left that address there. */
static void* Blocking(void* argument) {
  volatile uintptr_t left_over[64];
  const uintptr_t address = ReturnsTo(SIGUSR1);
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  for (int i = 0; i < 64; i++) left_over[i] = address;
  TrapTask(&trap);
  return left_over[63] == address ? argument : NULL;
}

int TrapHandler(void) {
  pthread_key_t key;
  pthread_t thread;
  *(void**)&interrupt_next = dlsym(RTLD_DEFAULT, "strict_allocator_interrupt");
  if (!interrupt_next) return 3;
  for (int i = 0; i < KEYS; i++) pthread_key_create(&key, NULL);
  TrapStart(&trap, "handler", "task");
  static_part_load(&trap.part);
  TrapTask(&trap);
  struct sigaction action = {.sa_handler = OnSignal, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &action, NULL);
  TrapSync("ready");
  TrapTask(&trap); /* the recording begins for the process */
  for (intptr_t i = 0; i <= THREADS; i++) {
    pthread_create(&thread, NULL, i < THREADS ? Interrupted : Blocking, (void*)i);
    pthread_join(thread, NULL);
  }
  TrapSync("done");
  return 0;
}

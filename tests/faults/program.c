// SPDX-License-Identifier: Apache-2.0
/* syncline-faults-program TRUTH: an ITT program whose account of its calls survives its death.
 *
 * TRUTH is mapped and shared: what was written there stays when the program is killed, becomes
 * another program or closes all its descriptors. It is a ring of records (struct Call), one for
 * each task_begin and task_end: two readings of CLOCK_MONOTONIC, the trace clock, around the call,
 * and what the call took of its thread. A record without an end is a call that was begun and did
 * not return, as far as anybody knows. Forked children and the program after an exec write into the
 * same ring.
 *
 *   --threads N      threads that make tasks (default 1)
 *   --period-us N    between two calls of a thread (default 400)
 *   --name-bytes N   length of the tasks' names (default 16)
 *   --fork-ms N      a child every so often, which makes tasks for twice as long
 *
 * SIGUSR1: exec of itself. SIGUSR2: closes all descriptors but the first three. Otherwise it runs
 * until it is ended.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "instrumentation/tests/static_part.h"

enum { kBegin = 1, kEnd = 2 };

/* 40 bytes, little endian; tests/faults/truth.py reads it. */
struct Call {
  uint64_t before_ns; /* 0: none yet */
  uint64_t after_ns;  /* 0: it has not returned */
  int32_t pid;
  int32_t tid;
  uint32_t kind;
  uint32_t voluntary_switches; /* inside the call */
  uint64_t cpu_ns;             /* of the thread, inside the call */
};

#define CALLS_MAX (1u << 19)
struct Truth {
  uint64_t next;     /* how many calls were begun, of all processes */
  uint64_t lives;    /* how often a program began here: more than once after an exec */
  uint64_t closings; /* how often it closed its descriptors */
  uint64_t reserved[5];
  struct Call calls[CALLS_MAX];
};

static struct {
  const char* truth;
  int threads, period_us, name_bytes, fork_ms;
} options = {NULL, 1, 400, 16, 0};

static struct Truth* truth;
static struct static_part part;
static struct itt_domain* domain;
static struct itt_string_handle* name;
static const struct itt_id none;
static volatile sig_atomic_t wants_exec, wants_close;

static void Must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "syncline-faults-program: %s: %s\n", what, strerror(errno));
  _exit(5);
}

static uint64_t Read(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static long Switches(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

static void MapTruth(void) {
  const int file = open(options.truth, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  Must(file >= 0 && ftruncate(file, sizeof *truth) == 0, options.truth);
  truth = mmap(NULL, sizeof *truth, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  Must(truth != MAP_FAILED, "mmap");
  close(file);
  __atomic_fetch_add(&truth->lives, 1, __ATOMIC_RELAXED);
}

static void MakeCall(uint32_t kind) {
  const uint64_t number = __atomic_fetch_add(&truth->next, 1, __ATOMIC_RELAXED);
  struct Call* call = &truth->calls[number % CALLS_MAX];
  call->before_ns = 0; /* what the ring held here before is no call of now */
  __atomic_store_n(&call->after_ns, 0, __ATOMIC_RELEASE);
  call->pid = getpid();
  call->tid = (int)syscall(SYS_gettid);
  call->kind = kind;
  /* A record can lie on two pages: both are touched now, so that what is counted below as the
   * call's own is no page fault of this account. */
  *(volatile uint32_t*)&call->voluntary_switches = 0;
  *(volatile uint64_t*)&call->cpu_ns = 0;
  const long switches = Switches();
  const uint64_t cpu_ns = Read(CLOCK_THREAD_CPUTIME_ID);
  __atomic_store_n(&call->before_ns, Read(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
  if (kind == kBegin) {
    ITT_CALL(&part, task_begin, (domain, none, none, name));
  } else {
    ITT_CALL(&part, task_end, (domain));
  }
  const uint64_t after_ns = Read(CLOCK_MONOTONIC);
  call->cpu_ns = Read(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
  call->voluntary_switches = (uint32_t)(Switches() - switches);
  __atomic_store_n(&call->after_ns, after_ns, __ATOMIC_RELEASE);
}

static void Pause(void) {
  const struct timespec period = {0, options.period_us * 1000L};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &period, NULL);
}

static void Task(void) {
  MakeCall(kBegin);
  Pause();
  MakeCall(kEnd);
  Pause();
}

static void* Work(void* argument) {
  for (;;) Task();
  return argument;
}

static void OnExec(int number) {
  (void)number;
  wants_exec = 1;
}
static void OnClose(int number) {
  (void)number;
  wants_close = 1;
}

static void Child(void) {
  const uint64_t until = Read(CLOCK_MONOTONIC) + 2 * (uint64_t)options.fork_ms * 1000000u;
  while (Read(CLOCK_MONOTONIC) < until) Task();
  _exit(0);
}

static void MakeNames(void) {
  char* text = malloc((size_t)options.name_bytes + 1);
  Must(text != NULL, "malloc");
  memset(text, 'n', (size_t)options.name_bytes);
  text[options.name_bytes] = 0;
  domain = static_part_domain(&part, "faults");
  name = static_part_string(&part, text);
  free(text);
}

static int ReadOptions(int argc, char** argv) {
  static const struct option kOptions[] = {{"threads", 1, 0, 't'},
                                           {"period-us", 1, 0, 'p'},
                                           {"name-bytes", 1, 0, 'n'},
                                           {"fork-ms", 1, 0, 'f'},
                                           {0, 0, 0, 0}};
  for (int c; (c = getopt_long(argc, argv, "", kOptions, NULL)) != -1;) {
    const int value = optarg ? atoi(optarg) : 0;
    if (c == 't') options.threads = value;
    if (c == 'p') options.period_us = value;
    if (c == 'n') options.name_bytes = value;
    if (c == 'f') options.fork_ms = value;
    if (c == '?' || value <= 0) return -1;
  }
  options.truth = argv[optind];
  return optind + 1 == argc && options.threads <= 1000 && options.period_us < 1000000 ? 0 : -1;
}

int main(int argc, char** argv) {
  if (ReadOptions(argc, argv) != 0) {
    fprintf(stderr,
            "usage: syncline-faults-program [--threads 1] [--period-us 400] [--name-bytes 16]\n"
            "  [--fork-ms N] TRUTH\n");
    return 2;
  }
  MapTruth();
  signal(SIGUSR1, OnExec);
  signal(SIGUSR2, OnClose);
  static_part_start(&part);
  MakeNames();
  static_part_load(&part); /* it opens libraries: no call of theirs, and it may wait */
  pthread_t thread;
  for (int i = 1; i < options.threads; i++) {
    Must(pthread_create(&thread, NULL, Work, NULL) == 0, "pthread_create");
  }
  uint64_t forked_ns = 0;
  for (;;) {
    Task();
    if (wants_exec) {
      execv("/proc/self/exe", argv);
      Must(0, "execv");
    }
    if (wants_close) {
      wants_close = 0;
      Must(close_range(3, ~0U, 0) == 0, "close_range");
      __atomic_fetch_add(&truth->closings, 1, __ATOMIC_RELAXED);
    }
    const uint64_t now_ns = Read(CLOCK_MONOTONIC);
    if (options.fork_ms && now_ns - forked_ns > (uint64_t)options.fork_ms * 1000000u) {
      forked_ns = now_ns;
      while (waitpid(-1, NULL, WNOHANG) > 0) {
      }
      if (fork() == 0) Child();
    }
  }
}

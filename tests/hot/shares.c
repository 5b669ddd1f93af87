// SPDX-License-Identifier: Apache-2.0
/* syncline-hot-shares WITNESS: an ITT program of which is known how much processor time each of its
 * functions takes, by the clock of its own thread.
 *
 *     outer                 burn_outside() runs before it begins
 *       alpha               burn_alpha_one(), burn_alpha_two(); a second thread, which has no
 *                           tasks, runs burn_helper() meanwhile
 *       beta                burn_beta()
 *       waiting             sched_yield(), again and again
 *
 * How long each call works is random, so that nothing is in step with samples. Ten times a second a
 * line is added to WITNESS: CLOCK_MONOTONIC, and the ns of processor time of each function so far,
 * in the order above. It runs until it is ended.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "instrumentation/tests/static_part.h"

enum { kOutside, kAlphaOne, kAlphaTwo, kBeta, kYield, kFunctions };

static int64_t used_ns[kFunctions];
static uint64_t seed = 88172645463325252u;
volatile uint64_t burnt; /* what is worked out is used */

static int64_t read_ns(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static uint64_t random_below(uint64_t limit) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed % limit;
}

/* Some 0.1 ms of work in the function itself: reading the clock more often would be a part of what
 * is measured. */
#define BURN(name)                                           \
  __attribute__((noinline)) void name(void) {                \
    uint64_t value = burnt;                                  \
    for (int i = 0; i < 100000; ++i) value = value * 31 + 7; \
    burnt = value;                                           \
  }
BURN(burn_outside)
BURN(burn_alpha_one)
BURN(burn_alpha_two)
BURN(burn_beta)
BURN(burn_helper)

static atomic_int helping;

static void* help(void* always) {
  while (always != NULL) {
    if (atomic_load(&helping)) {
      burn_helper();
    } else {
      usleep(1000);
    }
  }
  return NULL;
}

static void yield(void) {
  for (int i = 0; i < 200; ++i) sched_yield();
}

/* From a tenth of `mean_us` to nearly twice as much. */
static void work(int function, void (*call)(void), int64_t mean_us) {
  const int64_t wanted_ns = (int64_t)(mean_us * (100 + random_below(1800)));
  const int64_t begin_ns = read_ns(CLOCK_THREAD_CPUTIME_ID);
  int64_t now_ns = begin_ns;
  while (now_ns - begin_ns < wanted_ns) {
    call();
    now_ns = read_ns(CLOCK_THREAD_CPUTIME_ID);
  }
  used_ns[function] += now_ns - begin_ns;
}

static void say(FILE* witness) {
  static int64_t next_ns;
  const int64_t now_ns = read_ns(CLOCK_MONOTONIC);
  if (now_ns < next_ns) return;
  next_ns = now_ns + 100000000;
  fprintf(witness, "%lld", (long long)now_ns);
  for (int i = 0; i < kFunctions; ++i) fprintf(witness, " %lld", (long long)used_ns[i]);
  fprintf(witness, "\n");
  fflush(witness);
}

int main(int argc, char** argv) {
  FILE* const witness = argc == 2 ? fopen(argv[1], "w") : NULL;
  if (witness == NULL) return 2;
  static struct static_part part;
  static_part_start(&part);
  struct itt_domain* const domain = static_part_domain(&part, "hot");
  struct itt_string_handle* const outer = static_part_string(&part, "outer");
  struct itt_string_handle* const alpha = static_part_string(&part, "alpha");
  struct itt_string_handle* const beta = static_part_string(&part, "beta");
  struct itt_string_handle* const waiting = static_part_string(&part, "waiting");
  const struct itt_id none = {0, 0, 0};
  pthread_t helper;
  if (pthread_create(&helper, NULL, help, &helper) != 0) return 2;
  printf("ready\n");
  fflush(stdout);
  for (;;) {
    work(kOutside, burn_outside, 500);
    ITT_CALL(&part, task_begin, (domain, none, none, outer));
    ITT_CALL(&part, task_begin, (domain, none, none, alpha));
    atomic_store(&helping, 1);
    work(kAlphaOne, burn_alpha_one, 4000);
    work(kAlphaTwo, burn_alpha_two, 2000);
    atomic_store(&helping, 0);
    ITT_CALL(&part, task_end, (domain));
    ITT_CALL(&part, task_begin, (domain, none, none, beta));
    work(kBeta, burn_beta, 2500);
    ITT_CALL(&part, task_end, (domain));
    ITT_CALL(&part, task_begin, (domain, none, none, waiting));
    work(kYield, yield, 1000);
    ITT_CALL(&part, task_end, (domain));
    ITT_CALL(&part, task_end, (domain));
    say(witness);
  }
}

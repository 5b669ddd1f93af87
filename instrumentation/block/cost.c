// SPDX-License-Identifier: Apache-2.0
/* Cost: what our code takes from the program, measured while it runs.
 *
 * Of the calls that are many a sample is timed (block.h); what happens rarely is timed always. The
 * sums of all threads are in the block, so that whoever reads it can say how sure the estimate is.
 */
#define _GNU_SOURCE
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <string.h>

#include "instrumentation/block/internal.h"
#include "instrumentation/block/monotonic.h"

/* A call that took longer than this was interrupted: counted once, not multiplied. */
#define COST_OUTLIER_NS 50000u
#define SAMPLES_AT_A_STRIDE 8u

uint32_t syncline_cost_has_tsc;
static uint64_t reading_ticks;         /* of reading the counter itself */
static uint64_t first_ticks, first_ns; /* the counter and CLOCK_MONOTONIC at one time */

uint64_t syncline_cost_clock(void) { return syncline_monotonic_ns(); }

uint64_t syncline_cost_ns(uint64_t ticks) {
  /* Where the counters of two CPUs do not agree, a call that changes CPU may end before it began.
   */
  if ((int64_t)ticks <= (int64_t)reading_ticks) return 0;
  ticks -= reading_ticks;
  if (!syncline_cost_has_tsc) return ticks;
  const double ns = (double)(syncline_monotonic_ns() - first_ns);
  const double all = (double)(syncline_cost_ticks() - first_ticks);
  return all > 0 ? (uint64_t)((double)ticks * ns / all) : 0;
}

uint64_t syncline_cost_ticks_in(uint64_t ns) {
  if (!syncline_cost_has_tsc) return ns;
  const double all_ns = (double)(syncline_monotonic_ns() - first_ns);
  const double all = (double)(syncline_cost_ticks() - first_ticks);
  return all_ns > 0 ? (uint64_t)((double)ns * all / all_ns) : ns;
}

static void Add(uint64_t* sum, uint64_t more) { __atomic_fetch_add(sum, more, __ATOMIC_RELAXED); }

void syncline_cost_timed(struct syncline_thread* thread, uint64_t spent_ns) {
  if (!syncline_process.ready) return;
  Add(&thread->slot->cost_ns, spent_ns);
  Add(&syncline_process.files.block->cost.timed_ns, spent_ns);
}

static void Sampled(struct syncline_thread* thread, uint64_t spent_ns) {
  struct syncline_cost* cost = &syncline_process.files.block->cost;
  const uint64_t calls = thread->cost_calls;
  const uint64_t all_ns = spent_ns * calls;
  Add(&thread->slot->cost_ns, all_ns);
  Add(&cost->samples, 1);
  Add(&cost->calls, calls);
  Add(&cost->sampled_ns, all_ns);
  Add(&cost->squares, (all_ns * all_ns + 1023) / 1024);
  Add(&cost->timed_ns, spent_ns);
}

/* Chooses the next call to be timed: after `stride` calls, give or take a quarter. */
static void Next(struct syncline_thread* thread, uint32_t stride) {
  uint32_t random = thread->cost_random ? thread->cost_random : (uint32_t)thread->tid;
  random ^= random << 13; /* Marsaglia's xorshift */
  random ^= random >> 17;
  random ^= random << 5;
  thread->cost_random = random;
  thread->cost_stride = stride;
  thread->cost_calls = stride - stride / 4 + random % (2 * (stride / 4) + 1);
  thread->calls_to_sample = thread->cost_calls;
}

void syncline_cost_end(struct syncline_thread* thread, uint64_t ticks) {
  const uint64_t spent_ns = syncline_cost_ns(ticks);
  if (syncline_process.ready) {
    if (spent_ns <= COST_OUTLIER_NS) {
      Sampled(thread, spent_ns);
    } else {
      syncline_cost_timed(thread, spent_ns);
      Add(&syncline_process.files.block->cost.interrupted, 1);
      Add(&syncline_process.files.block->cost.interrupted_ns, spent_ns);
    }
    Add(&thread->slot->cost_samples, 1);
  }
  uint32_t stride = thread->cost_stride;
  if (++thread->cost_samples >= SAMPLES_AT_A_STRIDE) {
    thread->cost_samples = 0;
    if (stride < SYNCLINE_COST_STRIDE_MAX) stride++;
  }
  Next(thread, stride);
}

void syncline_cost_restart(struct syncline_thread* thread) {
  thread->cost_samples = 0;
  Next(thread, SYNCLINE_COST_STRIDE_MIN);
}

static uint64_t Load(const uint64_t* sum) { return __atomic_load_n(sum, __ATOMIC_RELAXED); }

void syncline_cost_recording_begins(struct syncline_block* block) {
  const struct syncline_cost* now = &block->cost;
  block->cost_at_on = (struct syncline_cost){
      Load(&now->samples),  Load(&now->calls),       Load(&now->sampled_ns),    Load(&now->squares),
      Load(&now->timed_ns), Load(&now->interrupted), Load(&now->interrupted_ns)};
}

/* The time-stamp counter is a clock where it runs at one speed whatever the processor does (Intel
 * SDM vol. 3, "Invariant TSC") and the kernel takes it for one: it compares the CPUs'. */
static int HasClocklikeTsc(void) {
#if defined(__x86_64__)
  static const char* const kClocks[] = {"tsc\n", "kvm-clock\n", "hyperv_clocksource_tsc_page\n"};
  unsigned int a, b, c, d;
  if (!__get_cpuid(0x80000007u, &a, &b, &c, &d) || (d & 1u << 8) == 0) return 0;
  char name[64] = "";
  syncline_read_small_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", name,
                           sizeof name);
  for (size_t i = 0; i < sizeof kClocks / sizeof *kClocks; i++) {
    if (strcmp(name, kClocks[i]) == 0) return 1;
  }
#endif
  return 0;
}

void syncline_cost_start_up(void) {
  syncline_cost_has_tsc = (uint32_t)HasClocklikeTsc();
  uint64_t best = UINT64_MAX, tightest = UINT64_MAX;
  for (int i = 0; i < 32; i++) {
    const uint64_t begin = syncline_cost_ticks();
    const uint64_t ns = syncline_monotonic_ns();
    const uint64_t middle = syncline_cost_ticks();
    const uint64_t spent = syncline_cost_ticks() - middle;
    if (spent < best) best = spent;
    if (middle - begin >= tightest) continue;
    tightest = middle - begin;
    first_ns = ns;
    first_ticks = begin + tightest / 2;
  }
  reading_ticks = best;
}

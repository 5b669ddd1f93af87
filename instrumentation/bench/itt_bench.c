// SPDX-License-Identifier: Apache-2.0
/* itt_bench: what the collector costs. Prints one line for each figure: name, median ns, interval
 * of the middle half; things that are compared run interleaved. `itt_bench off` needs nothing,
 * `itt_bench none` no collector, either; `itt_bench on` waits for a line on stdin and expects to be
 * recorded then: bench/itt_bench.py does that. A second argument names another collector, which is
 * then measured alone, and beside ours. */
#define _GNU_SOURCE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syncline/annotate.h>
#include <time.h>

#include "instrumentation/bench/raw_tracepoints.h"
#include "instrumentation/tests/static_part.h"

#define ROUNDS 1001

static const struct itt_id none;
static struct static_part real, empty, other, both;
static struct itt_domain *domain, *other_domain, *both_domain;
static struct itt_string_handle *name, *other_name, *both_name;

/* The thread's own time: others on the machine do not count. */
static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* A collector that does nothing: the floor under every other. */
static __attribute__((noinline)) void EmptyBegin(const struct itt_domain* d, struct itt_id id,
                                                 struct itt_id parent,
                                                 struct itt_string_handle* n) {
  __asm__ volatile("" : : "r"(d), "r"(n), "m"(id), "m"(parent) : "memory");
}
static __attribute__((noinline)) void EmptyEnd(const struct itt_domain* d) {
  __asm__ volatile("" : : "r"(d) : "memory");
}

static inline void Pairs(struct static_part* part, struct itt_domain* d,
                         struct itt_string_handle* n, int count) {
  for (int i = 0; i < count; i++) {
    ITT_CALL(part, task_begin, (d, none, none, n));
    ITT_CALL(part, task_end, (d));
  }
}
static void EmptyPairs(int count) { Pairs(&empty, domain, name, count); }
static void RealPairs(int count) { Pairs(&real, domain, name, count); }
static void OtherPairs(int count) { Pairs(&other, other_domain, other_name, count); }
static void BothPairs(int count) { Pairs(&both, both_domain, both_name, count); }
static void RawPairs(int count) {
  for (int i = 0; i < count; i++) {
    lttng_ust_tracepoint(syncline_bench, begin, 1, 2, 3, 0, i);
    lttng_ust_tracepoint(syncline_bench, end, 1, 2, 3, 0, i);
  }
}

#define TEXTS 256
static char texts[TEXTS][48];
static void Lookups(int count) {
  for (int i = 0; i < count; i++) {
    if (!real.string_handle_create(texts[i % TEXTS])) abort();
  }
}

/* Marks of syncline/annotate.h, and the loop that they stand in. */
static void EmptyLoop(int count) {
  for (int i = 0; i < count; i++) __asm__ volatile("" : : : "memory");
}
static void Annotations(int count) {
  for (int i = 0; i < count; i++) {
    syncline_phase_begin("convolution");
    __asm__ volatile("" : : : "memory");
    syncline_phase_end();
  }
}

static int Compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Puts `ns` in order. */
static void Print(const char* name, double* ns, int n) {
  qsort(ns, (size_t)n, sizeof *ns, Compare);
  printf("%s %.2f %.2f %.2f\n", name, ns[n / 2], ns[n / 4], ns[3 * n / 4]);
  fflush(stdout);
}

struct Figure {
  const char* name;
  void (*run)(int count);
  double ns[ROUNDS];
};

static void Measure(struct Figure* figures, int n, int count) {
  for (int i = 0; i < n; i++) figures[i].run(count / 10);
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < n; i++) {
      const double begin = Now();
      figures[i].run(count);
      figures[i].ns[round] = (Now() - begin) / count;
    }
  }
  for (int i = 0; i < n; i++) Print(figures[i].name, figures[i].ns, ROUNDS);
}

/* ---- between other work ----
 * A training does thousands of things between two tasks, and neither the tracer's code nor its data
 * is near when the next one comes. Here a walk over data and a run through code, each larger than a
 * core's own caches, come before every single event. In ticks of the processor's counter: reading a
 * clock would bring half of what is to be far away. */
#if defined(__x86_64__)
#define COLD_ROUNDS 1000
#define OTHER_DATA_BYTES (6u << 20)
static unsigned char other_data[OTHER_DATA_BYTES];

/* A begin, or an end. */
static void RawEvent(int end) {
  if (end) {
    lttng_ust_tracepoint(syncline_bench, end, 1, 2, 3, 0, 1);
  } else {
    lttng_ust_tracepoint(syncline_bench, begin, 1, 2, 3, 0, 0);
  }
}
static void RecordedEvent(int end) {
  if (end) {
    ITT_CALL(&real, task_end, (domain));
  } else {
    ITT_CALL(&real, task_begin, (domain, none, none, name));
  }
}

static __attribute__((noinline)) void OtherWork(void) {
  for (size_t at = 0; at < OTHER_DATA_BYTES; at += 64) other_data[at]++;
  /* 128 KiB of code that does nothing. */
  __asm__ volatile(".rept 16384\n\t.byte 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\n\t.endr");
}

static void MeasureCold(void) {
  static double samples[2][COLD_ROUNDS];
  static void (*const kRun[])(int end) = {RawEvent, RecordedEvent};
  static const char* const kNames[] = {"raw_event_cold", "recorded_event_cold"};
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  const uint64_t begin_ticks = __builtin_ia32_rdtsc();
  for (int round = 0; round < COLD_ROUNDS; round++) {
    for (int i = 0; i < 2; i++) {
      OtherWork();
      __builtin_ia32_lfence();
      const uint64_t before = __builtin_ia32_rdtsc();
      kRun[i](round % 2);
      samples[i][round] = (double)(__builtin_ia32_rdtsc() - before);
    }
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  const double ns =
      (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
  const double tick_ns = ns / (double)(__builtin_ia32_rdtsc() - begin_ticks);
  for (int i = 0; i < 2; i++) {
    for (int round = 0; round < COLD_ROUNDS; round++) samples[i][round] *= tick_ns;
    Print(kNames[i], samples[i], COLD_ROUNDS);
  }
}
#else
static void MeasureCold(void) {}
#endif

/* `path`: of the other collector. */
static int LoadOther(const char* path) {
  const char* own = getenv("INTEL_LIBITTNOTIFY64");
  if (!own || !(own = strdup(own))) return -1;
  static_part_start(&other);
  static_part_start(&both);
  setenv("INTEL_LIBITTNOTIFY64", path, 1);
  if (!static_part_load(&other)) return -1;
  setenv("INTEL_LIBITTNOTIFY64", own, 1);
  setenv("SYNCLINE_ALSO_COLLECTOR", path, 1);
  if (!static_part_load(&both)) return -1;
  other_domain = static_part_domain(&other, "bench");
  other_name = static_part_string(&other, "convolution");
  both_domain = static_part_domain(&both, "bench");
  both_name = static_part_string(&both, "convolution");
  return both.task_begin != real.task_begin ? 0 : -1;
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "none") == 0) {
    unsetenv("INTEL_LIBITTNOTIFY64");
    struct Figure figures[] = {{"empty_loop", EmptyLoop, {0}},
                               {"annotation_without_collector", Annotations, {0}}};
    Measure(figures, 2, 10000);
    return 0;
  }
  const int on = argc == 3 && strcmp(argv[1], "on") == 0;
  if (!on && (argc != 3 || strcmp(argv[1], "off") != 0)) {
    fprintf(
        stderr,
        "usage: INTEL_LIBITTNOTIFY64=.../libsyncline_itt.so itt_bench none|on OTHER|off OTHER\n");
    return 2;
  }
  static_part_start(&real);
  static_part_start(&empty);
  domain = static_part_domain(&real, "bench");
  name = static_part_string(&real, "convolution");
  if (!static_part_load(&real) || !real.task_begin) {
    fprintf(stderr, "itt_bench: no collector: set INTEL_LIBITTNOTIFY64\n");
    return 1;
  }
  if (LoadOther(argv[2]) != 0) {
    fprintf(stderr, "itt_bench: %s is not loaded beside ours\n", argv[2]);
    return 1;
  }
  empty.global.api_initialized = 1;
  empty.task_begin = EmptyBegin;
  empty.task_end = EmptyEnd;
  for (int i = 0; i < TEXTS; i++) {
    snprintf(texts[i], sizeof texts[i], "autograd::engine::evaluate_function_%d", i);
  }
  if (on) {
    char line[16];
    if (!fgets(line, sizeof line, stdin)) return 1;
    struct Figure figures[] = {{"raw_pair", RawPairs, {0}},
                               {"recorded_pair", RealPairs, {0}},
                               {"other_pair", OtherPairs, {0}},
                               {"recorded_both_pair", BothPairs, {0}}};
    Measure(figures, 4, 1000);
    MeasureCold();
  } else {
    struct Figure figures[] = {
        {"empty_pair", EmptyPairs, {0}},        {"off_pair", RealPairs, {0}},
        {"other_pair", OtherPairs, {0}},        {"off_both_pair", BothPairs, {0}},
        {"string_handle_lookup", Lookups, {0}}, {"annotation_off", Annotations, {0}}};
    Measure(figures, 6, 10000);
  }
  return 0;
}

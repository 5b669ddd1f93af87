// SPDX-License-Identifier: Apache-2.0
/* syncline-itt-truth: an ITT program that writes down what it did.
 *
 * Threads run trees of tasks whose shape and names follow from the seed; every call is bracketed by
 * two readings of CLOCK_MONOTONIC, the trace clock. What a recording says can then be checked span
 * by span: names must be right always, times must lie in the brackets, and what is missing must be
 * declared lost.
 *
 * The truth file has one line for each fact, fields separated by tabs, names last; times in ns:
 *   span     pid tid depth begin0 begin1 end0 end1 domain name
 *   over     pid tid id    begin0 begin1 end0 end1 domain name     overlapped, id is d1
 *   text     pid tid depth t0 t1 domain key value                  metadata of the innermost task
 *   number   pid tid depth t0 t1 domain key value
 *   marker   pid tid scope t0 t1 domain name
 *   frame    pid tid id    begin0 begin1 end0 end1 domain
 *   counter  pid tid value t0 t1 domain name
 *   thread   pid tid name
 * SIGTERM ends the program early, with its truth.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "instrumentation/tests/static_part.h"

static struct {
  int threads;
  int tasks; /* roots for each thread; 0: until the time is over */
  int depth;
  long duration_ms;
  unsigned seed;
  int names; /* distinct task names */
  int work_ns;
  int fork;
  int temporaries; /* names are made at each task from memory that is then freed */
  int metadata, frames, counters, markers, overlapped, ids;
  const char* truth;
} options = {1, 100, 3, 0, 1, 16, 2000, 0, 0, 0, 0, 0, 0, 0, 0, NULL};

#define MAX_NAMES 65536
static struct static_part first, second; /* two static parts, as when two libraries use ITT */
static struct itt_domain* domains[2];
static struct itt_string_handle** names;
static struct itt_string_handle *text_key, *number_key, *format, *marker_name;
static void* counter;

struct Thread {
  unsigned random;
  int tid;
  char* out;
  size_t used, size;
  unsigned long long next_id;
};

static const struct itt_id none;

static unsigned long long Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec;
}

static unsigned Random(struct Thread* thread) {
  thread->random = thread->random * 1664525u + 1013904223u;
  return thread->random >> 8;
}

static void Say(struct Thread* thread, const char* form, ...) {
  if (!options.truth) return;
  if (thread->size - thread->used < 1024) {
    thread->size = thread->size ? 2 * thread->size : 1u << 20;
    thread->out = realloc(thread->out, thread->size);
    if (!thread->out) abort();
  }
  va_list arguments;
  va_start(arguments, form);
  thread->used += (size_t)vsnprintf(thread->out + thread->used, 1024, form, arguments);
  va_end(arguments);
}

static void Spin(int ns) {
  const unsigned long long until = Now() + (unsigned long long)ns;
  while (Now() < until) {
  }
}

static void Extras(struct Thread* thread, struct static_part* part, const struct itt_domain* domain,
                   const char* domain_name, int depth, unsigned number) {
  const int pid = getpid();
  unsigned long long t0, t1;
  if (options.metadata) {
    t0 = Now();
    ITT_CALL(part, formatted_metadata_add, (domain, format, number % 7, "f32"));
    t1 = Now();
    Say(thread, "text\t%d\t%d\t%d\t%llu\t%llu\t%s\tshape %%u %%s\tshape %u f32\n", pid, thread->tid,
        depth, t0, t1, domain_name, number % 7);
    long long value = -(long long)number;
    t0 = Now();
    ITT_CALL(part, metadata_add, (domain, none, number_key, ITT_METADATA_S64, 1, &value));
    t1 = Now();
    Say(thread, "number\t%d\t%d\t%d\t%llu\t%llu\t%s\tnumber\t%lld\n", pid, thread->tid, depth, t0,
        t1, domain_name, value);
  }
  if (options.markers) {
    t0 = Now();
    ITT_CALL(part, marker, (domain, none, marker_name, ITT_SCOPE_TASK));
    t1 = Now();
    Say(thread, "marker\t%d\t%d\t%d\t%llu\t%llu\t%s\tmark\n", pid, thread->tid, ITT_SCOPE_TASK, t0,
        t1, domain_name);
  }
  if (options.counters) {
    unsigned long long value = number;
    t0 = Now();
    ITT_CALL(&first, counter_set_value, (counter, &value));
    t1 = Now();
    Say(thread, "counter\t%d\t%d\t%llu\t%llu\t%llu\ttruth\tcount\n", pid, thread->tid, value, t0,
        t1);
  }
}

/* A collector that keeps the caller's pointer shows it. */
static struct itt_string_handle* TemporaryName(struct static_part* part, unsigned number) {
  char* text = malloc(32);
  if (!text) abort();
  snprintf(text, 32, "task %u", number);
  struct itt_string_handle* handle = static_part_string(part, text);
  explicit_bzero(text, 32);
  free(text);
  return handle;
}

static void Task(struct Thread* thread, int depth) {
  const unsigned number = Random(thread) % (unsigned)options.names;
  struct static_part* part = number % 4 == 3 ? &second : &first;
  const struct itt_domain* domain = domains[part == &second];
  const char* domain_name = part == &second ? "truth.second" : "truth";
  const int pid = getpid();
  struct itt_string_handle* handle =
      options.temporaries ? TemporaryName(part, number) : names[number];
  struct itt_id id = none;
  if (options.ids) {
    id.d1 = ++thread->next_id;
    id.d2 = (unsigned long long)thread->tid;
  }
  const unsigned long long begin0 = Now();
  ITT_CALL(part, task_begin, (domain, id, none, handle));
  const unsigned long long begin1 = Now();
  Extras(thread, part, domain, domain_name, depth, number);
  Spin(options.work_ns);
  const unsigned children = depth + 1 < options.depth ? Random(thread) % 3 : 0;
  for (unsigned i = 0; i < children; i++) Task(thread, depth + 1);
  const unsigned long long end0 = Now();
  ITT_CALL(part, task_end, (domain));
  const unsigned long long end1 = Now();
  Say(thread, "span\t%d\t%d\t%d\t%llu\t%llu\t%llu\t%llu\t%s\ttask %u\n", pid, thread->tid, depth,
      begin0, begin1, end0, end1, domain_name, number);
}

/* Two overlapped tasks that cross, in a frame. */
static void Round(struct Thread* thread) {
  const int pid = getpid();
  struct itt_id frame = {++thread->next_id, (unsigned long long)thread->tid, 1};
  struct itt_id a = {++thread->next_id, (unsigned long long)thread->tid, 2};
  struct itt_id b = {++thread->next_id, (unsigned long long)thread->tid, 2};
  unsigned long long t[12] = {0};
  t[0] = Now();
  if (options.frames) ITT_CALL(&first, frame_begin_v3, (domains[0], &frame));
  t[1] = Now();
  if (options.overlapped) {
    t[2] = Now();
    ITT_CALL(&first, task_begin_overlapped, (domains[0], a, none, names[0]));
    t[3] = Now();
    t[4] = Now();
    ITT_CALL(&first, task_begin_overlapped, (domains[0], b, none, names[1]));
    t[5] = Now();
  }
  Task(thread, 0);
  if (options.overlapped) {
    t[6] = Now();
    ITT_CALL(&first, task_end_overlapped, (domains[0], a));
    t[7] = Now();
    t[8] = Now();
    ITT_CALL(&first, task_end_overlapped, (domains[0], b));
    t[9] = Now();
    Say(thread, "over\t%d\t%d\t%llu\t%llu\t%llu\t%llu\t%llu\ttruth\ttask 0\n", pid, thread->tid,
        a.d1, t[2], t[3], t[6], t[7]);
    Say(thread, "over\t%d\t%d\t%llu\t%llu\t%llu\t%llu\t%llu\ttruth\ttask 1\n", pid, thread->tid,
        b.d1, t[4], t[5], t[8], t[9]);
  }
  t[10] = Now();
  if (options.frames) ITT_CALL(&first, frame_end_v3, (domains[0], &frame));
  t[11] = Now();
  if (options.frames) {
    Say(thread, "frame\t%d\t%d\t%llu\t%llu\t%llu\t%llu\t%llu\ttruth\n", pid, thread->tid, frame.d1,
        t[0], t[1], t[10], t[11]);
  }
}

/* Threads and the forked child share the file: one at a time. */
static void Keep(struct Thread* thread) {
  if (!options.truth) return;
  const int file = open(options.truth, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0 || flock(file, LOCK_EX) != 0) {
    perror("syncline-itt-truth: cannot open the truth file");
    _exit(1);
  }
  for (size_t at = 0; at < thread->used;) {
    const ssize_t n = write(file, thread->out + at, thread->used - at);
    if (n <= 0) {
      perror("syncline-itt-truth: cannot write the truth");
      _exit(1);
    }
    at += (size_t)n;
  }
  close(file);
  thread->used = 0;
}

static volatile sig_atomic_t stop; /* SIGTERM: finish the round, write the truth */
static volatile pid_t child;
static void Stop(int number) {
  stop = 1;
  if (child > 0) kill(child, number);
}

static void* Run(void* argument) {
  struct Thread thread = {0};
  const int index = (int)(intptr_t)argument;
  thread.random = options.seed * 2654435761u + (unsigned)index;
  thread.tid = (int)syscall(SYS_gettid);
  char name[16];
  snprintf(name, sizeof name, "truth %d", index);
  ITT_CALL(&first, thread_set_name, (name));
  Say(&thread, "thread\t%d\t%d\t%s\n", getpid(), thread.tid, name);
  const unsigned long long until = Now() + (unsigned long long)options.duration_ms * 1000000ull;
  for (int i = 0; options.tasks == 0 || i < options.tasks; i++) {
    if (stop || (options.duration_ms && Now() >= until)) break;
    Round(&thread);
  }
  Keep(&thread);
  free(thread.out);
  return NULL;
}

static void RunThreads(int first_index) {
  pthread_t threads[256];
  for (int i = 0; i < options.threads; i++) {
    if (pthread_create(&threads[i], NULL, Run, (void*)(intptr_t)(first_index + i)) != 0) abort();
  }
  for (int i = 0; i < options.threads; i++) pthread_join(threads[i], NULL);
}

// tidy: allow function-length: a table of options, one case each
static int ReadOptions(int argc, char** argv) {
  static const struct option kOptions[] = {{"threads", 1, 0, 't'},
                                           {"tasks", 1, 0, 'n'},
                                           {"depth", 1, 0, 'd'},
                                           {"duration-ms", 1, 0, 'D'},
                                           {"seed", 1, 0, 's'},
                                           {"names", 1, 0, 'N'},
                                           {"work-ns", 1, 0, 'w'},
                                           {"fork", 0, 0, 'f'},
                                           {"temporaries", 0, 0, 'T'},
                                           {"metadata", 0, 0, 'm'},
                                           {"frames", 0, 0, 'F'},
                                           {"counters", 0, 0, 'c'},
                                           {"markers", 0, 0, 'M'},
                                           {"overlapped", 0, 0, 'o'},
                                           {"ids", 0, 0, 'i'},
                                           {"truth", 1, 0, 'O'},
                                           {0, 0, 0, 0}};
  for (int c; (c = getopt_long(argc, argv, "", kOptions, NULL)) != -1;) {
    switch (c) {
      case 't':
        options.threads = atoi(optarg);
        break;
      case 'n':
        options.tasks = atoi(optarg);
        break;
      case 'd':
        options.depth = atoi(optarg);
        break;
      case 'D':
        options.duration_ms = atol(optarg);
        break;
      case 's':
        options.seed = (unsigned)atoi(optarg);
        break;
      case 'N':
        options.names = atoi(optarg);
        break;
      case 'w':
        options.work_ns = atoi(optarg);
        break;
      case 'f':
        options.fork = 1;
        break;
      case 'T':
        options.temporaries = 1;
        break;
      case 'm':
        options.metadata = 1;
        break;
      case 'F':
        options.frames = 1;
        break;
      case 'c':
        options.counters = 1;
        break;
      case 'M':
        options.markers = 1;
        break;
      case 'o':
        options.overlapped = 1;
        break;
      case 'i':
        options.ids = 1;
        break;
      case 'O':
        options.truth = optarg;
        break;
      default:
        return -1;
    }
  }
  if (options.threads < 1 || options.threads > 256 || options.names < 2 ||
      options.names > MAX_NAMES || (options.tasks <= 0 && options.duration_ms <= 0)) {
    return -1;
  }
  return optind == argc ? 0 : -1;
}

int main(int argc, char** argv) {
  if (ReadOptions(argc, argv) != 0) {
    fprintf(stderr,
            "usage: syncline-itt-truth --truth FILE [--threads 1] [--tasks 100, 0: no limit] "
            "[--duration-ms 0]\n  [--depth 3] [--seed 1] [--names 16] [--work-ns 2000] [--fork] "
            "[--temporaries] [--ids]\n  [--metadata] [--frames] [--counters] [--markers] "
            "[--overlapped]\n");
    return 2;
  }
  if (options.truth) unlink(options.truth);
  signal(SIGTERM, Stop);
  static_part_start(&first);
  static_part_start(&second);
  /* Everything is made before the collector is loaded, as static initialisers do. */
  domains[0] = static_part_domain(&first, "truth");
  domains[1] = static_part_domain(&second, "truth.second");
  names = calloc((size_t)options.names, sizeof *names);
  for (int i = 0; i < options.names; i++) {
    char name[32];
    snprintf(name, sizeof name, "task %d", i);
    names[i] = static_part_string(i % 4 == 3 ? &second : &first, name);
  }
  text_key = static_part_string(&first, "text");
  number_key = static_part_string(&first, "number");
  format = static_part_string(&first, "shape %u %s");
  marker_name = static_part_string(&first, "mark");
  counter = static_part_counter(&first, "count", "truth", ITT_METADATA_U64);
  if (options.fork) {
    ITT_CALL(&first, thread_set_name, ("parent")); /* the collector is loaded before the fork */
    child = fork();
    if (child == 0) {
      RunThreads(100);
      return 0;
    }
  }
  RunThreads(0);
  if (child > 0) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* syncline-hot-faults WITNESS: an ITT program of which is known how many page faults and switches
 * each of its tasks has, by the kernel's counts of its own thread (getrusage).
 *
 *     fault    maps some hundred pages, writes to each, and gives them back
 *     read     likewise, but the kernel writes to them (read of /dev/zero)
 *     sleep    sleeps some times
 *     plain    computes
 *
 * How much each call does is random, so that nothing is in step with samples. Ten times a second a
 * line is added to WITNESS: CLOCK_MONOTONIC, and for each task, in the order above, its calls,
 * minor faults, voluntary and involuntary switches so far. It runs until it is ended.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "instrumentation/tests/static_part.h"

enum { kFault, kRead, kSleep, kPlain, kTasks };
enum { kPage = 4096 };

struct counts {
  long calls, faults, voluntary, involuntary;
};
static struct counts all[kTasks];
static uint64_t seed = 88172645463325252u;
static int zeros;
volatile uint64_t burnt; /* what is worked out is used */

static uint64_t random_below(uint64_t limit) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed % limit;
}

static char* map(size_t pages) {
  char* const memory =
      mmap(NULL, pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) _exit(3);
  madvise(memory, pages * kPage, MADV_NOHUGEPAGE);
  return memory;
}

static void fault(void) {
  const size_t pages = 100 + random_below(300);
  char* const memory = map(pages);
  for (size_t i = 0; i < pages; ++i) memory[i * kPage] = 1;
  munmap(memory, pages * kPage);
}

static void read_zeros(void) {
  const size_t pages = 20 + random_below(60);
  char* const memory = map(pages);
  if (read(zeros, memory, pages * kPage) != (ssize_t)(pages * kPage)) _exit(3);
  munmap(memory, pages * kPage);
}

static void nap(void) {
  const uint64_t times = 1 + random_below(9);
  for (uint64_t i = 0; i < times; ++i) usleep(100 + random_below(200));
}

static void plain(void) {
  uint64_t value = burnt;
  // Most of the time, so that watching costs little enough to go on.
  const uint64_t turns = 2400000 + random_below(12000000);
  for (uint64_t i = 0; i < turns; ++i) value = value * 31 + 7;
  burnt = value;
}

static void call(struct static_part* part, struct itt_domain* domain,
                 struct itt_string_handle* name, int task, void (*work)(void)) {
  const struct itt_id none = {0, 0, 0};
  struct rusage before, after;
  getrusage(RUSAGE_THREAD, &before);
  ITT_CALL(part, task_begin, (domain, none, none, name));
  work();
  ITT_CALL(part, task_end, (domain));
  getrusage(RUSAGE_THREAD, &after);
  ++all[task].calls;
  all[task].faults += after.ru_minflt - before.ru_minflt;
  all[task].voluntary += after.ru_nvcsw - before.ru_nvcsw;
  all[task].involuntary += after.ru_nivcsw - before.ru_nivcsw;
}

static void say(FILE* witness) {
  static int64_t next_ns;
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  const int64_t now_ns = time.tv_sec * 1000000000ll + time.tv_nsec;
  if (now_ns < next_ns) return;
  next_ns = now_ns + 100000000;
  fprintf(witness, "%lld", (long long)now_ns);
  for (int i = 0; i < kTasks; ++i) {
    fprintf(witness, " %ld %ld %ld %ld", all[i].calls, all[i].faults, all[i].voluntary,
            all[i].involuntary);
  }
  fprintf(witness, "\n");
  fflush(witness);
}

int main(int argc, char** argv) {
  FILE* const witness = argc == 2 ? fopen(argv[1], "w") : NULL;
  zeros = open("/dev/zero", O_RDONLY);
  if (witness == NULL || zeros < 0) return 2;
  static struct static_part part;
  static_part_start(&part);
  struct itt_domain* const domain = static_part_domain(&part, "hot");
  struct itt_string_handle* const names[kTasks] = {
      static_part_string(&part, "fault"), static_part_string(&part, "read"),
      static_part_string(&part, "sleep"), static_part_string(&part, "plain")};
  void (*const works[kTasks])(void) = {fault, read_zeros, nap, plain};
  printf("ready\n");
  fflush(stdout);
  for (;;) {
    for (int i = 0; i < kTasks; ++i) call(&part, domain, names[i], i, works[i]);
    say(witness);
  }
}

// SPDX-License-Identifier: Apache-2.0
/* libitt_allocator.so, for LD_PRELOAD: an allocator that reports itself through ITT, as oneTBB's
 * does. Every malloc is a task of a static part of its own, and so is giving memory back, also
 * those that the collector, LTTng and the loader make while they are at work.
 */
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "instrumentation/tests/static_part.h"

extern void* __libc_malloc(size_t bytes);
extern void* __libc_calloc(size_t count, size_t bytes);
extern void* __libc_realloc(void* memory, size_t bytes);

#define EXPORT __attribute__((visibility("default")))

static struct static_part part;
static struct itt_domain* domain;
static struct itt_string_handle* name;
static const struct itt_id none;
static int armed;

/* Like oneTBB's: ITT is looked for when the allocator starts, never from inside an allocation. */
__attribute__((constructor)) static void Start(void) {
  static_part_start(&part);
  domain = static_part_domain(&part, "allocator");
  name = static_part_string(&part, "malloc");
  __atomic_store_n(&armed, 1, __ATOMIC_RELEASE);
  static_part_load(&part);
}

/* 1 when there is a task to end. Pointers go live one after the other. */
static int Begin(void) {
  if (!__atomic_load_n(&armed, __ATOMIC_ACQUIRE) || !part.task_begin || !part.task_end) return 0;
  part.task_begin(domain, none, none, name);
  return 1;
}
static void End(int begun) {
  if (begun) part.task_end(domain);
}

EXPORT void* malloc(size_t bytes) {
  const int begun = Begin();
  void* memory = __libc_malloc(bytes);
  End(begun);
  return memory;
}
EXPORT void* calloc(size_t count, size_t bytes) {
  const int begun = Begin();
  void* memory = __libc_calloc(count, bytes);
  End(begun);
  return memory;
}
EXPORT void* realloc(void* memory, size_t bytes) {
  const int begun = Begin();
  void* moved = __libc_realloc(memory, bytes);
  End(begun);
  return moved;
}
EXPORT int munmap(void* memory, size_t bytes) {
  const int begun = Begin();
  const int result = (int)syscall(SYS_munmap, memory, bytes);
  End(begun);
  return result;
}

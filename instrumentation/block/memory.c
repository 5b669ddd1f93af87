// SPDX-License-Identifier: Apache-2.0
/* Memory without malloc: an allocator may call ITT, which calls us. No lock: a fork may come at any
 * time. */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "instrumentation/block/internal.h"

#define ARENA_BYTES (256u << 20)

static uint8_t* arena;
static size_t arena_used;

void* syncline_reserve(size_t bytes) {
  void* memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

void* syncline_arena(size_t bytes) {
  uint8_t* base = __atomic_load_n(&arena, __ATOMIC_ACQUIRE);
  if (!base) {
    uint8_t* fresh = syncline_reserve(ARENA_BYTES);
    if (!fresh) return NULL;
    if (__atomic_compare_exchange_n(&arena, &base, fresh, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      base = fresh;
    } else {
      munmap(fresh, ARENA_BYTES);
    }
  }
  if (bytes > ARENA_BYTES) return NULL;
  bytes = (bytes + 15) & ~(size_t)15;
  if (__atomic_load_n(&arena_used, __ATOMIC_RELAXED) + bytes > ARENA_BYTES) return NULL;
  size_t at = __atomic_fetch_add(&arena_used, bytes, __ATOMIC_RELAXED);
  return at + bytes <= ARENA_BYTES ? base + at : NULL;
}

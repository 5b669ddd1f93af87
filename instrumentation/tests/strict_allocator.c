// SPDX-License-Identifier: Apache-2.0
/* strict_allocator.so, for LD_PRELOAD: an allocator with a lock, as all have, which says so instead
 * of waiting for ever when a signal handler that interrupted it asks it for memory. */
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

extern void* __libc_malloc(size_t bytes);
extern void* __libc_calloc(size_t count, size_t bytes);
extern void* __libc_realloc(void* memory, size_t bytes);
extern void __libc_free(void* memory);

#define EXPORT __attribute__((visibility("default")))

static __thread int inside __attribute__((tls_model("initial-exec")));
static __thread int interrupt_next __attribute__((tls_model("initial-exec")));

/* The next allocation of this thread is interrupted by SIGUSR1. */
EXPORT void strict_allocator_interrupt(void) { interrupt_next = 1; }

static void Lock(void) {
  static const char text[] = "the handler waits for the allocator that it interrupted\n";
  if (inside) {
    (void)!write(2, text, sizeof text - 1);
    _exit(9);
  }
  inside = 1;
  if (!interrupt_next) return;
  interrupt_next = 0;
  raise(SIGUSR1);
}

EXPORT void* malloc(size_t bytes) {
  Lock();
  void* memory = __libc_malloc(bytes);
  inside = 0;
  return memory;
}
EXPORT void* calloc(size_t count, size_t bytes) {
  Lock();
  void* memory = __libc_calloc(count, bytes);
  inside = 0;
  return memory;
}
EXPORT void* realloc(void* memory, size_t bytes) {
  Lock();
  void* moved = __libc_realloc(memory, bytes);
  inside = 0;
  return moved;
}
EXPORT void free(void* memory) {
  Lock();
  __libc_free(memory);
  inside = 0;
}

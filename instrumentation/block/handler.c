// SPDX-License-Identifier: Apache-2.0
/* Is this thread in a signal handler? What a thread needs once, of us and of LTTng-UST, is
 * allocated, and a handler may have interrupted the allocator: asking it there would wait for
 * ever.
 *
 * A handler runs with its own signal blocked, unless it was installed with SA_NODEFER: such a one
 * is not noticed. Threads that block signals for good, as those of libraries do, are told apart by
 * what only a handler has below it: the frame that the kernel has made, which begins with the
 * address to which the handler returns, and that came with the action. It is looked for in the
 * stack, in what is near. On other processors than x86-64 that address is not known, and no handler
 * is noticed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <unistd.h>

#include "instrumentation/block/internal.h"

#ifdef __x86_64__

#define SIGNALS 64
#define PAGE ((uintptr_t)4096)
#define PAGES 64 /* guess: what a handler calls takes less of the stack */
#define MASK_BYTES sizeof(uint64_t)

/* As the kernel has it. */
struct action {
  uintptr_t handler;
  unsigned long flags;
  uintptr_t returns_to;
  uint64_t mask;
};
/* The complements of addresses: what is looked for in the stack must not lie there for that. */
struct returns {
  uintptr_t not_to[SIGNALS];
  int count;
};

static void Add(struct returns* returns, uintptr_t not_to) {
  for (int i = 0; i < returns->count; i++) {
    if (returns->not_to[i] == not_to) return;
  }
  returns->not_to[returns->count++] = not_to;
}

/* Where the handlers of these signals return to: one place, as a rule, of libc. */
__attribute__((noinline)) static void Find(struct returns* returns, uint64_t signals) {
  returns->count = 0;
  for (int number = 1; number <= SIGNALS; number++) {
    struct action action = {0};
    if ((signals >> (number - 1) & 1) == 0) continue;
    if (syscall(SYS_rt_sigaction, number, NULL, &action, MASK_BYTES) != 0) continue;
    if (action.handler == (uintptr_t)SIG_DFL || action.handler == (uintptr_t)SIG_IGN) continue;
    Add(returns, ~action.returns_to);
  }
}

/* The kernel looks at the mask before it refuses the request. */
static int IsReadable(uintptr_t page) {
  return syscall(SYS_rt_sigprocmask, -1, page, NULL, MASK_BYTES) != 0 && errno == EINVAL;
}

/* The address alone lies about in what stacks have been used for before: in the frame the state of
 * the interrupted thread follows it. */
#define USER_CODE 0x33 /* the selector of 64-bit programs' code (asm/segment.h, __USER_CS) */
__attribute__((no_sanitize_address, no_sanitize_thread)) static int IsFrame(uintptr_t at) {
  const ucontext_t* state = (const ucontext_t*)(at + sizeof at);
  const uintptr_t last = (uintptr_t)&state->uc_mcontext.gregs[REG_CSGSFS];
  if (((at ^ last) & ~(PAGE - 1)) != 0 && !IsReadable(last)) return 0;
  return state->uc_link == NULL && (state->uc_mcontext.gregs[REG_CSGSFS] & 0xFFFF) == USER_CODE;
}

/* A thread that libc has made has its own storage at the end of its stack: what lies behind that is
 * somebody else's, and may be a device's. */
static uintptr_t EndOfStack(uintptr_t at) {
  uintptr_t storage;
  __asm__("mov %%fs:0, %0" : "=r"(storage));
  return storage > at ? storage : UINTPTR_MAX;
}

__attribute__((noinline, no_sanitize_address, no_sanitize_thread)) static int IsOnStack(
    const struct returns* returns) {
  uintptr_t at = (uintptr_t)__builtin_frame_address(0);
  const uintptr_t end_of_stack = EndOfStack(at);
  for (int pages = 0; pages < PAGES && at < end_of_stack; pages++) {
    const uintptr_t end = (at & ~(PAGE - 1)) + PAGE;
    if (!IsReadable(at)) return 0;
    for (; at < end; at += sizeof at) {
      const uintptr_t word = *(const volatile uintptr_t*)at;
      for (int i = 0; i < returns->count; i++) {
        if (word == ~returns->not_to[i] && IsFrame(at)) return 1;
      }
    }
  }
  return 0;
}

static int InHandler(void) {
  uint64_t blocked = 0;
  struct returns returns;
  stack_t stack;
  if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, MASK_BYTES) != 0) return 0;
  if (blocked == 0) return 0;
  Find(&returns, blocked);
  if (returns.count == 0) return 0;
  if (sigaltstack(NULL, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0) return 1;
  return IsOnStack(&returns);
}

#else

static int InHandler(void) { return 0; }

#endif

int syncline_in_handler(void) {
  const int saved = errno;
  const int in_handler = InHandler();
  errno = saved;
  return in_handler;
}

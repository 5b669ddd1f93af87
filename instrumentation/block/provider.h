// SPDX-License-Identifier: Apache-2.0
/* The table through which libsyncline_block.so reaches LTTng-UST.
 *
 * Why a table in a library of its own: a library with a missing dependency does not load, and a
 * missing lttng-ust must not keep the training program from starting. libsyncline_provider.so links
 * lttng-ust and is opened with dlopen; when that fails the process has a block and names, and
 * records nothing.
 */
#ifndef SYNCLINE_INSTRUMENTATION_BLOCK_PROVIDER_H_
#define SYNCLINE_INSTRUMENTATION_BLOCK_PROVIDER_H_

#include <signal.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SYNCLINE_PROVIDER_FILE "libsyncline_provider.so"
/* The table's symbol: `const struct syncline_emit`. */
#define SYNCLINE_PROVIDER_SYMBOL "syncline_emit"
/* `int syncline_emit_canary(uint64_t nonce)`: for the agent's canary child. 1: a session took it.
 */
#define SYNCLINE_CANARY_SYMBOL "syncline_emit_canary"

/* Each event returns 1 when a session wants it, 0 when none does. docs/event-schema.md has the
 * meanings. */
struct syncline_emit {
  /* 1 only when it lies in a buffer. */
  int (*on)(uint32_t generation, uint32_t process, int32_t pid, uint64_t pidns,
            uint64_t start_ticks);
  int (*off)(uint32_t generation, uint32_t process, uint64_t events, uint64_t lost,
             uint64_t cost_ns);
  int (*pause)(uint32_t thread);
  int (*resume)(uint32_t thread);
  int (*thread)(uint32_t thread, uint32_t process, int32_t tid, const char* name);
  int (*name)(uint32_t process, uint32_t id, uint8_t kind, const char* text);
  uint64_t (*clock_ns)(void);
  /* Before the first event of a thread: what LTTng-UST keeps of it is allocated. */
  void (*thread_begins)(void);
  void (*before_fork)(sigset_t* saved);
  void (*after_fork_parent)(sigset_t* saved);
  void (*after_fork_child)(sigset_t* saved);
};

#ifdef __cplusplus
}
#endif

#endif /* SYNCLINE_INSTRUMENTATION_BLOCK_PROVIDER_H_ */

// SPDX-License-Identifier: Apache-2.0
/* The in-process side of the control block (abi/control_block.h): what our libraries share inside
 * one training process.
 *
 * Why a shared library: a process has one block, one name table, one set of thread keys, whichever
 * of our libraries (ITT collector, socket preload, Python hook) are loaded and in whichever order.
 * They all link libsyncline_block.so, found beside them through $ORIGIN, so that the loader keeps
 * one copy.
 *
 * Manners: libc only; never throws, prints or aborts; memory from mmap only, because an allocator
 * may call ITT, which calls us. What fails makes the process untraceable (the gate stays shut),
 * nothing else. errno stays as it was.
 *
 * Threads: everything may be called from any thread. Looking up a known name, the gate and the
 * counting take no lock, nor does following a thread that has acted on a changed gate; making a
 * name or a thread and acting on a changed gate do.
 * Signal handlers: `busy` in struct syncline_thread guards against re-entry; callers set it around
 * everything except the check of the gate.
 * Fork: the child starts with the gate at a value that no agent writes, so that its first call
 * comes here and makes a block of its own. A child that only execs never does.
 */
#ifndef SYNCLINE_INSTRUMENTATION_BLOCK_BLOCK_H_
#define SYNCLINE_INSTRUMENTATION_BLOCK_BLOCK_H_

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "instrumentation/abi/control_block.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SYNCLINE_EXPORT __attribute__((visibility("default")))
/* On the path of every recorded call: the linker puts these together, in few pages. */
#define SYNCLINE_HOT __attribute__((hot))

/* Kinds of names: docs/event-schema.md, syncline:name. */
enum syncline_name_kind {
  SYNCLINE_NAME_DOMAIN = 1,
  SYNCLINE_NAME_STRING = 2,
  SYNCLINE_NAME_COUNTER = 3,
  SYNCLINE_NAME_FRAME = 4,
  SYNCLINE_NAME_EVENT = 5,
  SYNCLINE_NAME_SYNC = 6,
  SYNCLINE_NAME_OTHER = 7
};

#define SYNCLINE_LIBRARIES 4

/* A thread, in private memory of SYNCLINE_THREAD_BYTES, of which what is touched is taken. Only its
 * own thread touches it. */
#define SYNCLINE_THREAD_BYTES (16u << 10)
struct syncline_thread {
  struct syncline_thread_slot* slot; /* in the block; a private dummy without one */
  uint32_t key;
  uint32_t generation; /* the value of the gate this thread last acted on */
  uint32_t session;    /* counts recordings, across forks; 0: not recording */
  uint32_t busy;       /* inside our code, or never called outside a signal handler */
  uint32_t made;       /* all of this is filled in */
  uint32_t known_to_tracer;
  uint32_t fork_handlers; /* that run now and hold locks */
  uint32_t busy_before_fork;
  int32_t tid;
  uint32_t slot_index;
  uint32_t slot_shared;     /* several threads count in this slot: add atomically */
  uint32_t ignored;         /* __itt_thread_ignore */
  uint32_t name_given;      /* by the program; else the kernel's name is used */
  uint32_t calls_to_sample; /* until the next call whose cost is measured */
  uint32_t cost_calls;      /* how many calls that one stands for */
  uint32_t cost_stride;     /* the mean of these now */
  uint32_t cost_samples;    /* at this stride */
  uint32_t cost_random;
  char name[64];
  sigset_t fork_signals;
  void* library[SYNCLINE_LIBRARIES]; /* what each library keeps for this thread */
  /* The rest, zeroed: libsyncline_itt.so's, whose state lies thus in the page that a recorded call
   * has touched already. */
  char room[] __attribute__((aligned(64)));
};

/* The gate: 0 while nothing is recorded. Points into the block; compare *syncline_gate with
 * syncline_thread.generation and call syncline_gate_changed when they differ. */
extern SYNCLINE_EXPORT const volatile uint32_t* volatile syncline_gate;
/* How often the agent has asked this process for its stacks; 0 while it has no block. Whoever waits
 * on the gate is woken when it asks. */
SYNCLINE_EXPORT uint32_t syncline_stacks_asked(void);
/* A value that no agent writes, in a forked child: its first call makes it a block. */
#define SYNCLINE_GATE_LOOK 0xFFFFFFFFu
/* Keeps `*gate` equal to syncline_gate and `*paused` (unless NULL) to syncline_paused, for a
 * library on whose path every load counts. */
SYNCLINE_EXPORT void syncline_follow_gate(const volatile uint32_t* volatile* gate,
                                          volatile uint32_t* paused);
/* The program asked for a pause. */
extern SYNCLINE_EXPORT volatile uint32_t syncline_paused;

/* Makes the block unless there is one and marks `source` (SYNCLINE_SOURCE_*) in it. 0, or -1 when
 * this process cannot be traced. Loads the tracer; sets its time limit unless it is
 * set (abi/tracer.h). */
SYNCLINE_EXPORT int syncline_open(uint32_t source);

/* `source` is in this process, whether or not it ever makes a block: others may. */
SYNCLINE_EXPORT void syncline_loaded(uint32_t source);

/* This thread; made on first use. NULL when there is no memory. While a thread makes its calls in
 * signal handlers only, it is busy: what it needs once is allocated, which a handler may not. */
SYNCLINE_EXPORT struct syncline_thread* syncline_thread_self(void);
/* A call that would have been recorded if the thread were not busy: counts it as lost. */
SYNCLINE_EXPORT void syncline_turned_away(struct syncline_thread* thread);

/* Acts on the gate: announces the process and this thread, or says that it is off. Returns 1 when
 * this thread records now. */
SYNCLINE_EXPORT int syncline_gate_changed(struct syncline_thread* thread);
/* For a thread that has acted on an open gate and does not record, because no session took the
 * process's `on` yet: asks again, now and then. 1 when this thread records now. The caller counts
 * the calls that are lost meanwhile. */
SYNCLINE_EXPORT int syncline_gate_ask_again(struct syncline_thread* thread);

/* Names this thread, in the block and, while recording, in the trace. */
SYNCLINE_EXPORT void syncline_thread_rename(struct syncline_thread* thread, const char* name);

/* The events of this process's threads so far. */
SYNCLINE_EXPORT uint64_t syncline_events_count(void);

/* __itt_pause and __itt_resume. */
SYNCLINE_EXPORT void syncline_set_paused(struct syncline_thread* thread, int paused);

/* The id of a name, made when it is new; 0 when the table is full, and for a
 * new one in a signal handler during a fork. `bytes` without NUL. */
SYNCLINE_EXPORT uint32_t syncline_name_intern(uint8_t kind, const char* text, size_t bytes);
/* The id of a name that exists; 0 for a new one. Never waits. */
SYNCLINE_EXPORT uint32_t syncline_name_find(uint8_t kind, const char* text, size_t bytes);
/* Ids are 1 .. syncline_name_count(). */
SYNCLINE_EXPORT uint32_t syncline_name_count(void);
/* No table holds more ids than this. */
#define SYNCLINE_NAME_IDS_LIMIT ((64u << 20) / 12u)
/* The text of an id, NUL-terminated; it stays where it is. */
SYNCLINE_EXPORT const char* syncline_name_text(uint32_t id);
/* Writes syncline:name unless this recording has it. */
SYNCLINE_EXPORT void syncline_name_announce(struct syncline_thread* thread, uint32_t id);

/* For the pthread_atfork handlers of each library that holds a lock across a fork: first before it,
 * last after it. This thread is busy meanwhile: between our handlers run those of others, which may
 * allocate, and an allocator may call ITT. */
SYNCLINE_EXPORT void syncline_fork_begins(void);
SYNCLINE_EXPORT void syncline_fork_is_over(void);

/* How long LTTng-UST may wait now for a session daemon to know this process, ns; -1: for as long as
 * it wants to. */
SYNCLINE_EXPORT int64_t syncline_tracer_wait_ns(void);

/* The trace clock, ns. */
SYNCLINE_EXPORT uint64_t syncline_clock_ns(void);

/* What the recording in hand leaves out, as struct syncline_block says. Set before any thread
 * records in it. */
extern SYNCLINE_EXPORT uint32_t syncline_operators_least_us;
extern SYNCLINE_EXPORT uint32_t syncline_left_out;

/* Opens `file` from the directory of this library; NULL when it or something it needs is missing.
 */
SYNCLINE_EXPORT void* syncline_load_sibling(const char* file);

/* Called when a thread ends, before its slot is given back. `library` indexes
 * syncline_thread.library. */
SYNCLINE_EXPORT void syncline_at_thread_exit(int library, void (*call)(struct syncline_thread*));

/* Zeroed memory that is never given back, 16-byte aligned; NULL when there is none or more than a
 * limit (256 MiB) was asked for in all. */
SYNCLINE_EXPORT void* syncline_arena(size_t bytes);

/* Memory that costs nothing until it is touched. */
SYNCLINE_EXPORT void* syncline_reserve(size_t bytes);

/* ---- counting: inline, because it is on every recorded call
 * ---------------------------------------- */

/* An event was handed to the tracer (written != 0), or could not be. */
static inline void syncline_count(struct syncline_thread* thread, int written) {
  struct syncline_thread_slot* slot = thread->slot;
  uint64_t* word = written ? &slot->events : &slot->lost;
  if (__builtin_expect(thread->slot_shared, 0)) {
    __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
  } else {
    __atomic_store_n(word, *word + 1, __ATOMIC_RELAXED);
  }
}

/* A sample of the recorded calls is timed, and stands for the calls since the one before. Of the
 * first calls of a thread in a recording one in 7, later ever fewer, down to one in 251: a thread
 * that makes few calls has samples enough, and one that makes millions does not pay for them. How
 * many calls lie between two samples varies at random by a quarter: calls of several kinds come in
 * turn (begin and end), and in step with them one kind would stand for all. */
#define SYNCLINE_COST_STRIDE_MIN 7u
#define SYNCLINE_COST_STRIDE_MAX 251u

/* A time of which differences count, in ticks of the processor's time-stamp counter. Not of a
 * clock: what reading that takes in the midst of a program, where its code and data are in no
 * cache, is as much as a call, and would be taken for the call's. Where there is no such counter,
 * ns. */
extern SYNCLINE_EXPORT uint32_t syncline_cost_has_tsc;
SYNCLINE_EXPORT uint64_t syncline_cost_clock(void);
static inline uint64_t syncline_cost_ticks(void) {
#if defined(__x86_64__)
  if (__builtin_expect(syncline_cost_has_tsc, 1)) return __builtin_ia32_rdtsc();
#endif
  return syncline_cost_clock();
}
/* What passed between two readings, in ns; reading is taken off. */
SYNCLINE_EXPORT uint64_t syncline_cost_ns(uint64_t ticks);
/* The other way round, without the reading. */
SYNCLINE_EXPORT uint64_t syncline_cost_ticks_in(uint64_t ns);
/* A timed call took `ticks`. */
SYNCLINE_EXPORT void syncline_cost_end(struct syncline_thread* thread, uint64_t ticks);
/* For what happens rarely: all of it is timed. */
SYNCLINE_EXPORT void syncline_cost_timed(struct syncline_thread* thread, uint64_t spent_ns);

/* When a call began that is to be timed, in ticks; 0: this one is not. */
static inline uint64_t syncline_cost_start(struct syncline_thread* thread) {
  if (__builtin_expect(--thread->calls_to_sample != 0, 1)) return 0;
  return syncline_cost_ticks();
}
static inline void syncline_cost_stop(struct syncline_thread* thread, uint64_t begin) {
  if (__builtin_expect(begin != 0, 0)) syncline_cost_end(thread, syncline_cost_ticks() - begin);
}

#ifdef __cplusplus
}
#endif

#endif /* SYNCLINE_INSTRUMENTATION_BLOCK_BLOCK_H_ */

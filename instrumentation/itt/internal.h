/* What the files of libsyncline_itt.so share: the thread, the way into and out of a recorded call,
 * names of objects. */
#ifndef SYNCLINE_INSTRUMENTATION_ITT_INTERNAL_H_
#define SYNCLINE_INSTRUMENTATION_ITT_INTERNAL_H_

#include <stddef.h>
#include <stdint.h>

#include "instrumentation/block/block.h"
#include "instrumentation/itt/itt_abi.h"
#include "instrumentation/itt/provider.h"
#include "instrumentation/itt/side.h"

/* Index into syncline_thread.library. */
#define ITT_LIBRARY 0

/* The value of a handle whose name did not fit the name table: its text travels in the events. */
#define NAME_IN_EVENT 0xFFFFFFFFu

/* An open task: 64 bytes, so that its depth is a shift. While nothing is recorded only the first
 * two are written: no later recording has the session that an earlier task left. */
struct itt_task {
  uintptr_t domain; /* its address; plus 1 when `name` is a function */
  const void* name; /* string handle, or function */
  uint64_t session; /* the recording in which the rest was written; 0: none */
  uint32_t domain_id;
  uint32_t name_id;
  uint64_t has_id;
  struct itt_id id; /* when has_id */
};

#define TASK_DEPTH_LIMIT                                                   \
  65535u /* depth is a u16 in the events; deeper tasks are counted as lost \
          */
#define SCRATCH_BYTES 4096u

/* A string handle and its id. A thread remembers those that it used last, so that it need not ask
 * the table of all threads: a task's name is looked up on every recorded call. */
#define KNOWN_NAMES 64u
struct itt_known {
  const void* object;
  uint64_t id;
};

struct itt_thread {
  struct itt_task* top; /* where the next task goes */
  /* While the gate is shut a task between these two is only kept on the stack. When there is more
   * to do than that, `quiet_end` is NULL and `quiet_begin` beyond every task: so that one
   * comparison says both. */
  struct itt_task* quiet_end;
  struct itt_task* quiet_begin;
  struct itt_task* tasks;
  struct itt_task* limit;
  uint32_t loud;        /* not 0: there is more to do */
  uint32_t generation;  /* copy of common->generation */
  uint32_t record_gate; /* the value of the gate with which this thread records; 0: with none */
  uint32_t too_deep;    /* open tasks above the limit, which are only counted */
  /* Announced in `names_session`, as the objects were at `names_epoch`: */
  uint32_t names_session;
  uint32_t names_epoch;
  uint32_t last_domain_id; /* tasks come in runs of a domain */
  const struct itt_domain* last_domain;
  struct syncline_thread* common;
  struct itt_task* grown; /* tasks, when they no longer fit behind this structure */
  size_t bytes;           /* of this mapping */
  struct itt_known known[KNOWN_NAMES];
  char scratch[SCRATCH_BYTES];
  struct itt_task first_tasks[];
};

/* Never NULL: a thread that is not known yet has `itt_nobody`, which is loud. */
extern __thread struct itt_thread* itt_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
extern __attribute__((visibility("hidden"))) struct itt_thread itt_nobody;

/* This thread, made on first use; NULL when it is busy being made or there is no memory. */
struct itt_thread* itt_thread_make(void);
static inline struct itt_thread* ItThread(void) {
  struct itt_thread* thread = itt_self;
  return __builtin_expect(thread != &itt_nobody, 1) ? thread : itt_thread_make();
}

/* syncline_gate, one load nearer. */
extern __attribute__((visibility("hidden"))) const volatile uint32_t* volatile itt_gate;

/* Nothing is recorded, and this thread knows. */
static inline int Quiet(const struct itt_thread* thread) {
  return __builtin_expect((*itt_gate | thread->loud) == 0, 1);
}
static inline uint32_t Depth(const struct itt_thread* thread) {
  return (uint32_t)(thread->top - thread->tasks);
}

/* A recorded call. Enter says whether there is one; Leave must follow when it does. Between them
 * `busy` is set, so that an allocator or a signal handler that calls ITT is turned away (and
 * counted). */
enum itt_entry { ITT_TURNED_AWAY, ITT_QUIET, ITT_RECORD };
enum itt_entry itt_enter_slow(struct itt_thread* thread);

/* This thread records, and there is nothing to be done first. */
static inline int Records(const struct itt_thread* thread, uint32_t gate) {
  return __builtin_expect(gate != 0 && gate == thread->record_gate, 1) &&
         __builtin_expect((thread->common->busy | syncline_paused | thread->too_deep) == 0, 1);
}

static inline uint64_t Begun(struct syncline_thread* common) {
  common->busy = 1;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  return syncline_cost_start(common);
}

static inline enum itt_entry Enter(struct itt_thread* thread, uint64_t* cost) {
  struct syncline_thread* common = thread->common;
  *cost = 0;
  if (__builtin_expect(common->busy | syncline_paused | (*itt_gate ^ thread->record_gate), 0) ||
      thread->record_gate == 0) {
    const enum itt_entry entry = itt_enter_slow(thread);
    if (entry != ITT_RECORD) return entry;
  }
  *cost = Begun(common);
  return ITT_RECORD;
}

static inline void Leave(struct itt_thread* thread, uint64_t cost, int written) {
  struct syncline_thread* common = thread->common;
  syncline_count(common, written);
  syncline_cost_stop(common, cost);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  common->busy = 0;
}

/* ---- the tracer ---- */
extern __attribute__((visibility("hidden"))) const struct syncline_itt_emit* itt_emit;

/* ---- names of objects (handles.c) ---- */
extern __attribute__((visibility("hidden"))) struct side_table itt_handles;
/* 0, or -1 without memory. */
int itt_handles_start(void);
/* Of the side tables. Only while busy: a signal handler or an allocator that calls ITT while its
 * thread holds it would wait for itself. */
void itt_lock(void);
void itt_unlock(void);
/* For what is not a recorded call and takes a lock: makes this thread busy, itt_release ends it.
 * NULL when it is busy already, or cannot be known. */
struct syncline_thread* itt_occupy(void);
static inline void itt_release(struct syncline_thread* common) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  common->busy = 0;
}
/* Learns an object that somebody else made. */
void itt_adopt_domain(const struct itt_domain* domain);
void itt_adopt_string(const struct itt_string_handle* handle);
/* Counts objects adopted at an address that may have been another's: what threads remember may be
 * over. */
extern __attribute__((visibility("hidden"))) uint32_t itt_names_epoch;
/* The id of a domain or string, announced in this recording; NAME_IN_EVENT when the table is full.
 */
uint32_t itt_domain_id_slow(struct itt_thread* thread, const struct itt_domain* domain);
uint32_t itt_string_id_slow(struct itt_thread* thread, const struct itt_string_handle* handle);
/* Another recording, or another epoch. */
void itt_forget_names(struct itt_thread* thread, uint32_t epoch);

static inline struct itt_known* KnownAt(struct itt_thread* thread, const void* object) {
  const uintptr_t address = (uintptr_t)object;
  return &thread->known[(address >> 4 ^ address >> 10) % KNOWN_NAMES];
}
static inline uint32_t DomainId(struct itt_thread* thread, const struct itt_domain* domain) {
  const uint32_t epoch = __atomic_load_n(&itt_names_epoch, __ATOMIC_RELAXED);
  if (__builtin_expect(thread->last_domain == domain && thread->names_epoch == epoch, 1)) {
    return thread->last_domain_id;
  }
  return itt_domain_id_slow(thread, domain);
}
static inline uint32_t StringId(struct itt_thread* thread, const struct itt_string_handle* handle) {
  const uint32_t epoch = __atomic_load_n(&itt_names_epoch, __ATOMIC_RELAXED);
  const struct itt_known* known = KnownAt(thread, handle);
  if (__builtin_expect(known->object == handle && thread->names_epoch == epoch, 1)) {
    return (uint32_t)known->id;
  }
  return itt_string_id_slow(thread, handle);
}
/* What an event can carry: the id, or 0. */
static inline uint32_t Carried(uint32_t id) { return id == NAME_IN_EVENT ? 0 : id; }

/* Makes a name outside of a recorded call; 0 when it is refused or we are busy. */
uint32_t itt_name(uint8_t kind, const char* text, size_t bytes);

/* ---- the API, by file ---- */
struct itt_binding {
  const char* name;
  void* function;
};
extern __attribute__((visibility("hidden"))) const struct itt_binding itt_create_bindings[];
extern __attribute__((visibility("hidden"))) const struct itt_binding itt_task_bindings[];
extern __attribute__((visibility("hidden"))) const struct itt_binding itt_metadata_bindings[];
extern __attribute__((visibility("hidden"))) const struct itt_binding itt_counter_bindings[];
extern __attribute__((visibility("hidden"))) const struct itt_binding itt_mark_bindings[];
void itt_adopt_counter(struct itt_counter_info* info);
/* Closes the tasks that a thread leaves open. */
void itt_close_tasks(struct itt_thread* thread);
/* Sets `loud` and the bounds from what they depend on. */
static inline void SetLoud(struct itt_thread* thread) {
  thread->loud = thread->generation ? thread->generation : thread->too_deep;
  thread->quiet_end = thread->loud ? NULL : thread->limit;
  thread->quiet_begin = thread->loud ? (struct itt_task*)UINTPTR_MAX : thread->tasks;
}

static inline int HasId(const struct itt_id* id) { return (id->d1 | id->d2 | id->d3) != 0; }
static inline struct syncline_itt_where At(const struct itt_thread* thread) {
  const uint32_t depth = Depth(thread) ? Depth(thread) - 1 : 0;
  struct syncline_itt_where at = {thread->common->key, 0, 0, (uint16_t)depth};
  return at;
}

#endif /* SYNCLINE_INSTRUMENTATION_ITT_INTERNAL_H_ */

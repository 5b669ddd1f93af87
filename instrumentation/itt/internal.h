// SPDX-License-Identifier: Apache-2.0
/* What the files of libsyncline_itt.so share: the thread, the way into and out of a recorded call,
 * names of objects. */
#ifndef SYNCLINE_INSTRUMENTATION_ITT_INTERNAL_H_
#define SYNCLINE_INSTRUMENTATION_ITT_INTERNAL_H_

#include <stdarg.h>
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
  /* The recording in which the rest was written; 0: none. With ITT_LEFT_OUT: the task is left out
   * of that one (brief.c). */
  uint64_t session;
  uint32_t domain_id;
  uint32_t name_id;
  uint64_t has_id;
  struct itt_id id; /* when has_id */
};

#define ITT_LEFT_OUT ((uint64_t)1 << 63)

#define TASK_DEPTH_LIMIT                                                   \
  65535u /* depth is a u16 in the events; deeper tasks are counted as lost \
          */
#define SCRATCH_BYTES 4096u

/* An object that somebody else made, and its name's id. A thread remembers those that it used last,
 * so that it need not ask the table of all threads. */
#define KNOWN_NAMES 64u
struct itt_known {
  const void* object;
  uint64_t id;
};

/* A thread, in the room of its struct syncline_thread. A recorded call comes after thousands of the
 * program's own instructions and finds little of this in a cache: what it needs lies in the first
 * 64 bytes, and the first open tasks in the same page. */
struct itt_thread {
  struct itt_task* top; /* where the next task goes */
  /* While the gate is shut a task between these two is only kept on the stack. When there is more
   * to do than that, `quiet_end` is NULL and `quiet_begin` beyond every task: so that one
   * comparison says both. */
  struct itt_task* quiet_end;
  struct itt_task* quiet_begin;
  struct itt_task* tasks;
  struct itt_task* limit;
  struct syncline_thread* common;
  uint32_t record_gate; /* the value of the gate with which this thread records; 0: with none */
  uint32_t too_deep;    /* open tasks above the limit, which are only counted */
  uint32_t loud;        /* not 0: there is more to do */
  uint32_t number;      /* of the next begin or end of a task that is recorded */
  uint32_t generation;  /* copy of common->generation */
  /* `known` was announced in `names_session`, as the objects were at `names_epoch`. */
  uint32_t names_session;
  uint32_t names_epoch;
  /* Open tasks that are left out of this recording: they do not count in depths. */
  uint32_t left_out;
  uint32_t left_out_session;
  struct itt_task* grown; /* tasks, when they no longer fit behind this structure */
  char* scratch;          /* SCRATCH_BYTES */
  struct itt_known known[KNOWN_NAMES];
  struct itt_task first_tasks[] __attribute__((aligned(64)));
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

/* What every recorded call needs of the process, in one cache line. */
struct itt_shared {
  const volatile uint32_t* volatile gate; /* syncline_gate, one load nearer */
  const struct syncline_itt_emit* emit;   /* the tracer */
  int (*task_begin)(uint32_t thread, uint32_t domain, uint32_t name, uint16_t depth,
                    uint16_t number); /* of emit */
  int (*task_end)(uint32_t thread, uint32_t domain, uint32_t name, uint16_t depth, uint16_t number);
  uintptr_t objects; /* where the objects that we made begin (objects.c) */
  /* Counts objects adopted at an address that may have been another's: what threads remember may be
   * over. */
  uint32_t names_epoch;
  volatile uint32_t paused; /* copy of syncline_paused */
  /* Operators that take less, on average, are left out; in ticks. 0: none is. */
  uint64_t operators_least;
} __attribute__((aligned(64)));
extern __attribute__((visibility("hidden"))) struct itt_shared itt_shared;

/* Nothing is recorded, and this thread knows. */
static inline int Quiet(const struct itt_thread* thread) {
  return __builtin_expect((*itt_shared.gate | thread->loud) == 0, 1);
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
         __builtin_expect((thread->common->busy | itt_shared.paused | thread->too_deep) == 0, 1);
}

static inline uint64_t Begun(struct syncline_thread* common) {
  common->busy = 1;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  return syncline_cost_start(common);
}

static inline enum itt_entry Enter(struct itt_thread* thread, uint64_t* cost) {
  struct syncline_thread* common = thread->common;
  *cost = 0;
  if (__builtin_expect(common->busy | itt_shared.paused | (*itt_shared.gate ^ thread->record_gate),
                       0) ||
      thread->record_gate == 0) {
    const enum itt_entry entry = itt_enter_slow(thread);
    if (entry != ITT_RECORD) return entry;
  }
  *cost = Begun(common);
  return ITT_RECORD;
}

/* Begun is over. */
static inline void Done(struct syncline_thread* common, uint64_t cost) {
  syncline_cost_stop(common, cost);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  common->busy = 0;
}
static inline void Leave(struct itt_thread* thread, uint64_t cost, int written) {
  syncline_count(thread->common, written);
  Done(thread->common, cost);
}

/* ---- objects that we made (objects.c) ----
 * They lie in one range of addresses, each behind its name's id: what is to be known of a domain or
 * a string handle lies where the caller has just been or will be next. */
#define OBJECTS_BYTES (64u << 20)
struct itt_object {
  uint32_t id;      /* of its name; 0: not asked yet */
  uint32_t session; /* the recording in which that was announced; 0: none */
};
/* No program's address is within OBJECTS_BYTES of this. */
#define ITT_NO_OBJECTS ((uintptr_t)1 << 63)
/* What lies in front of the object; NULL when it is not of this range. */
static inline struct itt_object* Object(const void* object) {
  return (uintptr_t)object - itt_shared.objects < OBJECTS_BYTES
             ? (struct itt_object*)(uintptr_t)object - 1
             : NULL;
}
/* `bytes` for an object with a name of this id (0: ask it later), then a copy of the text: in the
 * range while it has room, then elsewhere. NULL without memory. */
void* itt_object_new(uint32_t id, size_t bytes, const char* text, size_t text_bytes, char** copy);
/* Where an object lies in the range, in 4 bytes; 0: not there. Back: NULL. */
#define OBJECTS_ALIGNMENT 64u
static inline uint32_t itt_object_place(const void* object) {
  const struct itt_object* own = Object(object);
  return own ? 1 + (uint32_t)(((uintptr_t)own - itt_shared.objects) / OBJECTS_ALIGNMENT) : 0;
}
static inline void* itt_object_at(uint32_t place) {
  if (place == 0) return NULL;
  const uintptr_t own = itt_shared.objects + (uintptr_t)(place - 1) * OBJECTS_ALIGNMENT;
  return (struct itt_object*)own + 1;
}
/* Without it, or without memory for it, every object lies elsewhere. */
void itt_objects_start(void);

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
/* The id of a domain or string, announced in this recording; NAME_IN_EVENT when the table is full.
 */
uint32_t itt_id_slow(struct itt_thread* thread, const void* object, uint8_t kind);
/* Another recording, or another epoch. */
void itt_forget_names(struct itt_thread* thread, uint32_t epoch);

static inline struct itt_known* KnownAt(struct itt_thread* thread, const void* object) {
  const uintptr_t address = (uintptr_t)object;
  return &thread->known[(address >> 4 ^ address >> 10) % KNOWN_NAMES];
}
static inline uint32_t IdOf(struct itt_thread* thread, const void* object, uint8_t kind) {
  const struct itt_object* own = Object(object);
  if (own && __atomic_load_n(&own->session, __ATOMIC_ACQUIRE) == thread->common->session) {
    return own->id;
  }
  const struct itt_known* known = KnownAt(thread, object);
  if (known->object == object &&
      thread->names_epoch == __atomic_load_n(&itt_shared.names_epoch, __ATOMIC_RELAXED)) {
    return (uint32_t)known->id;
  }
  return itt_id_slow(thread, object, kind);
}
static inline uint32_t DomainId(struct itt_thread* thread, const struct itt_domain* domain) {
  return IdOf(thread, domain, SYNCLINE_NAME_DOMAIN);
}
static inline uint32_t StringId(struct itt_thread* thread, const struct itt_string_handle* handle) {
  return IdOf(thread, handle, SYNCLINE_NAME_STRING);
}
/* What an event can carry: the id, or 0. */
static inline uint32_t Carried(uint32_t id) { return id == NAME_IN_EVENT ? 0 : id; }

/* Makes a name outside of a recorded call; 0 when it is refused or we are busy. */
uint32_t itt_name(uint8_t kind, const char* text, size_t bytes);

/* ---- operators that are left out (brief.c) ---- */
/* Of a recording that has just begun, as far as this thread knows. */
void itt_brief_begins(void);
/* Without memory for it nothing is ever left out. */
void itt_brief_start(void);
/* Whether this recording does without a task that begins now, the newest; it is then marked so, and
 * itt_left_out_ends belongs to its end. It has no id, and is not known by a function. */
int itt_leaves_out(struct itt_thread* thread, struct itt_task* task);
void itt_left_out_ends(const struct itt_task* task);

static inline int LeavesOutAny(void) {
  return __builtin_expect(__atomic_load_n(&itt_shared.operators_least, __ATOMIC_RELAXED) != 0, 0);
}
static inline uint32_t OpenLeftOut(const struct itt_thread* thread) {
  return LeavesOutAny() && thread->left_out_session == thread->common->session ? thread->left_out
                                                                               : 0;
}
/* What belongs to the newest task is then of one that nobody sees. */
static inline int NewestIsLeftOut(const struct itt_thread* thread) {
  return LeavesOutAny() && thread->top > thread->tasks &&
         thread->top[-1].session == (thread->common->session | ITT_LEFT_OUT);
}

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
/* What both of __itt_formatted_metadata_add do. */
void itt_formatted(const struct itt_domain* domain, const struct itt_id* id,
                   const struct itt_string_handle* format, va_list arguments);
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
  const uint32_t open = Depth(thread) - OpenLeftOut(thread);
  const uint32_t depth = open ? open - 1 : 0;
  struct syncline_itt_where at = {thread->common->key, 0, 0, (uint16_t)depth, 0};
  return at;
}

#endif /* SYNCLINE_INSTRUMENTATION_ITT_INTERNAL_H_ */

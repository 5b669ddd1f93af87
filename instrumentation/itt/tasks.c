// SPDX-License-Identifier: Apache-2.0
/* Tasks: a stack for each thread, kept at all times, so that a task that is open when a recording
 * begins still has its name when it ends. A task's end carries no name: it closes the newest open
 * task. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "instrumentation/itt/internal.h"

static int MoveToBigger(struct itt_thread* thread) {
  const size_t old_bytes = (size_t)((char*)thread->limit - (char*)thread->tasks);
  const uint32_t depth = Depth(thread);
  struct itt_task* old = thread->grown;
  struct itt_task* bigger = depth < TASK_DEPTH_LIMIT ? syncline_reserve(2 * old_bytes) : NULL;
  if (!bigger) return 0;
  memcpy(bigger, thread->tasks, old_bytes);
  thread->tasks = thread->grown = bigger;
  thread->top = bigger + depth;
  thread->limit = (struct itt_task*)((char*)bigger + 2 * old_bytes);
  if (old) munmap(old, old_bytes);
  return 1;
}

/* What calls ITT meanwhile, a signal handler or a munmap of the program's own, is turned away. */
static int Grow(struct itt_thread* thread) {
  struct syncline_thread* common = thread->common;
  const uint32_t was_busy = common->busy;
  common->busy = 1;
  thread->quiet_end = NULL;
  thread->quiet_begin = (struct itt_task*)UINTPTR_MAX;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  const int grown = MoveToBigger(thread);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  SetLoud(thread);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  common->busy = was_busy;
  return grown;
}

/* `domain` as in struct itt_task. */
static inline struct itt_task* PushInto(struct itt_thread* thread, uintptr_t domain,
                                        const void* name) {
  struct itt_task* task = thread->top;
  thread->top = task + 1;
  task->domain = domain;
  task->name = name;
  return task;
}

/* Counts the task as open; NULL when there is no room to remember it. */
static struct itt_task* Push(struct itt_thread* thread, uintptr_t domain, const void* name) {
  if (thread->too_deep || (thread->top >= thread->limit && !Grow(thread))) {
    thread->too_deep++;
    SetLoud(thread);
    return NULL;
  }
  struct itt_task* task = PushInto(thread, domain, name);
  task->session = 0;
  return task;
}

#define BY_FUNCTION ((uintptr_t)1)
static inline int ByFunction(const struct itt_task* task) {
  return (task->domain & BY_FUNCTION) != 0;
}

static struct itt_task* Pop(struct itt_thread* thread) {
  if (thread->too_deep) {
    thread->too_deep--;
    SetLoud(thread);
    return NULL;
  }
  if (thread->top == thread->tasks) return NULL; /* begun before we were there */
  return --thread->top;
}

static const struct itt_task* Newest(const struct itt_thread* thread) {
  return thread->too_deep || thread->top == thread->tasks ? NULL : thread->top - 1;
}

/* Fills in what the events carry; the task's names are announced. */
static inline void ResolveAs(struct itt_thread* thread, struct itt_task* task, const void* domain,
                             const void* name) {
  task->domain_id = Carried(DomainId(thread, domain));
  task->name_id = StringId(thread, name);
  task->session = thread->common->session;
  task->has_id = 0;
}
static inline void Resolve(struct itt_thread* thread, struct itt_task* task) {
  ResolveAs(thread, task, (const void*)(task->domain & ~BY_FUNCTION),
            ByFunction(task) ? NULL : task->name);
}

/* Of a recorded task: those that are left out lie deeper, or count as if they were not there. */
static inline uint16_t DepthOf(const struct itt_thread* thread, const struct itt_task* task) {
  return (uint16_t)((uint32_t)(task - thread->tasks) - OpenLeftOut(thread));
}
/* Of the thread's next begin or end: call it once for each. */
static inline uint16_t NextNumber(struct itt_thread* thread) { return (uint16_t)thread->number++; }
static inline struct syncline_itt_where AtTask(struct itt_thread* thread,
                                               const struct itt_task* task) {
  struct syncline_itt_where at = {thread->common->key, task->domain_id, Carried(task->name_id),
                                  DepthOf(thread, task), NextNumber(thread)};
  return at;
}

static __attribute__((noinline)) int EmitText(struct itt_thread* thread,
                                              const struct itt_task* task) {
  const struct syncline_itt_where at = AtTask(thread, task);
  return itt_shared.emit->task_begin_text(&at, ((const struct itt_string_handle*)task->name)->text);
}

/* Of a task by name, without ids. */
static inline int EmitPlain(struct itt_thread* thread, const struct itt_task* task) {
  return __builtin_expect(task->name_id == NAME_IN_EVENT, 0)
             ? EmitText(thread, task)
             : itt_shared.task_begin(thread->common->key, task->domain_id, task->name_id,
                                     DepthOf(thread, task), NextNumber(thread));
}

/* `id` and `parent` lie where the caller pushed them, word by word: read word by word, or the loads
 * stall. */
static inline int EmitBegin(struct itt_thread* thread, struct itt_task* task,
                            const struct itt_id* id, const struct itt_id* parent) {
  const int in_event = !ByFunction(task) && task->name_id == NAME_IN_EVENT;
  if (HasId(id)) {
    task->has_id = 1;
    task->id = *id;
  }
  if (in_event) return EmitText(thread, task);
  const struct syncline_itt_where at = AtTask(thread, task);
  if (ByFunction(task)) {
    return itt_shared.emit->task_begin_fn(&at, (uintptr_t)task->name, id, parent);
  }
  if (HasId(id) || HasId(parent)) return itt_shared.emit->task_begin_id(&at, id, parent);
  return itt_shared.task_begin(at.thread, at.domain, at.name, at.depth, at.number);
}

/* Whether the newest task is left out of the recording. */
static inline int LeavesOut(struct itt_thread* thread, struct itt_task* task) {
  if (!itt_leaves_out(thread, task)) return 0;
  const uint32_t session = (uint32_t)thread->common->session;
  if (thread->left_out_session != session) {
    thread->left_out_session = session;
    thread->left_out = 0;
  }
  thread->left_out++;
  return 1;
}

static inline int IsLeftOut(const struct itt_thread* thread, const struct itt_task* task) {
  return task->session == (thread->common->session | ITT_LEFT_OUT);
}

/* Everything but the quiet case; takes no room in the registers of that. */
static __attribute__((noinline)) void BeginLoud(uintptr_t domain, const void* name,
                                                struct itt_id id, struct itt_id parent) {
  struct itt_thread* thread = ItThread();
  uint64_t cost;
  if (!thread) return;
  const enum itt_entry entry = Enter(thread, &cost);
  if (entry == ITT_TURNED_AWAY) return; /* and so will be its end */
  struct itt_task* task = Push(thread, domain, name);
  if (entry != ITT_RECORD) return;
  int written = 0;
  if (task && LeavesOutAny() && !ByFunction(task) && !HasId(&id) && !HasId(&parent) &&
      LeavesOut(thread, task)) {
    Done(thread->common, cost);
    return;
  }
  if (task) {
    task->id.d2 = 0; /* not looked at by itt_leaves_out, or of no use to it */
    Resolve(thread, task);
    written = EmitBegin(thread, task, &id, &parent);
  }
  Leave(thread, cost, written);
}

/* What BeginLoud does of a task that has no ids, in a thread that records: this one comes by the
 * million. */
static SYNCLINE_HOT __attribute__((noinline)) void BeginRecorded(
    struct itt_thread* thread, const struct itt_domain* domain,
    const struct itt_string_handle* name) {
  struct syncline_thread* common = thread->common;
  const uint64_t cost = Begun(common);
  struct itt_task* task = PushInto(thread, (uintptr_t)domain, name);
  if (LeavesOutAny() && LeavesOut(thread, task)) {
    Done(common, cost);
    return;
  }
  ResolveAs(thread, task, domain, name);
  Leave(thread, cost, EmitPlain(thread, task));
}

static SYNCLINE_HOT void TaskBegin(const struct itt_domain* domain, struct itt_id id,
                                   struct itt_id parent, struct itt_string_handle* name) {
  struct itt_thread* thread = itt_self;
  const uint32_t gate = *itt_shared.gate;
  if (__builtin_expect(gate == 0 && thread->top < thread->quiet_end, 1)) {
    PushInto(thread, (uintptr_t)domain, name);
    return;
  }
  if (Records(thread, gate) && thread->top < thread->limit && !HasId(&id) && !HasId(&parent)) {
    BeginRecorded(thread, domain, name);
    return;
  }
  BeginLoud((uintptr_t)domain, name, id, parent);
}

static void TaskBeginFn(const struct itt_domain* domain, struct itt_id id, struct itt_id parent,
                        void* function) {
  struct itt_thread* thread = itt_self;
  if (__builtin_expect(*itt_shared.gate == 0 && thread->top < thread->quiet_end, 1)) {
    PushInto(thread, (uintptr_t)domain | BY_FUNCTION, function);
    return;
  }
  BeginLoud((uintptr_t)domain | BY_FUNCTION, function, id, parent);
}

static __attribute__((noinline)) void EndLoud(void) {
  struct itt_thread* thread = ItThread();
  uint64_t cost;
  if (!thread) return;
  const enum itt_entry entry = Enter(thread, &cost);
  if (entry == ITT_TURNED_AWAY) return;
  struct itt_task* task = Pop(thread);
  if (task && IsLeftOut(thread, task)) {
    thread->left_out--;
    if (entry != ITT_RECORD) return;
    itt_left_out_ends(task);
    Done(thread->common, cost);
    return;
  }
  if (entry != ITT_RECORD) return;
  int written = 0;
  if (task) {
    if (task->session != thread->common->session) Resolve(thread, task);
    const struct syncline_itt_where at = AtTask(thread, task);
    written = itt_shared.task_end(at.thread, at.domain, at.name, at.depth, at.number);
  }
  Leave(thread, cost, written);
}

/* What EndLoud does of a task that began in this recording. */
static SYNCLINE_HOT __attribute__((noinline)) void EndRecorded(struct itt_thread* thread) {
  struct syncline_thread* common = thread->common;
  const uint64_t cost = Begun(common);
  const struct itt_task* task = --thread->top;
  Leave(thread, cost,
        itt_shared.task_end(common->key, task->domain_id, Carried(task->name_id),
                            DepthOf(thread, task), NextNumber(thread)));
}

static SYNCLINE_HOT __attribute__((noinline)) void EndLeftOut(struct itt_thread* thread) {
  const uint64_t cost = Begun(thread->common);
  thread->left_out--;
  itt_left_out_ends(--thread->top);
  Done(thread->common, cost);
}

static SYNCLINE_HOT void TaskEnd(const struct itt_domain* domain) {
  (void)domain;
  struct itt_thread* thread = itt_self;
  const uint32_t gate = *itt_shared.gate;
  if (__builtin_expect(gate == 0 && thread->top > thread->quiet_begin, 1)) {
    thread->top--;
    return;
  }
  if (Records(thread, gate) && thread->top > thread->tasks &&
      thread->top[-1].session == thread->common->session) {
    EndRecorded(thread);
    return;
  }
  if (Records(thread, gate) && thread->top > thread->tasks && IsLeftOut(thread, thread->top - 1)) {
    EndLeftOut(thread);
    return;
  }
  EndLoud();
}

void itt_close_tasks(struct itt_thread* thread) {
  while ((thread->too_deep || Depth(thread) > 0) && !thread->common->busy && !Quiet(thread)) {
    EndLoud();
  }
}

/* With a clock domain and a time: recorded at the time of the call (docs/event-schema.md). */
static void TaskBeginEx(const struct itt_domain* domain, struct itt_clock_domain* clock,
                        unsigned long long timestamp, struct itt_id id, struct itt_id parent,
                        struct itt_string_handle* name) {
  (void)clock, (void)timestamp;
  TaskBegin(domain, id, parent, name);
}
static void TaskBeginFnEx(const struct itt_domain* domain, struct itt_clock_domain* clock,
                          unsigned long long timestamp, struct itt_id id, struct itt_id parent,
                          void* function) {
  (void)clock, (void)timestamp;
  TaskBeginFn(domain, id, parent, function);
}
static void TaskEndEx(const struct itt_domain* domain, struct itt_clock_domain* clock,
                      unsigned long long timestamp) {
  (void)clock, (void)timestamp;
  TaskEnd(domain);
}

/* ---- overlapped tasks and regions
 * ------------------------------------------------------------------ */

/* Names of open overlapped tasks, so that their ends carry them too. A table of a fixed size, in
 * which a newcomer without room replaces somebody: then an end carries name 0, and readers pair by
 * id as they must anyway. */
#define OVERLAPPED_SLOTS 4096u
#define OVERLAPPED_PROBES 8u
struct Overlapped {
  uint32_t taken; /* by a thread, for a few loads or stores; never waited for */
  uint32_t used;
  struct itt_id id;
  const struct itt_string_handle* name;
};
static struct Overlapped overlapped[OVERLAPPED_SLOTS];

static struct Overlapped* TakeSlot(const struct itt_id* id, uint32_t probe) {
  const uint64_t hash = side_hash(id->d1 ^ side_hash(id->d2 ^ side_hash(id->d3)));
  struct Overlapped* slot = &overlapped[(hash + probe) % OVERLAPPED_SLOTS];
  return __atomic_exchange_n(&slot->taken, 1, __ATOMIC_ACQUIRE) == 0 ? slot : NULL;
}
static void GiveSlot(struct Overlapped* slot) {
  __atomic_store_n(&slot->taken, 0, __ATOMIC_RELEASE);
}

static void RememberOverlapped(const struct itt_id* id, const struct itt_string_handle* name) {
  int stored = 0;
  for (uint32_t probe = 0; probe <= OVERLAPPED_PROBES && !stored; probe++) {
    const int last = probe == OVERLAPPED_PROBES; /* round again: replace the first */
    struct Overlapped* slot = TakeSlot(id, last ? 0 : probe);
    if (!slot) continue;
    if (!slot->used || last || memcmp(&slot->id, id, sizeof *id) == 0) {
      slot->used = 1;
      slot->id = *id;
      slot->name = name;
      stored = 1;
    }
    GiveSlot(slot);
  }
}

static const struct itt_string_handle* ForgetOverlapped(const struct itt_id* id) {
  const struct itt_string_handle* name = NULL;
  int found = 0;
  for (uint32_t probe = 0; probe < OVERLAPPED_PROBES && !found; probe++) {
    struct Overlapped* slot = TakeSlot(id, probe);
    if (!slot) continue;
    if (slot->used && memcmp(&slot->id, id, sizeof *id) == 0) {
      name = slot->name;
      slot->used = 0;
      found = 1;
    }
    GiveSlot(slot);
  }
  return name;
}

static void TaskBeginOverlapped(const struct itt_domain* domain, struct itt_id id,
                                struct itt_id parent, struct itt_string_handle* name) {
  struct itt_thread* thread = ItThread();
  if (!thread) return;
  RememberOverlapped(&id, name);
  uint64_t cost;
  if (Quiet(thread) || Enter(thread, &cost) != ITT_RECORD) return;
  struct syncline_itt_where at = At(thread);
  at.domain = Carried(DomainId(thread, domain));
  at.name = Carried(StringId(thread, name));
  Leave(thread, cost, itt_shared.emit->task_begin_overlapped(&at, &id, &parent));
}

static void TaskEndOverlapped(const struct itt_domain* domain, struct itt_id id) {
  struct itt_thread* thread = ItThread();
  if (!thread) return;
  const struct itt_string_handle* name = ForgetOverlapped(&id);
  uint64_t cost;
  if (Quiet(thread) || Enter(thread, &cost) != ITT_RECORD) return;
  struct syncline_itt_where at = At(thread);
  at.domain = Carried(DomainId(thread, domain));
  at.name = Carried(StringId(thread, name));
  Leave(thread, cost, itt_shared.emit->task_end_overlapped(&at, &id));
}

static void TaskBeginOverlappedEx(const struct itt_domain* domain, struct itt_clock_domain* clock,
                                  unsigned long long timestamp, struct itt_id id,
                                  struct itt_id parent, struct itt_string_handle* name) {
  (void)clock, (void)timestamp;
  TaskBeginOverlapped(domain, id, parent, name);
}
static void TaskEndOverlappedEx(const struct itt_domain* domain, struct itt_clock_domain* clock,
                                unsigned long long timestamp, struct itt_id id) {
  (void)clock, (void)timestamp;
  TaskEndOverlapped(domain, id);
}

/* ---- relations
 * ------------------------------------------------------------------------------------- */

#define RELATION_CHILD_OF 5

/* In a recorded call, which this ends. */
static void EmitRelation(struct itt_thread* thread, uint64_t cost, const struct itt_domain* domain,
                         struct itt_id head, int relation, struct itt_id tail) {
  struct syncline_itt_where at = At(thread);
  at.domain = Carried(DomainId(thread, domain));
  Leave(thread, cost, itt_shared.emit->relation(&at, (uint8_t)relation, &head, &tail));
}

static void RelationAdd(const struct itt_domain* domain, struct itt_id head, int relation,
                        struct itt_id tail) {
  struct itt_thread* thread = ItThread();
  uint64_t cost;
  if (!thread || Quiet(thread) || Enter(thread, &cost) != ITT_RECORD) return;
  EmitRelation(thread, cost, domain, head, relation, tail);
}

/* The thread's recording is known once it has entered: a task of the last one is not current. */
static void RelationAddToCurrent(const struct itt_domain* domain, int relation,
                                 struct itt_id tail) {
  struct itt_thread* thread = ItThread();
  uint64_t cost;
  if (!thread || Quiet(thread) || Enter(thread, &cost) != ITT_RECORD) return;
  if (NewestIsLeftOut(thread)) {
    Done(thread->common, cost);
    return;
  }
  const struct itt_task* newest = Newest(thread);
  /* No id: the thread's current task. One of another domain has none in this. */
  struct itt_id head = {0, 0, 0};
  const int is_of_domain = newest && (newest->domain & ~(uintptr_t)1) == (uintptr_t)domain;
  if (is_of_domain && newest->session == thread->common->session && newest->has_id) {
    head = newest->id;
  }
  EmitRelation(thread, cost, domain, head, relation, tail);
}

static void RelationAddEx(const struct itt_domain* domain, struct itt_clock_domain* clock,
                          unsigned long long timestamp, struct itt_id head, int relation,
                          struct itt_id tail) {
  (void)clock, (void)timestamp;
  RelationAdd(domain, head, relation, tail);
}
static void RelationAddToCurrentEx(const struct itt_domain* domain, struct itt_clock_domain* clock,
                                   unsigned long long timestamp, int relation, struct itt_id tail) {
  (void)clock, (void)timestamp;
  RelationAddToCurrent(domain, relation, tail);
}

/* A group has neither begin nor end: what there is to say is whose child it is. */
static void TaskGroup(const struct itt_domain* domain, struct itt_id id, struct itt_id parent,
                      struct itt_string_handle* name) {
  (void)name;
  if (HasId(&parent)) RelationAdd(domain, id, RELATION_CHILD_OF, parent);
}

const struct itt_binding itt_task_bindings[] = {
    {"__itt_task_begin", TaskBegin},
    {"__itt_task_begin_fn", TaskBeginFn},
    {"__itt_task_end", TaskEnd},
    {"__itt_task_begin_ex", TaskBeginEx},
    {"__itt_task_begin_fn_ex", TaskBeginFnEx},
    {"__itt_task_end_ex", TaskEndEx},
    {"__itt_task_begin_overlapped", TaskBeginOverlapped},
    {"__itt_task_begin_overlapped_ex", TaskBeginOverlappedEx},
    {"__itt_task_end_overlapped", TaskEndOverlapped},
    {"__itt_task_end_overlapped_ex", TaskEndOverlappedEx},
    {"__itt_region_begin", TaskBeginOverlapped},
    {"__itt_region_end", TaskEndOverlapped},
    {"__itt_task_group", TaskGroup},
    {"__itt_relation_add", RelationAdd},
    {"__itt_relation_add_ex", RelationAddEx},
    {"__itt_relation_add_to_current", RelationAddToCurrent},
    {"__itt_relation_add_to_current_ex", RelationAddToCurrentEx},
    {NULL, NULL},
};

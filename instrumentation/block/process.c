// SPDX-License-Identifier: Apache-2.0
/* The process: its one block, the gate, fork and exit. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "instrumentation/abi/tracer.h"
#include "instrumentation/block/internal.h"
#include "instrumentation/block/monotonic.h"

static const uint32_t closed = 0;                /* the gate of a process without a block */
static const uint32_t look = SYNCLINE_GATE_LOOK; /* the gate of a child that has made none yet */
const volatile uint32_t* volatile syncline_gate = &closed;
static struct Follower {
  const volatile uint32_t* volatile* gate;
  volatile uint32_t* paused;
} followers[SYNCLINE_LIBRARIES];
volatile uint32_t syncline_paused;
uint32_t syncline_operators_least_us;
uint32_t syncline_left_out;

/* Beside the gate, on the agent's cache line. */
uint32_t syncline_stacks_asked(void) {
  const volatile uint32_t* const gate = syncline_gate;
  if (gate == &closed || gate == &look) return 0;
  return gate[(offsetof(struct syncline_block, stacks_asked) -
               offsetof(struct syncline_block, generation)) /
              sizeof(uint32_t)];
}

static void SetGate(const volatile uint32_t* gate) {
  syncline_gate = gate;
  for (int i = 0; i < SYNCLINE_LIBRARIES; i++) {
    if (followers[i].gate) *followers[i].gate = gate;
  }
}

void syncline_follow_gate(const volatile uint32_t* volatile* gate, volatile uint32_t* paused) {
  syncline_lock();
  for (int i = 0; i < SYNCLINE_LIBRARIES; i++) {
    if (followers[i].gate && followers[i].gate != gate) continue;
    followers[i] = (struct Follower){gate, paused};
    *gate = syncline_gate;
    if (paused) *paused = syncline_paused;
    break;
  }
  syncline_unlock();
}

/* Without a tracer: nobody takes the events. */
static int NoOn(uint32_t a, uint32_t b, int32_t c, uint64_t d, uint64_t e) {
  (void)a, (void)b, (void)c, (void)d, (void)e;
  return 0;
}
static int NoOff(uint32_t a, uint32_t b, uint64_t c, uint64_t d, uint64_t e) {
  (void)a, (void)b, (void)c, (void)d, (void)e;
  return 0;
}
static int NoPause(uint32_t a) {
  (void)a;
  return 0;
}
static int NoThread(uint32_t a, uint32_t b, int32_t c, const char* d) {
  (void)a, (void)b, (void)c, (void)d;
  return 0;
}
static int NoName(uint32_t a, uint32_t b, uint8_t c, const char* d) {
  (void)a, (void)b, (void)c, (void)d;
  return 0;
}
static void NoFork(sigset_t* saved) { (void)saved; }
static void NoBegin(void) {}
static const struct syncline_emit no_tracer = {
    NoOn,    NoOff,  NoPause, NoPause, NoThread, NoName, syncline_monotonic_ns,
    NoBegin, NoFork, NoFork,  NoFork};

struct syncline_process syncline_process = {.emit = &no_tracer};

/* Two locks, taken in this order.
 * `gate_mutex`: acting on the gate, one thread after the other; the tracer is called under it. A
 * fork does not take it and the child starts it anew: LTTng-UST holds locks of its own across a
 * fork, and a thread inside the tracer may be waiting for one of them.
 * `mutex` (lock.c): the data. Held across a fork; hence nothing is called under it that has locks
 * or that allocates, the tracer least of all. */
static pthread_mutex_t gate_mutex = PTHREAD_MUTEX_INITIALIZER;

uint64_t syncline_clock_ns(void) { return syncline_process.emit->clock_ns(); }

/* ---- the gate
 * -------------------------------------------------------------------------------------- */

/* While the tracer does not take `on` it is asked again, not more often than this. */
#define ASK_AGAIN_NS 100000u
static uint64_t ask_again_ns; /* when; MONOTONIC, guarded by gate_mutex, looked at without */

static void RecordingEnds(struct syncline_thread* thread) {
  struct syncline_block* block = syncline_process.files.block;
  const struct syncline_sums sums = syncline_thread_sums();
  block->off_monotonic_ns = syncline_monotonic_ns();
  /* `off` counts itself: the numbers are those of the whole recording. */
  if (syncline_process.session != 0 &&
      syncline_process.emit->off(
          block->generation_seen, block->process_key, sums.events - block->events_at_on + 1,
          sums.lost - block->lost_at_on, sums.cost_ns - block->cost_ns_at_on)) {
    syncline_count(thread, 1); /* and when the session is gone already, nothing is lost by that */
  }
  __atomic_store_n(&syncline_process.session, 0, __ATOMIC_RELAXED);
}

/* Coverage begins when a session takes `on`. In a program that has just begun LTTng-UST may know of
 * its sessions later than we of the open gate, and would drop events without a word: until then
 * calls are counted as lost. */
static void WriteOn(struct syncline_thread* thread) {
  struct syncline_block* block = syncline_process.files.block;
  const uint64_t now = syncline_monotonic_ns();
  if (!syncline_process.emit->on(block->recording_generation, block->process_key, block->pid,
                                 block->pid_namespace, block->start_ticks)) {
    __atomic_store_n(&ask_again_ns, now + ASK_AGAIN_NS, __ATOMIC_RELAXED);
    return;
  }
  block->on_monotonic_ns = now;
  block->lost_before_on = syncline_thread_sums().lost - block->lost_at_on;
  __atomic_store_n(&syncline_process.session, ++syncline_process.sessions, __ATOMIC_RELAXED);
  syncline_count(thread, 1);
  if (syncline_paused) syncline_count(thread, syncline_process.emit->pause(thread->key));
}

static void RecordingBegins(struct syncline_thread* thread, uint32_t generation) {
  struct syncline_block* block = syncline_process.files.block;
  const struct syncline_sums sums = syncline_thread_sums();
  block->events_at_on = sums.events;
  block->lost_at_on = sums.lost;
  block->cost_ns_at_on = sums.cost_ns;
  syncline_cost_recording_begins(block);
  block->lost_before_on = 0;
  block->asked_monotonic_ns = syncline_monotonic_ns();
  block->on_monotonic_ns = block->off_monotonic_ns = 0;
  block->pauses = syncline_paused != 0;
  block->recording_generation = generation;
  __atomic_store_n(&syncline_operators_least_us,
                   __atomic_load_n(&block->operators_least_us, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
  __atomic_store_n(&syncline_left_out, __atomic_load_n(&block->left_out, __ATOMIC_RELAXED),
                   __ATOMIC_RELAXED);
  syncline_process.ever_recorded = 1;
  WriteOn(thread);
}

/* How a thread answers the gate. */
struct Answer {
  uint32_t generation;
  uint32_t session; /* 0: it does not record */
};

/* What another thread has done already: nothing is left to do but to follow. */
static int IsDone(const struct syncline_thread* thread, uint32_t gate, struct Answer* answer) {
  if (gate == 0 || gate == SYNCLINE_GATE_LOOK || thread->key == 0) return 0;
  if (!__atomic_load_n(&syncline_process.ready, __ATOMIC_ACQUIRE)) return 0;
  const struct syncline_block* block = syncline_process.files.block;
  if (__atomic_load_n(&block->generation_seen, __ATOMIC_ACQUIRE) != gate) return 0;
  *answer = (struct Answer){gate, __atomic_load_n(&syncline_process.session, __ATOMIC_RELAXED)};
  return answer->session != 0;
}

/* The lock of the gate is held. `gate`: the value that was acted on. */
static struct Answer ActOnGate(struct syncline_thread* thread, uint32_t* gate) {
  int ready = __atomic_load_n(&syncline_process.ready, __ATOMIC_ACQUIRE) && thread->key != 0;
  if (!ready && syncline_lock_unless_forking()) {
    ready = syncline_process_ensure() == 0;
    if (ready && thread->key == 0) syncline_thread_enter(thread);
    syncline_unlock();
  }
  uint32_t generation = *gate = *syncline_gate;
  if (!ready) return (struct Answer){0, 0};
  struct syncline_block* block = syncline_process.files.block;
  if (generation == SYNCLINE_GATE_LOOK) generation = 0;
  if (generation != block->generation_seen) {
    if (block->generation_seen != 0) RecordingEnds(thread);
    if (generation != 0) RecordingBegins(thread, generation);
    __atomic_store_n(&block->generation_seen, generation, __ATOMIC_RELEASE);
  } else if (generation != 0 && syncline_process.session == 0) {
    WriteOn(thread);
  }
  return (struct Answer){generation, generation ? syncline_process.session : 0};
}

/* Stands after a look at the gate and before one at its lock, and the other way round in who gives
 * the lock back. One of two such threads comes first here: so the second sees what the first did,
 * and either the lock is seen free, or the closed gate is seen by who held the lock. */
static uint32_t order;
static void InOrder(void) { __atomic_fetch_add(&order, 1, __ATOMIC_ACQ_REL); }

/* Waits for another thread only while that one says `on`: a call before it would be lost. At a
 * recording's end the other is left to it, and looks at the gate again when it is done: it may have
 * looked before the gate was closed. */
static struct Answer AnswerGate(struct syncline_thread* thread) {
  struct Answer answer;
  uint32_t gate = *syncline_gate;
  if (IsDone(thread, gate, &answer)) return answer;
  InOrder();
  if (pthread_mutex_trylock(&gate_mutex) != 0) {
    if (gate == 0) return (struct Answer){0, 0};
    pthread_mutex_lock(&gate_mutex);
  }
  for (;;) {
    answer = ActOnGate(thread, &gate);
    pthread_mutex_unlock(&gate_mutex);
    InOrder();
    if (*syncline_gate == gate || pthread_mutex_trylock(&gate_mutex) != 0) return answer;
  }
}

int syncline_gate_changed(struct syncline_thread* thread) {
  if (thread->busy || !syncline_thread_is_known_to_tracer(thread)) return 0;
  const int saved = errno;
  thread->busy = 1;
  const uint64_t begin = syncline_cost_ticks();
  const struct Answer answer = AnswerGate(thread);
  thread->generation = answer.generation;
  if (answer.session != thread->session) {
    thread->session = answer.session;
    syncline_cost_restart(thread);
    if (answer.session) syncline_thread_announce(thread);
  }
  if (answer.session) syncline_cost_timed(thread, syncline_cost_ns(syncline_cost_ticks() - begin));
  thread->busy = 0;
  errno = saved;
  return answer.session != 0;
}

int syncline_gate_ask_again(struct syncline_thread* thread) {
  if (syncline_monotonic_ns() < __atomic_load_n(&ask_again_ns, __ATOMIC_RELAXED)) return 0;
  return syncline_gate_changed(thread);
}

void syncline_set_paused(struct syncline_thread* thread, int paused) {
  const int saved = errno;
  const int locked = syncline_lock_unless_forking(); /* while forking nobody else changes these */
  const int changes = (syncline_paused != 0) != (paused != 0);
  syncline_paused = paused != 0;
  for (int i = 0; i < SYNCLINE_LIBRARIES; i++) {
    if (followers[i].paused) *followers[i].paused = syncline_paused;
  }
  const int ready = locked ? syncline_process_ensure() == 0 : (int)syncline_process.ready;
  if (ready) syncline_process.files.block->paused = paused != 0;
  if (locked) syncline_unlock();
  errno = saved;
  if (!changes || !ready || thread->session == 0) return;
  if (paused) __atomic_fetch_add(&syncline_process.files.block->pauses, 1, __ATOMIC_RELAXED);
  syncline_count(thread, paused ? syncline_process.emit->pause(thread->key)
                                : syncline_process.emit->resume(thread->key));
}

/* ---- making the block
 * ------------------------------------------------------------------------------ */

void* syncline_load_sibling(const char* file) {
  Dl_info info;
  char path[4096];
  if (!dladdr((void*)&syncline_load_sibling, &info) || !info.dli_fname) return NULL;
  const char* slash = strrchr(info.dli_fname, '/');
  const int directory_bytes = slash ? (int)(slash - info.dli_fname) + 1 : 0;
  const int n = snprintf(path, sizeof path, "%.*s%s", directory_bytes, info.dli_fname, file);
  if (n <= 0 || (size_t)n >= sizeof path) return NULL;
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void LoadTracer(void) {
  setenv(SYNCLINE_TRACER_TIMEOUT_VARIABLE, SYNCLINE_TRACER_TIMEOUT_MS, 0);
  setenv(SYNCLINE_TRACER_NO_LIBRARIES_VARIABLE, "1", 0);
  /* LTTng-UST cancels its threads at exit, for which the C library opens this: without a free
   * descriptor it would abort the program there. */
  dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
  void* library = syncline_load_sibling(SYNCLINE_PROVIDER_FILE);
  const struct syncline_emit* emit = library ? dlsym(library, SYNCLINE_PROVIDER_SYMBOL) : NULL;
  if (emit) __atomic_store_n(&syncline_process.emit, emit, __ATOMIC_RELEASE);
}

/* The block is there: names can be made. */
static void Ready(void) {
  syncline_process.files.block->sources = syncline_process.sources;
  syncline_process.files.block->paused = syncline_paused;
  __atomic_store_n(&syncline_process.ready, 1, __ATOMIC_RELEASE);
}

/* The tracer is there too, or never will be: events can be recorded. */
static void GoLive(void) {
  __atomic_store_n(&syncline_process.files.block->state, SYNCLINE_STATE_LIVE, __ATOMIC_RELEASE);
  SetGate(&syncline_process.files.block->generation);
}

int syncline_process_ensure(void) {
  if (__builtin_expect(syncline_process.ready, 1)) return 0;
  if (!syncline_process.forked) return -1;
  syncline_process.forked = 0;
  struct syncline_files fresh;
  uint8_t* old_names = syncline_process.files.names;
  if (syncline_files_make(&fresh) != 0) {
    SetGate(&closed);
    return -1;
  }
  if (syncline_names_after_fork(&fresh, old_names) != 0) {
    syncline_files_unlink(&fresh);
    SetGate(&closed);
    return -1;
  }
  syncline_process.files = fresh; /* the parent's block stays mapped, and is not touched again */
  Ready();
  GoLive();
  return 0;
}

/* ---- fork and exit
 * --------------------------------------------------------------------------------- */

static sigset_t* ForkSignals(void) {
  static sigset_t shared; /* only when there is no memory for this thread */
  struct syncline_thread* thread = syncline_thread_self();
  return thread ? &thread->fork_signals : &shared;
}

void syncline_fork_begins(void) {
  struct syncline_thread* thread = syncline_thread_self();
  if (!thread || thread->fork_handlers++ != 0) return;
  thread->busy_before_fork = thread->busy;
  thread->busy = 1;
}

void syncline_fork_is_over(void) {
  struct syncline_thread* thread = syncline_thread_self();
  if (!thread || thread->fork_handlers == 0 || --thread->fork_handlers != 0) return;
  thread->busy = thread->busy_before_fork;
}

/* The tracer that was told before the fork: another thread may load one meanwhile, and who was not
 * told before must not be told after. Guarded by the lock, which the fork holds. */
static const struct syncline_emit* told = &no_tracer;

/* A child that is forked while LTTng-UST's constructors run waits in its destructors for ever: the
 * fork waits until another thread has loaded it, but not longer than this. */
#define LOADING_TRIES 250
static const struct timespec loading_try = {0, 1000000};
static pthread_t loader;
static int loading; /* by `loader`; both guarded by the lock */

static void SetLoading(int on) {
  syncline_lock();
  loader = pthread_self();
  loading = on;
  syncline_unlock();
}

/* The tracer as it is when the lock is taken, to which the fork was told. Only the first, which
 * does nothing, is ever replaced: what it was told need not be undone. */
static const struct syncline_emit* TellOfFork(void) {
  for (int tries = 0;; tries++) {
    const struct syncline_emit* emit = __atomic_load_n(&syncline_process.emit, __ATOMIC_ACQUIRE);
    emit->before_fork(ForkSignals());
    syncline_lock();
    const int settled = !loading && emit == syncline_process.emit;
    if (settled || tries == LOADING_TRIES || emit != &no_tracer) return emit;
    if (loading && pthread_equal(loader, pthread_self())) return emit;
    syncline_unlock();
    syscall(SYS_nanosleep, &loading_try, NULL); /* as a function it can be cancelled */
  }
}

static void BeforeFork(void) {
  const int saved = errno;
  syncline_fork_begins();
  told = TellOfFork();
  syncline_fork_holds_lock(1);
  errno = saved;
}
static void AfterForkParent(void) {
  const struct syncline_emit* emit = told;
  syncline_fork_holds_lock(0);
  syncline_unlock();
  emit->after_fork_parent(ForkSignals());
  syncline_fork_is_over();
}

/* In a child LTTng-UST begins anew, and waits for its daemon to know the child: so that no call is
 * lost. While nothing is recorded there is nothing to lose, and most children call exec or end at
 * once: the child goes on, and LTTng-UST's threads do the rest beside it. */
#define CHILD_WAIT_NS 20000000
static int restarts;         /* LTTng-UST, in this child */
static int child_may_record; /* the gate was open when it was forked */

int64_t syncline_tracer_wait_ns(void) {
  if (!restarts) return -1;
  return child_may_record ? CHILD_WAIT_NS : 0;
}

static void AfterForkChild(void) {
  static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  const uint32_t generation = *syncline_gate;
  if (generation != SYNCLINE_GATE_LOOK) child_may_record = generation != 0;
  if (syncline_process.ready || syncline_process.forked) {
    syncline_process.ready = 0;
    syncline_process.forked = 1;
    syncline_process.session = 0;
    syncline_process.ever_recorded = 0;
    SetGate(&look);
  }
  gate_mutex = fresh; /* its holder, if any, is not here */
  loading = 0;
  syncline_fork_holds_lock(0);
  syncline_threads_after_fork();
  /* A newer one has no threads here, and its locks may be held for ever: calls are lost instead. */
  if (syncline_process.emit != told) syncline_process.emit = &no_tracer;
  syncline_unlock();
  restarts = 1;
  told->after_fork_child(ForkSignals());
  restarts = 0;
  syncline_fork_is_over();
}

/* Runs before the destructors of libraries, LTTng-UST's among them. A process that ends by a signal
 * or _exit leaves its block in state LIVE. */
static void AtExit(void) {
  struct syncline_thread* thread = syncline_thread_self();
  if (!thread || thread->busy) return;
  const long wait_ns = 1000000000; /* exit() may have been called from a handler, inside our code */
  thread->busy = 1;                /* for good: what destructors still call is not recorded */
  if (syncline_lock_timed(&gate_mutex, wait_ns) != 0 || syncline_lock_for(wait_ns) != 0) return;
  const int ready = syncline_process.ready;
  SetGate(&closed);
  __atomic_store_n(&syncline_process.ready, 0, __ATOMIC_RELAXED);
  syncline_process.forked = 0;
  syncline_unlock();
  if (ready) {
    struct syncline_block* block = syncline_process.files.block;
    if (block->generation_seen != 0) RecordingEnds(thread);
    __atomic_store_n(&block->state, SYNCLINE_STATE_EXITED, __ATOMIC_RELEASE);
    /* Nobody will ask for the names of a process that was never recorded. */
    if (!syncline_process.ever_recorded) syncline_files_unlink(&syncline_process.files);
  }
  pthread_mutex_unlock(&gate_mutex);
}

/* Once, by the first library that is loaded. The tracer is loaded without the lock: the loader has
 * locks of its own, and another thread may hold them while it waits for ours. */
static void OpenFirst(struct syncline_thread* thread) {
  const uint32_t was_busy = thread->busy;
  thread->busy = 1; /* dlopen allocates, and an allocator may call ITT */
  syncline_cost_start_up();
  pthread_atfork(BeforeFork, AfterForkParent, AfterForkChild);
  syncline_lock();
  if (syncline_files_make(&syncline_process.files) == 0) {
    if (syncline_names_start() == 0) {
      Ready();
    } else {
      syncline_files_unlink(&syncline_process.files);
    }
  }
  syncline_unlock();
  if (syncline_process.ready) {
    atexit(AtExit);
    SetLoading(1);
    LoadTracer();
    SetLoading(0);
    syncline_lock();
    if (syncline_process.ready) GoLive();
    syncline_unlock();
  }
  thread->busy = was_busy;
}

void syncline_loaded(uint32_t source) {
  __atomic_fetch_or(&syncline_process.sources, source, __ATOMIC_RELAXED);
}

int syncline_open(uint32_t source) {
  static uint32_t opened;
  if (syncline_threads_start() != 0) return -1;
  struct syncline_thread* thread = syncline_thread_self();
  if (!thread) return -1;
  syncline_loaded(source);
  if (__atomic_exchange_n(&opened, 1, __ATOMIC_ACQ_REL) == 0) OpenFirst(thread);
  syncline_lock();
  const int ready = syncline_process_ensure() == 0;
  if (ready) syncline_process.files.block->sources = syncline_process.sources;
  syncline_unlock();
  return ready ? 0 : -1;
}

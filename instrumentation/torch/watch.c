// SPDX-License-Identifier: Apache-2.0
/* libsyncline_torch.so, one half: the thread that notices when a recording begins or ends and lets
 * the hook (syncline_torch.py) act on it.
 *
 * It sleeps on the gate (a futex; the agent wakes it) and wants the interpreter only when the gate
 * has changed. Then it asks through Py_AddPendingCall: CPython's main thread calls us between two
 * bytecodes, with no signal involved. A main thread that executes no bytecode (it waits for another
 * one that trains) is not waited for: what needs no particular thread is then done from here, as a
 * thread of the interpreter for a moment, and the rest when the main thread comes back.
 *
 * The agent also wakes it to ask for stacks (`syncline stacks`): the hook makes them at once, in
 * this thread. While something is recorded it also looks where the threads stand that train
 * (look.c), at times that no period of the program's can follow.
 *
 * The interpreter may go away: the hook calls syncline_torch_stop from `atexit`, and afterwards
 * this thread does not touch it any more.
 */
#define _GNU_SOURCE
#include "instrumentation/torch/watch.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "instrumentation/block/block.h"
#include "instrumentation/block/monotonic.h"
#include "instrumentation/block/watch_thread.h"

#define MS 1000000u
#define MAIN_THREAD_LIMIT_NS (50 * MS) /* a guess at how long a C call of a training step takes */
#define RETRY_MIN_NS (2 * MS)
#define RETRY_MAX_NS (20 * MS) /* what a process begun in the window may lose of its begin */
/* How often the groups' sequence numbers are announced while something is recorded. */
#define REFRESH_NS (500 * MS)
/* From one look at where threads stand to the next: the mean, and by how much it is off at most. */
#define LOOK_NS (100 * MS)
#define LOOK_SPREAD_NS (50 * MS)
/* A child that only execs is not worth a control block. */
#define CHILD_DELAY_NS (50 * MS)

static struct {
  pthread_mutex_t
      mutex; /* held while the interpreter is called from the thread; guards `stopped` */
  int stopped;
  syncline_torch_turn turn;
  syncline_torch_stacks_turn stacks;
  void* main_turn;
  void* too_deep;
  syncline_torch_add_pending add_pending;
  syncline_torch_call call;
  syncline_torch_release release;
  syncline_torch_matches matches;
  syncline_torch_clear clear;
  uint32_t acted;  /* the value of the gate that the main thread has acted on */
  uint32_t asked;  /* a pending call waits */
  uint32_t again;  /* it could not act where it was: ask again */
  uint32_t forked; /* this thread begins in a child */
} watch = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void syncline_torch_wait(const volatile uint32_t* gate, uint32_t value, uint64_t limit_ns) {
  SynclineGateWait(gate, value, limit_ns);
}

/* In the main thread, which holds the interpreter's lock. */
static int Pending(void* unused) {
  (void)unused;
  __atomic_store_n(&watch.asked, 0, __ATOMIC_RELEASE);
  if (__atomic_load_n(&watch.stopped, __ATOMIC_ACQUIRE)) return 0;
  void* const result = watch.call(watch.main_turn, NULL);
  if (result) {
    watch.release(result);
    return 0;
  }
  if (!watch.matches(watch.too_deep)) return -1; /* a signal's: the program's exception */
  watch.clear();
  __atomic_store_n(&watch.again, 1, __ATOMIC_RELEASE);
  return 0;
}

SYNCLINE_EXPORT void syncline_torch_acted(uint32_t value, int done) {
  __atomic_store_n(&watch.again, !done, __ATOMIC_RELEASE);
  if (done) __atomic_store_n(&watch.acted, value, __ATOMIC_RELEASE);
}

static void AskMainThread(void) {
  pthread_mutex_lock(&watch.mutex);
  if (!watch.stopped) {
    __atomic_store_n(&watch.asked, 1, __ATOMIC_RELEASE);
    /* The list is full when other threads ask a lot: later. */
    if (watch.add_pending(Pending, NULL) != 0) __atomic_store_n(&watch.asked, 0, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&watch.mutex);
}

static void TurnFromHere(uint32_t value) {
  pthread_mutex_lock(&watch.mutex);
  if (!watch.stopped) watch.turn(value);
  pthread_mutex_unlock(&watch.mutex);
}

/* The agent wants to know where the threads are. Never by way of the main thread, which may stand
 * still: its lock is enough. */
static void AnswerStacks(uint32_t number) {
  pthread_mutex_lock(&watch.mutex);
  if (!watch.stopped && watch.stacks) watch.stacks(number);
  pthread_mutex_unlock(&watch.mutex);
}

struct Looking {
  uint64_t random; /* a xorshift's state, never 0 */
  uint64_t due_ns; /* 0: nothing was recorded */
};

static uint64_t UntilNextLook(struct Looking* looking) {
  looking->random ^= looking->random << 13;
  looking->random ^= looking->random >> 7;
  looking->random ^= looking->random << 17;
  return LOOK_NS - LOOK_SPREAD_NS + looking->random % (2 * LOOK_SPREAD_NS);
}

static void Look(void) {
  pthread_mutex_lock(&watch.mutex);
  if (!watch.stopped) syncline_torch_look();
  pthread_mutex_unlock(&watch.mutex);
}

/* How long to sleep now; `sleep_ns`: how long without it, 0: until the gate changes. */
static uint64_t LookIfDue(uint32_t generation, struct Looking* looking, uint64_t sleep_ns) {
  if (!generation) {
    looking->due_ns = 0;
    return sleep_ns;
  }
  uint64_t now = syncline_monotonic_ns();
  if (now >= looking->due_ns) {
    if (looking->due_ns) Look();
    now = syncline_monotonic_ns();
    looking->due_ns = now + UntilNextLook(looking);
  }
  const uint64_t left_ns = looking->due_ns - now;
  return sleep_ns && sleep_ns < left_ns ? sleep_ns : left_ns;
}

/* What the thread knows of its last asking. */
struct Asking {
  uint64_t since_ns;
  uint64_t retry_ns;
  uint32_t from_here; /* the value of the gate that was acted on from here */
};

/* The gate has changed, or the groups are due: how long to sleep now; 0: until the gate changes. */
static uint64_t Ask(struct Asking* asking, uint32_t value) {
  const uint64_t now = syncline_monotonic_ns();
  if (!__atomic_load_n(&watch.asked, __ATOMIC_ACQUIRE)) {
    const int again = __atomic_load_n(&watch.again, __ATOMIC_ACQUIRE);
    asking->retry_ns =
        again && asking->retry_ns < RETRY_MAX_NS ? 2 * asking->retry_ns : RETRY_MIN_NS;
    asking->since_ns = now;
    AskMainThread();
    return asking->retry_ns;
  }
  if (now - asking->since_ns < MAIN_THREAD_LIMIT_NS) return RETRY_MIN_NS;
  if (asking->from_here == value) {
    /* The main thread is wanted still, for what only it can do. */
    const int acted = __atomic_load_n(&watch.acted, __ATOMIC_ACQUIRE) == value;
    return !value ? 0 : acted ? REFRESH_NS : RETRY_MAX_NS;
  }
  TurnFromHere(value);
  asking->from_here = value;
  return RETRY_MIN_NS;
}

static void* Watch(void* unused) {
  (void)unused;
  prctl(PR_SET_NAME, "syncline-torch");
  if (watch.forked) {
    const struct timespec delay = {0, CHILD_DELAY_NS};
    nanosleep(&delay, NULL);
    if (syncline_open(SYNCLINE_SOURCE_PYTHON) != 0) return NULL;
  }
  struct Asking asking = {0, RETRY_MIN_NS, 0};
  uint64_t refreshed_ns = 0;
  uint32_t stacks_answered = 0;
  struct Looking looking = {(syncline_monotonic_ns() ^ (uint64_t)getpid() << 32) | 1, 0};
  while (!__atomic_load_n(&watch.stopped, __ATOMIC_ACQUIRE)) {
    const volatile uint32_t* gate = syncline_gate;
    const uint32_t value = *gate;
    uint64_t sleep_ns = value ? REFRESH_NS : 0;
    const int due = value && syncline_monotonic_ns() - refreshed_ns >= REFRESH_NS;
    if (value != __atomic_load_n(&watch.acted, __ATOMIC_ACQUIRE) || due) {
      if (due) refreshed_ns = syncline_monotonic_ns();
      sleep_ns = Ask(&asking, value);
    }
    const uint32_t stacks_asked = syncline_stacks_asked();
    if (stacks_asked != stacks_answered) {
      stacks_answered = stacks_asked;
      if (stacks_asked) AnswerStacks(stacks_asked);
    }
    sleep_ns = LookIfDue(value, &looking, sleep_ns);
    syncline_torch_wait(gate, value, sleep_ns);
  }
  return NULL;
}

int syncline_torch_thread(void* (*body)(void*)) { return SynclineStartThread(body); }

SYNCLINE_EXPORT int syncline_torch_start(syncline_torch_turn turn, void* main_turn, void* too_deep,
                                         syncline_torch_add_pending add_pending,
                                         syncline_torch_call call, syncline_torch_release release,
                                         syncline_torch_matches matches,
                                         syncline_torch_clear clear) {
  if (!turn || !main_turn || !too_deep || !add_pending || !call || !release || !matches || !clear ||
      watch.turn) {
    return -1;
  }
  if (syncline_torch_events_start() != 0) return -1;
  watch.turn = turn;
  watch.main_turn = main_turn;
  watch.too_deep = too_deep;
  watch.add_pending = add_pending;
  watch.call = call;
  watch.release = release;
  watch.matches = matches;
  watch.clear = clear;
  return syncline_torch_thread(Watch);
}

SYNCLINE_EXPORT void syncline_torch_stacks(syncline_torch_stacks_turn turn) { watch.stacks = turn; }

SYNCLINE_EXPORT void syncline_torch_stop(void) {
  pthread_mutex_lock(&watch.mutex);
  __atomic_store_n(&watch.stopped, 1, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&watch.mutex);
}

SYNCLINE_EXPORT int syncline_torch_again(void) {
  static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  watch.mutex = fresh; /* its holder, if any, is not here */
  if (!watch.turn || watch.stopped) return -1;
  watch.asked = watch.again = 0;
  watch.forked = 1;
  watch.acted = UINT32_MAX; /* what the parent had on must be left, or joined, here too */
  return syncline_torch_thread(Watch);
}

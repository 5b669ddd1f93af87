// SPDX-License-Identifier: Apache-2.0
/* Threads: private state, a key and a slot in the block for each. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "instrumentation/block/facts.h"
#include "instrumentation/block/internal.h"

/* Two pointers of static TLS: the library is opened with dlopen, and more might not fit. */
static __thread struct syncline_thread* self __attribute__((tls_model("initial-exec")));
/* A thread whose calls all were in signal handlers so far; busy. */
static __thread struct syncline_thread* waiting __attribute__((tls_model("initial-exec")));

static struct syncline_thread_slot nowhere; /* where threads count that have no slot */
static pthread_key_t exit_key;
static int exit_key_made;
static uint8_t slot_taken[SYNCLINE_BLOCK_THREADS];
static void (*exit_calls[SYNCLINE_LIBRARIES])(struct syncline_thread*);

void syncline_at_thread_exit(int library, void (*call)(struct syncline_thread*)) {
  if (library >= 0 && library < SYNCLINE_LIBRARIES) exit_calls[library] = call;
}

static void ThreadExit(void* argument) {
  struct syncline_thread* thread = argument;
  for (int i = 0; i < SYNCLINE_LIBRARIES; i++) {
    if (exit_calls[i] && thread->library[i]) exit_calls[i](thread);
  }
  thread->busy = 1; /* a signal handler that calls ITT must not want the lock */
  syncline_lock();
  if (thread->slot != &nowhere && !thread->slot_shared) slot_taken[thread->slot_index] = 0;
  syncline_unlock();
  self = NULL;
  munmap(thread, SYNCLINE_THREAD_BYTES);
}

/* As the library is loaded: of the first 32 keys a thread has room for the value, later ones are
 * given some when they are first used. */
__attribute__((constructor)) int syncline_threads_start(void) {
  if (!exit_key_made) exit_key_made = pthread_key_create(&exit_key, ThreadExit) == 0;
  return exit_key_made ? 0 : -1;
}

void syncline_threads_after_fork(void) {
  memset(slot_taken, 0, sizeof slot_taken);
  struct syncline_thread* thread = self ? self : waiting;
  if (!thread) return;
  thread->slot = &nowhere;
  thread->slot_shared = 1;
  thread->session = 0;
  thread->key = 0;
  thread->tid = (int32_t)syscall(SYS_gettid);
}

/* Slots never used come first, so that the keys and names of dead threads stay readable as long as
 * possible; then those of dead threads; then the last one, shared. */
static uint32_t ChooseSlot(struct syncline_block* block) {
  if (block->thread_slots_used < SYNCLINE_BLOCK_THREADS) return block->thread_slots_used;
  for (uint32_t i = 0; i + 1 < SYNCLINE_BLOCK_THREADS; i++) {
    if (!slot_taken[i]) return i;
  }
  return SYNCLINE_BLOCK_THREADS - 1;
}

void syncline_thread_enter(struct syncline_thread* thread) {
  struct syncline_files* files = &syncline_process.files;
  const uint32_t index = ChooseSlot(files->block);
  struct syncline_thread_slot* slot = &files->slots[index];
  thread->slot_shared = index == SYNCLINE_BLOCK_THREADS - 1;
  thread->slot_index = index;
  thread->key = syncline_files_next_key(files);
  slot->tid = thread->tid;
  __atomic_store_n(&slot->thread_key, thread->key, __ATOMIC_RELEASE);
  slot_taken[index] = 1;
  if (index >= files->block->thread_slots_used) {
    __atomic_store_n(&files->block->thread_slots_used, index + 1, __ATOMIC_RELEASE);
  }
  thread->slot = slot;
  syncline_copy_text(slot->name, sizeof slot->name, thread->name);
}

static void KernelName(struct syncline_thread* thread) {
  char name[17] = {0};
  if (thread->name_given || prctl(PR_GET_NAME, name, 0, 0, 0) != 0) return;
  syncline_copy_text(thread->name, sizeof thread->name, name);
}

/* Allocates nothing. */
static struct syncline_thread* MakeNow(void) {
  struct syncline_thread* thread = syncline_reserve(SYNCLINE_THREAD_BYTES);
  if (!thread) return NULL;
  thread->busy = 1;
  thread->slot = &nowhere;
  thread->slot_shared = 1;
  thread->tid = (int32_t)syscall(SYS_gettid);
  waiting = thread;
  KernelName(thread);
  if (syncline_lock_unless_forking()) { /* else it enters when it acts on the gate */
    if (syncline_process_ensure() == 0) syncline_thread_enter(thread);
    syncline_unlock();
  }
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  thread->made = 1;
  return thread;
}

static struct syncline_thread* Make(void) {
  const int saved = errno;
  struct syncline_thread* thread = MakeNow();
  errno = saved;
  return thread;
}

struct syncline_thread* syncline_thread_self(void) {
  if (__builtin_expect(self != NULL, 1)) return self;
  struct syncline_thread* thread = waiting ? waiting : Make();
  if (!thread || !thread->made || syncline_in_handler()) return thread;
  self = thread;
  waiting = NULL;
  /* May allocate, and an allocator may call ITT: this thread is busy still. */
  if (exit_key_made) pthread_setspecific(exit_key, thread);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  thread->busy = 0;
  return thread;
}

void syncline_turned_away(struct syncline_thread* thread) {
  const uint32_t generation = *syncline_gate;
  if (generation == 0 || generation == SYNCLINE_GATE_LOOK || syncline_paused) return;
  syncline_count(thread, 0);
}

int syncline_thread_is_known_to_tracer(struct syncline_thread* thread) {
  if (thread->known_to_tracer) return 1;
  if (syncline_in_handler()) return 0;
  const int saved = errno;
  thread->busy = 1;
  syncline_process.emit->thread_begins();
  thread->known_to_tracer = 1;
  thread->busy = 0;
  errno = saved;
  return 1;
}

void syncline_thread_announce(struct syncline_thread* thread) {
  KernelName(thread);
  if (!thread->slot_shared) {
    syncline_copy_text(thread->slot->name, sizeof thread->slot->name, thread->name);
  }
  syncline_count(
      thread, syncline_process.emit->thread(thread->key, syncline_process.files.block->process_key,
                                            thread->tid, thread->name));
}

void syncline_thread_rename(struct syncline_thread* thread, const char* name) {
  if (!name || !*name) return;
  syncline_copy_text(thread->name, sizeof thread->name, name);
  thread->name_given = 1;
  if (thread->session != 0) {
    syncline_thread_announce(thread);
  } else if (!thread->slot_shared) {
    syncline_copy_text(thread->slot->name, sizeof thread->slot->name, thread->name);
  }
}

uint64_t syncline_events_count(void) { return syncline_thread_sums().events; }

struct syncline_sums syncline_thread_sums(void) {
  struct syncline_sums sums = {0, 0, 0};
  const uint32_t used =
      __atomic_load_n(&syncline_process.files.block->thread_slots_used, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < used; i++) {
    const struct syncline_thread_slot* slot = &syncline_process.files.slots[i];
    sums.events += __atomic_load_n(&slot->events, __ATOMIC_RELAXED);
    sums.lost += __atomic_load_n(&slot->lost, __ATOMIC_RELAXED);
    sums.cost_ns += __atomic_load_n(&slot->cost_ns, __ATOMIC_RELAXED);
  }
  return sums;
}

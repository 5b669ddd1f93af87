// SPDX-License-Identifier: Apache-2.0
/* What the collector keeps for each thread, and the way into a recorded call. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "instrumentation/itt/internal.h"

struct itt_thread itt_nobody = {.quiet_begin = (struct itt_task*)UINTPTR_MAX, .loud = 1};
__thread struct itt_thread* itt_self __attribute__((tls_model("initial-exec"))) = &itt_nobody;

static void ThreadExit(struct syncline_thread* common) {
  struct itt_thread* thread = common->library[ITT_LIBRARY];
  itt_close_tasks(thread);
  /* For good: a signal handler that calls ITT now must not settle in what is unmapped soon. */
  common->busy = 1;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  itt_self = &itt_nobody;
  common->library[ITT_LIBRARY] = NULL;
  if (thread->grown) munmap(thread->grown, (size_t)((char*)thread->limit - (char*)thread->tasks));
}

struct itt_thread* itt_thread_make(void) {
  struct syncline_thread* common = syncline_thread_self();
  if (!common) return NULL;
  if (common->busy) {
    syncline_turned_away(common);
    return NULL;
  }
  struct itt_thread* thread = (struct itt_thread*)common->room;
  memset(thread, 0, sizeof *thread); /* a signal handler may have been here just now */
  thread->common = common;
  thread->generation = common->generation;
  thread->scratch = (char*)common + SYNCLINE_THREAD_BYTES - SCRATCH_BYTES;
  thread->top = thread->tasks = thread->first_tasks;
  const size_t room = (size_t)(thread->scratch - (char*)thread->tasks);
  thread->limit = thread->tasks + room / sizeof(struct itt_task);
  SetLoud(thread);
  syncline_at_thread_exit(ITT_LIBRARY, ThreadExit);
  common->library[ITT_LIBRARY] = thread;
  itt_self = thread;
  return thread;
}

enum itt_entry itt_enter_slow(struct itt_thread* thread) {
  struct syncline_thread* common = thread->common;
  if (common->busy) {
    syncline_count(common, 0);
    return ITT_TURNED_AWAY;
  }
  if (*itt_shared.gate != thread->generation) {
    if (!syncline_gate_changed(common) && !common->known_to_tracer) syncline_turned_away(common);
    thread->generation = common->generation;
    SetLoud(thread);
  } else if (thread->generation != 0 && common->session == 0) {
    syncline_gate_ask_again(common);
  }
  const int records = common->session != 0 && !common->ignored;
  if (thread->names_session != common->session) {
    itt_forget_names(thread, thread->names_epoch);
  }
  if (records && thread->record_gate != thread->generation) itt_brief_begins();
  thread->record_gate = records ? thread->generation : 0;
  if (itt_shared.paused || common->ignored) return ITT_QUIET;
  if (records) return ITT_RECORD;
  if (thread->generation != 0) syncline_count(common, 0); /* no session takes `on` yet */
  return ITT_QUIET;
}

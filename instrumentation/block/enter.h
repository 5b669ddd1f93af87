// SPDX-License-Identifier: Apache-2.0
/* The way into and out of a recorded call, for libraries whose calls are rare enough for a function
 * of the plainest form: the ITT collector and the socket calls have their own, faster ones. */
#ifndef SYNCLINE_INSTRUMENTATION_BLOCK_ENTER_H_
#define SYNCLINE_INSTRUMENTATION_BLOCK_ENTER_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "instrumentation/block/block.h"

/* This thread, busy, when it records now; else NULL. SynclineLeave must follow. */
static inline struct syncline_thread* SynclineEnter(uint64_t* cost) {
  struct syncline_thread* thread = syncline_thread_self();
  if (!thread) return NULL;
  if (thread->busy) {
    if (*syncline_gate != 0) syncline_count(thread, 0);
    return NULL;
  }
  /* Also when it closed: else nobody would say so in a program that makes no other calls. */
  if (*syncline_gate != thread->generation) {
    syncline_gate_changed(thread);
  } else if (thread->generation != 0 && thread->session == 0) {
    syncline_gate_ask_again(thread);
  }
  if (syncline_paused || thread->ignored) return NULL;
  if (thread->session == 0) {
    if (thread->generation != 0) syncline_count(thread, 0); /* no session takes `on` yet */
    return NULL;
  }
  thread->busy = 1;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  *cost = syncline_cost_start(thread);
  return thread;
}

static inline void SynclineLeave(struct syncline_thread* thread, uint64_t cost, int written) {
  syncline_count(thread, written);
  syncline_cost_stop(thread, cost);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  thread->busy = 0;
}

/* The id of a text, announced in this recording; 0: it is empty, or the table is full. */
static inline uint32_t SynclineName(struct syncline_thread* thread, const char* text) {
  if (!text || !*text) return 0;
  const size_t bytes = strlen(text);
  uint32_t id = syncline_name_find(SYNCLINE_NAME_OTHER, text, bytes);
  if (!id) id = syncline_name_intern(SYNCLINE_NAME_OTHER, text, bytes);
  if (id) syncline_name_announce(thread, id);
  return id;
}

#endif /* SYNCLINE_INSTRUMENTATION_BLOCK_ENTER_H_ */

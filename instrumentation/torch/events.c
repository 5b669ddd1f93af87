// SPDX-License-Identifier: Apache-2.0
/* libsyncline_torch.so, the other half: what the hook has to say becomes events. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "instrumentation/block/block.h"
#include "instrumentation/torch/provider.h"
#include "instrumentation/torch/watch.h"

static const struct syncline_torch_emit* tracer; /* NULL: LTTng is missing */

__attribute__((visibility("hidden"))) int syncline_torch_events_start(void) {
  if (syncline_open(SYNCLINE_SOURCE_PYTHON) != 0) return -1;
  void* library = syncline_load_sibling(SYNCLINE_TORCH_PROVIDER_FILE);
  tracer = library ? dlsym(library, SYNCLINE_TORCH_PROVIDER_SYMBOL) : NULL;
  return 0;
}

SYNCLINE_EXPORT uint32_t syncline_torch_gate(void) { return *syncline_gate; }

/* This thread, busy, when it records now; else NULL. Leave must follow. */
static struct syncline_thread* Enter(uint64_t* cost) {
  if (!tracer) return NULL;
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

static void Leave(struct syncline_thread* thread, uint64_t cost, int written) {
  syncline_count(thread, written);
  syncline_cost_stop(thread, cost);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  thread->busy = 0;
}

/* The id of a text, announced in this recording. */
static uint32_t Name(struct syncline_thread* thread, const char* text) {
  if (!text || !*text) return 0;
  const size_t bytes = strlen(text);
  uint32_t id = syncline_name_find(SYNCLINE_NAME_OTHER, text, bytes);
  if (!id) id = syncline_name_intern(SYNCLINE_NAME_OTHER, text, bytes);
  if (id) syncline_name_announce(thread, id);
  return id;
}

SYNCLINE_EXPORT void syncline_torch_operators(int on) {
  uint64_t cost;
  struct syncline_thread* thread = Enter(&cost);
  if (thread) Leave(thread, cost, tracer->operators(thread->key, (uint8_t)on));
}

SYNCLINE_EXPORT void syncline_torch_group(const char* group, const char* description,
                                          const char* ranks, int32_t rank, uint32_t size,
                                          uint64_t sequence) {
  uint64_t cost;
  struct syncline_thread* thread = Enter(&cost);
  if (!thread) return;
  const struct syncline_torch_group fields = {
      Name(thread, group), Name(thread, description), Name(thread, ranks), rank, size, sequence};
  Leave(thread, cost, tracer->group(thread->key, &fields));
}

SYNCLINE_EXPORT void syncline_torch_collective(const char* group, const char* name,
                                               uint64_t sequence, uint64_t bytes) {
  uint64_t cost;
  struct syncline_thread* thread = Enter(&cost);
  if (!thread) return;
  const uint32_t group_id = Name(thread, group);
  const uint32_t name_id = Name(thread, name);
  Leave(thread, cost, tracer->collective(thread->key, group_id, name_id, sequence, bytes));
}

SYNCLINE_EXPORT uint64_t syncline_torch_transfer_begin(const char* group, const char* name,
                                                       int32_t peer, int32_t tag, uint64_t bytes) {
  static uint64_t last_id;
  uint64_t cost;
  struct syncline_thread* thread = Enter(&cost);
  if (!thread) return 0;
  const uint64_t id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
  const struct syncline_torch_transfer fields = {
      id, Name(thread, group), Name(thread, name), peer, tag, bytes};
  Leave(thread, cost, tracer->transfer_begin(thread->key, &fields));
  return id;
}

SYNCLINE_EXPORT void syncline_torch_transfer_end(uint64_t id, int32_t peer) {
  uint64_t cost;
  struct syncline_thread* thread = Enter(&cost);
  if (thread) Leave(thread, cost, tracer->transfer_end(thread->key, id, peer));
}

SYNCLINE_EXPORT void syncline_torch_spent(uint64_t ns) {
  struct syncline_thread* thread = tracer ? syncline_thread_self() : NULL;
  if (thread) syncline_cost_timed(thread, ns);
}

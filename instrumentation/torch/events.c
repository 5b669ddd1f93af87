// SPDX-License-Identifier: Apache-2.0
/* libsyncline_torch.so, the other half: what the hook has to say becomes events. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "instrumentation/block/block.h"
#include "instrumentation/block/enter.h"
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

static struct syncline_thread* Enter(uint64_t* cost) { return tracer ? SynclineEnter(cost) : NULL; }

SYNCLINE_EXPORT void syncline_torch_operators(int on) {
  uint64_t cost;
  struct syncline_thread* thread = Enter(&cost);
  if (thread) SynclineLeave(thread, cost, tracer->operators(thread->key, (uint8_t)on));
}

SYNCLINE_EXPORT void syncline_torch_group(const char* group, const char* description,
                                          const char* ranks, int32_t rank, uint32_t size,
                                          uint64_t sequence) {
  uint64_t cost;
  struct syncline_thread* thread = Enter(&cost);
  if (!thread) return;
  const struct syncline_torch_group fields = {SynclineName(thread, group),
                                              SynclineName(thread, description),
                                              SynclineName(thread, ranks),
                                              rank,
                                              size,
                                              sequence};
  SynclineLeave(thread, cost, tracer->group(thread->key, &fields));
}

SYNCLINE_EXPORT void syncline_torch_collective(const char* group, const char* name,
                                               uint64_t sequence, uint64_t bytes) {
  uint64_t cost;
  struct syncline_thread* thread = Enter(&cost);
  if (!thread) return;
  const uint32_t group_id = SynclineName(thread, group);
  const uint32_t name_id = SynclineName(thread, name);
  SynclineLeave(thread, cost, tracer->collective(thread->key, group_id, name_id, sequence, bytes));
}

SYNCLINE_EXPORT void syncline_torch_root(const char* group, int32_t root) {
  uint64_t cost;
  struct syncline_thread* thread = Enter(&cost);
  if (!thread) return;
  const uint32_t group_id = SynclineName(thread, group);
  SynclineLeave(thread, cost, tracer->root(thread->key, group_id, root));
}

SYNCLINE_EXPORT uint64_t syncline_torch_transfer_begin(const char* group, const char* name,
                                                       int32_t peer, int32_t tag, uint64_t bytes) {
  static uint64_t last_id;
  uint64_t cost;
  struct syncline_thread* thread = Enter(&cost);
  if (!thread) return 0;
  const uint64_t id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
  const struct syncline_torch_transfer fields = {
      id, SynclineName(thread, group), SynclineName(thread, name), peer, tag, bytes};
  SynclineLeave(thread, cost, tracer->transfer_begin(thread->key, &fields));
  return id;
}

SYNCLINE_EXPORT void syncline_torch_transfer_end(uint64_t id, int32_t peer, uint64_t waited_ns) {
  uint64_t cost;
  struct syncline_thread* thread = Enter(&cost);
  if (thread) SynclineLeave(thread, cost, tracer->transfer_end(thread->key, id, peer, waited_ns));
}

SYNCLINE_EXPORT void syncline_torch_spent(uint64_t ns) {
  struct syncline_thread* thread = tracer ? syncline_thread_self() : NULL;
  if (thread) syncline_cost_timed(thread, ns);
}

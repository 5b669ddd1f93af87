// SPDX-License-Identifier: Apache-2.0
/* libsyncline_torch.so: Python's garbage collections as tasks (tasks.h).
 *
 * What CPython calls at each collection is a C function, not Python. Signals that come during a
 * collection are handled at the next bytecode: in a callback in Python that would be there, and
 * what the program's handler raises (KeyboardInterrupt) would be printed and lost. It costs less,
 * too. Python's headers are not needed: what is used of them is in the stable ABI, and is called
 * through pointers, so that one library serves every version.
 */
#include <string.h>

#include "instrumentation/block/block.h"
#include "instrumentation/torch/tasks.h"
#include "instrumentation/torch/watch.h"

static const struct itt_id kNoId;
static const struct syncline_torch_itt* itt;
static struct itt_domain* python_domain;
static struct itt_string_handle* collection_name;
static struct itt_string_handle* generation_key;

static struct {
  struct syncline_torch_gc_python api;
  void* none;
} python;

/* All of it is guarded by the interpreter's lock. CPython collects in one thread at a time; what it
 * finalises meanwhile may let other threads run. */
static uint32_t collecting;
static __thread uint32_t begun; /* this thread's collection has an open task */
static __thread uint64_t begin_ticks;

/* Of our two calls what the collector, which counts its own, does not: said once. */
static void Spent(uint64_t ticks) {
  struct syncline_thread* thread = syncline_thread_self();
  if (thread) syncline_cost_timed(thread, syncline_cost_ns(ticks));
}

static void End(void) {
  begun = collecting = 0;
  itt->task_end(python_domain);
}

static void CollectionBegins(void* info, uint64_t entered) {
  if (begun && collecting) return; /* somebody copied the list: it is there twice */
  if (begun) End(); /* somebody emptied the list in the middle of a collection, and hid its end */
  if (*syncline_gate == 0) return;
  begun = collecting = 1;
  void* const number = python.api.dict_get_item_string(info, "generation");
  long generation = number ? python.api.long_as_long(number) : -1;
  if (generation < 0) python.api.err_clear();
  begin_ticks = syncline_cost_ticks() - entered;
  itt->task_begin(python_domain, kNoId, kNoId, collection_name);
  if (generation < 0) return;
  uint32_t value = (uint32_t)generation;
  itt->metadata_add(python_domain, kNoId, generation_key, ITT_METADATA_U32, 1, &value);
}

/* gc.callbacks's contract: (phase, info). Whoever finds it in the list may call it with anything,
 * and keep it: it does nothing then while nothing is recorded. */
static void* Callback(void* self, void* const* arguments, intptr_t count) {
  (void)self;
  if (begun || *syncline_gate != 0) {
    const uint64_t entered = syncline_cost_ticks();
    const char* phase = count == 2 ? python.api.unicode_as_utf8(arguments[0], NULL) : NULL;
    if (!phase) {
      python.api.err_clear();
    } else if (strcmp(phase, "start") == 0) {
      CollectionBegins(arguments[1], entered);
    } else if (strcmp(phase, "stop") == 0 && begun) {
      const uint64_t ticks = begin_ticks + syncline_cost_ticks() - entered;
      End();
      Spent(ticks);
    }
  }
  python.api.inc_ref(python.none);
  return python.none;
}

/* A PyMethodDef. */
struct method {
  const char* name;
  void* (*call)(void* self, void* const* arguments, intptr_t count);
  int flags;
  const char* documentation;
};
#define METH_FASTCALL 0x80

SYNCLINE_EXPORT const void* syncline_torch_gc_start(
    const struct syncline_torch_gc_python* functions, void* none) {
  static const struct method method = {"syncline_garbage_collection", Callback, METH_FASTCALL,
                                       NULL};
  void* const* each = (void* const*)functions;
  for (size_t i = 0; i < sizeof *functions / sizeof *each; i++) {
    if (!each[i]) return NULL;
  }
  itt = syncline_torch_itt();
  if (!itt) return NULL;
  python_domain = itt->domain_create("python");
  collection_name = itt->string_handle_create("garbage collection");
  generation_key = itt->string_handle_create("generation");
  if (!python_domain || !collection_name || !generation_key) return NULL;
  python.api = *functions;
  python.none = none;
  return &method;
}

/* Where it is in the list, from the end; -1: nowhere. */
static intptr_t Find(void* list, void* callback) {
  intptr_t at = python.api.list_size(list);
  if (at < 0) python.api.err_clear(); /* it is no list */
  while (--at >= 0) {
    if (python.api.list_get_item(list, at) == callback) return at;
  }
  return -1;
}

SYNCLINE_EXPORT void syncline_torch_gc_put(void* list, void* callback) {
  if (Find(list, callback) >= 0) return;
  collecting = 0; /* of one that began before somebody took us out, there is no end */
  if (python.api.list_append(list, callback) != 0) python.api.err_clear();
}

SYNCLINE_EXPORT int syncline_torch_gc_take(void* list, void* callback) {
  intptr_t at;
  while ((at = Find(list, callback)) >= 0) {
    /* CPython is going through the list by index, or will once more: to take one out would make it
     * pass over the next one. */
    if (collecting) return -1;
    if (python.api.list_set_slice(list, at, at + 1, NULL) != 0) {
      python.api.err_clear();
      return -1;
    }
  }
  return 0;
}

SYNCLINE_EXPORT void syncline_torch_gc_forked(void) { collecting = begun; }

// SPDX-License-Identifier: Apache-2.0
/* libsyncline_itt.so: the collector that INTEL_LIBITTNOTIFY64 names.
 *
 * Each static part in the process calls __itt_api_init once, with its mutex held. A pointer in its
 * table is live the moment it is stored, and other threads call through it before we return. So:
 * our own state and the tracer first, then the objects that exist already, then the functions that
 * create, then the rest.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "instrumentation/itt/internal.h"
#include "instrumentation/itt/tee.h"

/* ---- without a tracer
 * ------------------------------------------------------------------------------ */

static int Nobody(void) { return 0; }
/* Called through other types: all arguments are in registers or the caller's stack, and are
 * ignored. */
#define NOBODY ((void*)Nobody)
static struct syncline_itt_emit no_tracer;
static const uint32_t closed = 0;
struct itt_shared itt_shared = {.gate = &closed, .emit = &no_tracer, .objects = ITT_NO_OBJECTS};

static void SetTracer(const struct syncline_itt_emit* emit) {
  itt_shared.emit = emit;
  itt_shared.task_begin = emit->task_begin;
  itt_shared.task_end = emit->task_end;
}

static void SetNoTracer(void) {
  void** table = (void**)&no_tracer;
  for (size_t i = 0; i < sizeof no_tracer / sizeof(void*); i++) table[i] = NOBODY;
  SetTracer(&no_tracer);
}

/* ---- groups
 * ---------------------------------------------------------------------------------------- */

static const struct {
  const char* name;
  int group;
} kGroups[] = {
    {"all", ITT_GROUP_ALL},
    {"control", ITT_GROUP_CONTROL},
    {"thread", ITT_GROUP_THREAD},
    {"mark", ITT_GROUP_MARK},
    {"sync", ITT_GROUP_SYNC},
    {"fsync", ITT_GROUP_FSYNC},
    {"jit", ITT_GROUP_JIT},
    {"model", ITT_GROUP_MODEL},
    {"counter", ITT_GROUP_COUNTER},
    {"frame", ITT_GROUP_FRAME},
    {"stitch", ITT_GROUP_STITCH},
    {"heap", ITT_GROUP_HEAP},
    {"structure", ITT_GROUP_STRUCTURE},
    {"suppress", ITT_GROUP_SUPPRESS},
    {"arrays", ITT_GROUP_ARRAYS},
    {"module", ITT_GROUP_MODULE},
};

/* INTEL_ITTNOTIFY_GROUPS: names between commas, semicolons or blanks; unset: everything. The static
 * part leaves it to collectors of this kind. */
static int WantedGroups(const char* text) {
  if (!text || !*text) return ITT_GROUP_ALL;
  int groups = ITT_GROUP_COUNTER | ITT_GROUP_FRAME | ITT_GROUP_STITCH | ITT_GROUP_HEAP;
  while (*text) {
    const size_t bytes = strcspn(text, ",; ");
    for (size_t i = 0; i < sizeof kGroups / sizeof *kGroups; i++) {
      if (bytes == strlen(kGroups[i].name) && memcmp(text, kGroups[i].name, bytes) == 0) {
        groups |= kGroups[i].group;
      }
    }
    text += bytes;
    if (*text) text++;
  }
  return groups;
}

/* ---- binding
 * --------------------------------------------------------------------------------------- */

static void* FunctionFor(const char* name) {
  static const struct itt_binding* const kFiles[] = {itt_create_bindings, itt_task_bindings,
                                                     itt_metadata_bindings, itt_counter_bindings,
                                                     itt_mark_bindings};
  for (size_t file = 0; file < sizeof kFiles / sizeof *kFiles; file++) {
    for (const struct itt_binding* b = kFiles[file]; b->name; b++) {
      if (strcmp(b->name, name) == 0) return b->function;
    }
  }
  return NULL;
}

static int Creates(const char* name) {
  return strstr(name, "_create") != NULL || strcmp(name, "__itt_get_timestamp") == 0;
}

/* Of a program with another collector: that one's calls cannot do without our objects. */
static void* FunctionBeside(const struct itt_api_info* api) {
  const int wanted = api->group & WantedGroups(getenv("INTEL_ITTNOTIFY_GROUPS"));
  return wanted || Creates(api->name) ? FunctionFor(api->name) : NULL;
}

static void Bind(struct itt_global* global, int groups, const struct itt_tee* tee) {
  for (int creating = 1; creating >= 0; creating--) {
    for (struct itt_api_info* api = global->api_list; api && api->name; api++) {
      if (Creates(api->name) != creating || !api->function) continue;
      void* own = api->group & groups ? FunctionFor(api->name) : NULL;
      void* function = itt_tee_function(tee, (size_t)(api - global->api_list), own);
      __atomic_store_n(api->function, function ? function : api->null_function, __ATOMIC_RELEASE);
    }
  }
}

static void BindNothing(struct itt_global* global) {
  for (struct itt_api_info* api = global->api_list; api && api->name; api++) {
    if (api->function) __atomic_store_n(api->function, api->null_function, __ATOMIC_RELEASE);
  }
}

static void Adopt(struct itt_global* global, const struct itt_tee* tee) {
  for (struct itt_domain* domain = global->domains; domain; domain = domain->next) {
    itt_adopt_domain(domain);
    if (tee) itt_tee_adopt_domain(domain);
  }
  for (struct itt_string_handle* handle = global->strings; handle; handle = handle->next) {
    itt_adopt_string(handle);
    if (tee) itt_tee_adopt_string(handle);
  }
  for (struct itt_counter_info* info = global->counters; info; info = info->next) {
    itt_adopt_counter(info);
    if (tee) itt_tee_adopt_counter(info);
  }
}

/* ---- start
 * ----------------------------------------------------------------------------------------- */

static void BeforeFork(void) {
  syncline_fork_begins();
  itt_lock();
}
static void AfterFork(void) {
  itt_unlock();
  syncline_fork_is_over();
}
/* The child's gate may be given the value that the parent's has, before it calls us: it acts on it
 * all the same, and what was announced was the parent's. */
static void AfterForkChild(void) {
  struct itt_thread* thread = itt_self;
  if (thread != &itt_nobody) {
    thread->record_gate = thread->generation = 0;
    SetLoud(thread);
  }
  AfterFork();
}

/* 0: events can be recorded. */
static int Start(void) {
  SetNoTracer();
  syncline_follow_gate(&itt_shared.gate, &itt_shared.paused);
  itt_objects_start();
  itt_brief_start();
  if (itt_handles_start() != 0 || syncline_open(SYNCLINE_SOURCE_ITT) != 0) return -1;
  pthread_atfork(BeforeFork, AfterFork, AfterForkChild);
  void* library = syncline_load_sibling(SYNCLINE_ITT_PROVIDER_FILE);
  const struct syncline_itt_emit* emit =
      library ? dlsym(library, SYNCLINE_ITT_PROVIDER_SYMBOL) : NULL;
  if (emit) SetTracer(emit);
  return 0;
}

SYNCLINE_EXPORT void __itt_api_init(struct itt_global* global, int init_groups);
SYNCLINE_EXPORT void __itt_api_init(struct itt_global* global, int init_groups) {
  static uint32_t state; /* 0: not tried; 1: a thread is at it; 2: can record; 3: cannot */
  if (!global || memcmp(global->magic, ITT_MAGIC, sizeof global->magic) != 0) return;
  struct syncline_thread* self = syncline_thread_self();
  if (!self) return;
  /* What we call may allocate, and an allocator may have a static part of its own. */
  const uint32_t was_busy = self->busy;
  self->busy = 1;
  uint32_t expected = 0;
  if (__atomic_compare_exchange_n(&state, &expected, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    __atomic_store_n(&state, Start() == 0 ? 2 : 3, __ATOMIC_RELEASE);
  }
  /* Another thread may still be loading the tracer, perhaps waiting for a lock of the loader that
   * this one holds: not waited for. Its events of these first moments are counted as lost. */
  if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != 3) {
    const struct itt_tee* tee = itt_tee_begin(global, init_groups, FunctionBeside);
    Adopt(global, tee);
    Bind(global, WantedGroups(getenv("INTEL_ITTNOTIFY_GROUPS")) & init_groups, tee);
  } else if (!itt_tee_alone(global, init_groups)) {
    BindNothing(global);
  }
  self->busy = was_busy;
}

extern __attribute__((visibility("hidden"), alias("__itt_api_init"))) void itt_init_here(
    struct itt_global* global, int init_groups);

/* Static parts call it at exit, other threads may still be running: nothing of ours is taken away.
 */
SYNCLINE_EXPORT void __itt_api_fini(struct itt_global* global);
SYNCLINE_EXPORT void __itt_api_fini(struct itt_global* global) { itt_tee_end(global); }

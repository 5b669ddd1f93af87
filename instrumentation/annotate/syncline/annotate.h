// SPDX-License-Identifier: Apache-2.0
/* tidy: allow file-length: one file, so that it can be copied into other source trees */
/* Marks a program's work (steps, their phases, regions, counters) for whichever ITT collector runs
 * it: Syncline's, or another that INTEL_LIBITTNOTIFY64 names. docs/annotate.md has the recipes.
 *
 * The header is all there is: nothing to link (-ldl -pthread before glibc 2.34), and it may be
 * copied into another source tree. It carries a *static part* of ITT of its own, one for each
 * program or library that includes it, as every user of ITT does (docs/decisions/0018). The first
 * mark loads the collector. Without one, in a statically linked program, off Linux, on 32 bits,
 * or with SYNCLINE_ANNOTATE_OFF defined, a mark is a load and a branch, or nothing at all. C99 and
 * C++11, by GCC or Clang.
 *
 * Every thread may call everything at any time, but not in a signal handler: loading the collector,
 * or a thread's first mark, would wait there for what the handler interrupts. Nothing else blocks
 * or fails: what cannot be recorded is dropped. Marks that one thread makes while another loads the
 * collector are dropped in pairs.
 */
#ifndef SYNCLINE_ANNOTATE_H_
#define SYNCLINE_ANNOTATE_H_

#if defined(__GNUC__) && !defined(SYNCLINE_ANNOTATE_WARNINGS)
#pragma GCC system_header /* a program that asks for warnings asks for those of its own code */
#endif

#include <stddef.h>
#include <stdint.h>

#if !defined(SYNCLINE_ANNOTATE_OFF) && !(defined(__linux__) && defined(__LP64__))
#define SYNCLINE_ANNOTATE_OFF
#endif

#ifndef SYNCLINE_ANNOTATE_OFF
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SYNCLINE_ANNOTATE_OFF
#ifndef __cplusplus /* hidden by strict -std=c99 */
extern int pthread_mutexattr_settype(pthread_mutexattr_t*, int);
extern char* secure_getenv(const char*);
#endif
enum { SYNCLINE_MUTEX_RECURSIVE = 1 }; /* PTHREAD_MUTEX_RECURSIVE, which is hidden, too */

/* ---- the static part: what a collector of ITT's version 3 finds in a program (itt_abi.h) */

struct syncline_itt_id {
  unsigned long long d1, d2, d3;
};
struct syncline_itt_domain {
  volatile int flags; /* 0: the collector wants no call for it */
  const char* name;
  void* name_wide;
  int extra1;
  void* extra2;
  struct syncline_itt_domain* next;
};
struct syncline_itt_handle {
  const char* text;
  void* text_wide;
  int extra1;
  void* extra2;
  struct syncline_itt_handle* next;
};
struct syncline_itt_api {
  const char* name;
  void** function;
  void* init_function;
  void* null_function;
  int group;
};
struct syncline_itt_part {
  unsigned char magic[8];
  unsigned long version_major, version_minor, version_build;
  volatile long api_initialized, mutex_initialized, atomic_counter;
  pthread_mutex_t mutex;
  void* library;
  void* error_handler;
  const char** library_path;
  struct syncline_itt_api* api_list;
  struct syncline_itt_part* next;
  void* threads;
  struct syncline_itt_domain* domains;
  struct syncline_itt_handle* strings;
  int state;
  void* counters;
  unsigned int processor_trace_events;
  void* histograms;
};

enum {
  SYNCLINE_ITT_CONTROL = 1 << 1,
  SYNCLINE_ITT_COUNTER = 1 << 8,
  SYNCLINE_ITT_STRUCTURE = 1 << 12,
  SYNCLINE_ITT_ALL = -1,
  SYNCLINE_ITT_U64 = 1,
  SYNCLINE_ITT_DOUBLE = 8
};

/* X(name, result, parameters, group) */
#define SYNCLINE_ITT_FUNCTIONS(X)                                                               \
  X(domain_create, struct syncline_itt_domain*, (const char*), SYNCLINE_ITT_STRUCTURE)          \
  X(string_handle_create, void*, (const char*), SYNCLINE_ITT_STRUCTURE)                         \
  X(counter_create_typed, void*, (const char*, const char*, int), SYNCLINE_ITT_COUNTER)         \
  X(task_begin, void,                                                                           \
    (const struct syncline_itt_domain*, struct syncline_itt_id, struct syncline_itt_id, void*), \
    SYNCLINE_ITT_STRUCTURE)                                                                     \
  X(task_end, void, (const struct syncline_itt_domain*), SYNCLINE_ITT_STRUCTURE)                \
  X(task_begin_overlapped, void,                                                                \
    (const struct syncline_itt_domain*, struct syncline_itt_id, struct syncline_itt_id, void*), \
    SYNCLINE_ITT_STRUCTURE)                                                                     \
  X(task_end_overlapped, void, (const struct syncline_itt_domain*, struct syncline_itt_id),     \
    SYNCLINE_ITT_STRUCTURE)                                                                     \
  X(metadata_add, void,                                                                         \
    (const struct syncline_itt_domain*, struct syncline_itt_id, void*, int, size_t, void*),     \
    SYNCLINE_ITT_STRUCTURE)                                                                     \
  X(counter_set_value, void, (void*, void*), SYNCLINE_ITT_COUNTER)                              \
  X(pause, void, (void), SYNCLINE_ITT_CONTROL)                                                  \
  X(resume, void, (void), SYNCLINE_ITT_CONTROL)

enum {
#define SYNCLINE_ITT_INDEX(name, result, parameters, group) SYNCLINE_ITT_##name,
  SYNCLINE_ITT_FUNCTIONS(SYNCLINE_ITT_INDEX)
#undef SYNCLINE_ITT_INDEX
      SYNCLINE_ITT_FUNCTION_COUNT
};
enum { SYNCLINE_NOT_TRIED, SYNCLINE_LOADING, SYNCLINE_OFF, SYNCLINE_ON };

struct syncline_annotate {
  int state;
#define SYNCLINE_ITT_POINTER(name, result, parameters, group) result(*name) parameters;
  SYNCLINE_ITT_FUNCTIONS(SYNCLINE_ITT_POINTER)
#undef SYNCLINE_ITT_POINTER
  struct syncline_itt_domain* domain;
  struct syncline_itt_domain own_domain;
  struct syncline_itt_part part;
  struct syncline_itt_api api[SYNCLINE_ITT_FUNCTION_COUNT + 1];
};

/* Of all files of a program or library together, and of no other library's. */
#define SYNCLINE_SHARED __attribute__((weak, visibility("hidden")))
SYNCLINE_SHARED struct syncline_annotate syncline_annotate_1;
/* Open begins of this thread that were dropped; those inside of them are, too. */
SYNCLINE_SHARED __thread unsigned syncline_annotate_dropped_1;

static __attribute__((noinline, cold, unused)) int syncline_annotate_load(void) {
  struct syncline_annotate* self = &syncline_annotate_1;
  int state = SYNCLINE_NOT_TRIED;
  if (!__atomic_compare_exchange_n(&self->state, &state, SYNCLINE_LOADING, 0, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    return state;
  }
  const int errno_of_program = errno;
  struct syncline_itt_part* part = &self->part;
  memcpy(part->magic, "\xED\xAB\xAB\xEC\x0D\xEE\xDA\x30", sizeof part->magic);
  part->version_major = 3;
  part->version_build = 20180723;
  part->api_list = self->api;
  self->own_domain.flags = 1;
  self->own_domain.name = "annotations";
  part->domains = &self->own_domain;
#define SYNCLINE_ITT_ENTRY(call, result, parameters, api_group)         \
  self->api[SYNCLINE_ITT_##call].name = "__itt_" #call;                 \
  self->api[SYNCLINE_ITT_##call].function = (void**)(void*)&self->call; \
  self->api[SYNCLINE_ITT_##call].group = api_group;
  SYNCLINE_ITT_FUNCTIONS(SYNCLINE_ITT_ENTRY)
#undef SYNCLINE_ITT_ENTRY
  pthread_mutexattr_t recursive;
  pthread_mutexattr_init(&recursive);
  pthread_mutexattr_settype(&recursive, SYNCLINE_MUTEX_RECURSIVE);
  pthread_mutex_init(&part->mutex, &recursive);
  pthread_mutexattr_destroy(&recursive);
  part->mutex_initialized = 1;
  const char* path = secure_getenv("INTEL_LIBITTNOTIFY64");
  void (*init)(struct syncline_itt_part*, int) = NULL;
#ifdef __GLIBC__ /* a static program would get a second C library with the collector, and crash */
  if (!dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD)) path = NULL;
#endif
  part->library = path && *path ? dlopen(path, RTLD_LAZY) : NULL;
  if (part->library) *(void**)(void*)&init = dlsym(part->library, "__itt_api_init");
  if (!init) (void)dlerror(); /* or the program would find it, and take it for its own */
  if (init) init(part, SYNCLINE_ITT_ALL);
  part->api_initialized = 1;
  self->domain = self->domain_create ? self->domain_create("annotations") : &self->own_domain;
  state = init && self->domain ? SYNCLINE_ON : SYNCLINE_OFF;
  __atomic_store_n(&self->state, state, __ATOMIC_RELEASE);
  errno = errno_of_program;
  return state;
}

static inline int syncline_annotate_state(void) {
  const int state = __atomic_load_n(&syncline_annotate_1.state, __ATOMIC_ACQUIRE);
  return state == SYNCLINE_NOT_TRIED ? syncline_annotate_load() : state;
}

/* Some collectors leave it to the program to make handles. Two threads may make two of a name. */
static __attribute__((noinline, cold, unused)) void* syncline_itt_own_string(const char* text) {
  struct syncline_itt_part* part = &syncline_annotate_1.part;
  struct syncline_itt_handle* first = __atomic_load_n(&part->strings, __ATOMIC_ACQUIRE);
  struct syncline_itt_handle* found = first;
  while (found && strcmp(found->text, text) != 0) found = found->next;
  if (found) return found;
  const size_t bytes = strlen(text) + 1;
  found = (struct syncline_itt_handle*)calloc(1, sizeof *found + bytes);
  if (!found) return NULL;
  found->text = (const char*)memcpy(found + 1, text, bytes);
  do {
    found->next = first;
  } while (!__atomic_compare_exchange_n(&part->strings, &first, found, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE));
  return found;
}

static inline void* syncline_itt_string(const char* text) {
  if (!text) text = "";
  return syncline_annotate_1.string_handle_create ? syncline_annotate_1.string_handle_create(text)
                                                  : syncline_itt_own_string(text);
}

static inline struct syncline_itt_id syncline_itt_no_id(void) {
  const struct syncline_itt_id none = {0, 0, 0};
  return none;
}

/* Regions of one key and different names are different regions. */
static inline struct syncline_itt_id syncline_itt_id_of(const char* name, uint64_t key) {
  struct syncline_itt_id id = {key, 14695981039346656037ull, 1};
  for (; name && *name; name++) id.d2 = (id.d2 ^ (unsigned char)*name) * 1099511628211ull;
  return id;
}

#define SYNCLINE_ITT_IS_WANTED(function) \
  (syncline_annotate_1.domain->flags && syncline_annotate_1.function)

static inline void syncline_task_begin(const char* name, const char* key, uint64_t number) {
  struct syncline_annotate* self = &syncline_annotate_1;
  const int state = syncline_annotate_state();
  if (state == SYNCLINE_OFF) return;
  if (state != SYNCLINE_ON || syncline_annotate_dropped_1) {
    syncline_annotate_dropped_1++;
    return;
  }
  if (!SYNCLINE_ITT_IS_WANTED(task_begin)) return;
  self->task_begin(self->domain, syncline_itt_no_id(), syncline_itt_no_id(),
                   syncline_itt_string(name));
  if (key && self->metadata_add) {
    self->metadata_add(self->domain, syncline_itt_no_id(), syncline_itt_string(key),
                       SYNCLINE_ITT_U64, 1, &number);
  }
}

static inline void syncline_task_end(void) {
  const int state = __atomic_load_n(&syncline_annotate_1.state, __ATOMIC_ACQUIRE);
  if (state == SYNCLINE_OFF || state == SYNCLINE_NOT_TRIED) return;
  if (syncline_annotate_dropped_1) {
    syncline_annotate_dropped_1--;
  } else if (state == SYNCLINE_ON && SYNCLINE_ITT_IS_WANTED(task_end)) {
    syncline_annotate_1.task_end(syncline_annotate_1.domain);
  }
}
#endif /* SYNCLINE_ANNOTATE_OFF */

/* ---- steps and phases: they nest, and end on the thread that began them */

/* One iteration of a training loop. `number` is what reports call it by. */
static inline void syncline_step_begin(uint64_t number) {
#ifdef SYNCLINE_ANNOTATE_OFF
  (void)number;
#else
  syncline_task_begin("step", "number", number);
#endif
}
static inline void syncline_step_end(void) {
#ifndef SYNCLINE_ANNOTATE_OFF
  syncline_task_end();
#endif
}

/* A part of a step, or of anything else: "forward". The name is copied. */
static inline void syncline_phase_begin(const char* name) {
#ifdef SYNCLINE_ANNOTATE_OFF
  (void)name;
#else
  syncline_task_begin(name, NULL, 0);
#endif
}
static inline void syncline_phase_end(void) { syncline_step_end(); }

/* ---- regions: they may overlap, and end on any thread */

/* `key` tells open regions of one name apart, within the process: a request's number, an address.
 */
static inline void syncline_region_begin(const char* name, uint64_t key) {
#ifdef SYNCLINE_ANNOTATE_OFF
  (void)name, (void)key;
#else
  struct syncline_annotate* self = &syncline_annotate_1;
  if (syncline_annotate_state() != SYNCLINE_ON) return;
  if (!SYNCLINE_ITT_IS_WANTED(task_begin_overlapped)) return;
  self->task_begin_overlapped(self->domain, syncline_itt_id_of(name, key), syncline_itt_no_id(),
                              syncline_itt_string(name));
#endif
}
static inline void syncline_region_end(const char* name, uint64_t key) {
#ifdef SYNCLINE_ANNOTATE_OFF
  (void)name, (void)key;
#else
  struct syncline_annotate* self = &syncline_annotate_1;
  if (syncline_annotate_state() != SYNCLINE_ON) return;
  if (!SYNCLINE_ITT_IS_WANTED(task_end_overlapped)) return;
  self->task_end_overlapped(self->domain, syncline_itt_id_of(name, key));
#endif
}

/* ---- counters */

/* static struct syncline_counter queue = SYNCLINE_COUNTER("batches in queue"); */
struct syncline_counter {
  const char* name;
  void* handle;
};
#define SYNCLINE_COUNTER(name) \
  { (name), NULL }

static inline void syncline_counter_set(struct syncline_counter* counter, double value) {
#ifdef SYNCLINE_ANNOTATE_OFF
  (void)counter, (void)value;
#else
  struct syncline_annotate* self = &syncline_annotate_1;
  if (syncline_annotate_state() != SYNCLINE_ON || !self->counter_set_value) return;
  void* handle = __atomic_load_n(&counter->handle, __ATOMIC_ACQUIRE);
  if (!handle) {
    if (!self->counter_create_typed) return;
    void* made = self->counter_create_typed(counter->name, "annotations", SYNCLINE_ITT_DOUBLE);
    /* Of several threads that make it at once, all use the first one's. */
    if (__atomic_compare_exchange_n(&counter->handle, &handle, made, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      handle = made;
    }
  }
  if (handle) self->counter_set_value(handle, &value);
#endif
}

/* ---- collect only what is marked: for the whole process, and not counted */

static inline void syncline_pause(void) {
#ifndef SYNCLINE_ANNOTATE_OFF
  if (syncline_annotate_state() == SYNCLINE_ON && syncline_annotate_1.pause) {
    syncline_annotate_1.pause();
  }
#endif
}
static inline void syncline_resume(void) {
#ifndef SYNCLINE_ANNOTATE_OFF
  if (syncline_annotate_state() == SYNCLINE_ON && syncline_annotate_1.resume) {
    syncline_annotate_1.resume();
  }
#endif
}

#ifdef __cplusplus
} /* extern "C" */

/* The same for scopes. Members are hidden: of two libraries each uses its own static part. */
#if defined(__GNUC__)
#define SYNCLINE_HIDDEN __attribute__((visibility("hidden")))
#else
#define SYNCLINE_HIDDEN
#endif
namespace syncline {

class Step {
 public:
  SYNCLINE_HIDDEN explicit Step(uint64_t number) { syncline_step_begin(number); }
  SYNCLINE_HIDDEN ~Step() { syncline_step_end(); }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
};

class Phase {
 public:
  SYNCLINE_HIDDEN explicit Phase(const char* name) { syncline_phase_begin(name); }
  SYNCLINE_HIDDEN ~Phase() { syncline_phase_end(); }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;
};

/* From its construction to its destruction, on whatever threads. The name must outlive it. */
class Region {
 public:
  SYNCLINE_HIDDEN explicit Region(const char* name) : name_(name) {
    syncline_region_begin(name_, Key());
  }
  SYNCLINE_HIDDEN ~Region() { syncline_region_end(name_, Key()); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  SYNCLINE_HIDDEN uint64_t Key() const { return reinterpret_cast<uintptr_t>(this); }
  const char* name_;
};

/* static syncline::Counter queue("batches in queue"); */
class Counter {
 public:
  SYNCLINE_HIDDEN explicit constexpr Counter(const char* name) : counter_{name, nullptr} {}
  SYNCLINE_HIDDEN void Set(double value) { syncline_counter_set(&counter_, value); }

 private:
  syncline_counter counter_;
};

/* Collected is what runs inside; the program paused before. */
class Collected {
 public:
  SYNCLINE_HIDDEN Collected() { syncline_resume(); }
  SYNCLINE_HIDDEN ~Collected() { syncline_pause(); }
  Collected(const Collected&) = delete;
  Collected& operator=(const Collected&) = delete;
};

}  // namespace syncline
#endif /* __cplusplus */

#endif /* SYNCLINE_ANNOTATE_H_ */

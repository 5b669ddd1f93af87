// SPDX-License-Identifier: Apache-2.0
/* Another ITT collector, for tests of the tee: writes a line for every call that it gets into the
 * file that SECOND_COLLECTOR_LOG names, with the names of the objects that it is given; "FOREIGN"
 * for one that neither it nor a static part made. As Intel's it writes into fields of the objects
 * that are a collector's. SECOND_COLLECTOR may have, between commas:
 *   off=NAME      switches the domain of that name off when it is made
 *   without=NAME  does not take that function
 *   leaves        gives all functions back at the first `detach`
 *   forgets       gives those of a static part back when that ends */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "instrumentation/itt/itt_abi.h"

#define EXPORT __attribute__((visibility("default")))
#define MAGIC 0x5EC0
#define LIMIT 4096

typedef const struct itt_domain* D;
typedef const struct itt_string_handle* S;
typedef struct itt_id I;
typedef const struct itt_clock_domain* C;
typedef unsigned long long T;

static int log_file = -1;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((format(printf, 1, 2))) void Log(const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  int bytes = vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  if (bytes > (int)sizeof line - 2) bytes = sizeof line - 2;
  line[bytes++] = '\n';
  if (write(log_file, line, (size_t)bytes) != bytes) abort();
}

static const char* Next(const char* options, const char* name) {
  const char* found = options ? strstr(options, name) : NULL;
  return found ? found + strlen(name) : NULL;
}
static int IsOption(const char* name, const char* value) {
  const size_t bytes = strlen(value);
  for (const char* at = Next(getenv("SECOND_COLLECTOR"), name); at; at = Next(at, name)) {
    if (strncmp(at, value, bytes) == 0 && (at[bytes] == 0 || at[bytes] == ',')) return 1;
  }
  return 0;
}

/* ---- objects ---- */

static struct Known {
  const void* object;
  const char* name;
} known[LIMIT];
static size_t known_count;

static void* Know(void* object, const char* name) {
  pthread_mutex_lock(&mutex);
  if (known_count == LIMIT) abort();
  known[known_count++] = (struct Known){object, name ? strdup(name) : ""};
  pthread_mutex_unlock(&mutex);
  return object;
}

static const char* NameOf(const void* object) {
  const char* name = object ? "FOREIGN" : "(null)";
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < known_count; i++) {
    if (known[i].object == object) name = known[i].name;
  }
  pthread_mutex_unlock(&mutex);
  return name;
}

static const void* ByName(const char* name, size_t kind) {
  char tagged[256];
  snprintf(tagged, sizeof tagged, "%zu:%s", kind, name);
  static struct Known made[LIMIT];
  static size_t count;
  const void* found = NULL;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < count && !found; i++) {
    if (strcmp(made[i].name, tagged) == 0) found = made[i].object;
  }
  if (!found) {
    if (count == LIMIT) abort();
    found = calloc(1, kind);
    made[count++] = (struct Known){found, strdup(tagged)};
  }
  pthread_mutex_unlock(&mutex);
  return found;
}

static void Touch(struct itt_domain* domain) {
  domain->extra1 = MAGIC;
  domain->extra2 = domain;
  if (IsOption("off=", domain->name)) domain->flags = 0;
}

/* Two threads may ask for one name: neither gets an object that is not finished. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static struct itt_domain* DomainCreate(const char* name) {
  pthread_mutex_lock(&making);
  struct itt_domain* domain = (struct itt_domain*)ByName(name, sizeof *domain);
  if (domain->extra1 != MAGIC) {
    domain->flags = 1;
    domain->name = strdup(name);
    Touch(domain);
    Know(domain, name);
  }
  pthread_mutex_unlock(&making);
  return domain;
}

static struct itt_string_handle* StringHandleCreate(const char* text) {
  pthread_mutex_lock(&making);
  struct itt_string_handle* handle = (struct itt_string_handle*)ByName(text, sizeof *handle);
  if (handle->extra1 != MAGIC) {
    handle->text = strdup(text);
    handle->extra1 = MAGIC;
    handle->extra2 = handle;
    Know(handle, text);
  }
  pthread_mutex_unlock(&making);
  return handle;
}

/* What a collector does not find in its own objects it takes for damage. */
static const char* Domain(D domain) {
  if (domain->extra1 != MAGIC || domain->extra2 != domain) return "FOREIGN";
  return domain->flags ? NameOf(domain) : "OFF";
}
static const char* String(S handle) {
  return !handle || (handle->extra1 == MAGIC && handle->extra2 == handle) ? NameOf(handle)
                                                                          : "FOREIGN";
}

static void* Object(const char* kind, const char* name) {
  char text[128];
  snprintf(text, sizeof text, "%s %s", kind, name ? name : "");
  return Know(malloc(64), text);
}
static void* CounterCreate(const char* name, const char* domain) {
  Log("counter_create %s %s", name, domain);
  return Object("counter", name);
}
static void* CounterCreateTyped(const char* name, const char* domain, int type) {
  Log("counter_create_typed %s %s %d", name, domain, type);
  return Object("counter", name);
}
static void* CounterCreateV3(D domain, const char* name, int type) {
  Log("counter_create_v3 %s %s %d", Domain(domain), name, type);
  return Object("counter", name);
}
static void* HistogramCreate(D domain, const char* name, int x, int y) {
  Log("histogram_create %s %s %d %d", Domain(domain), name, x, y);
  return Object("histogram", name);
}
static void* ClockDomainCreate(void* function, void* data) {
  Log("clock_domain_create %d %d", function != NULL, data != NULL);
  return Object("clock", "");
}
static void* TrackGroupCreate(S name, int type) {
  Log("track_group_create %s %d", String(name), type);
  return Object("track group", String(name));
}
static void* TrackCreate(void* group, S name, int type) {
  Log("track_create %s %s %d", NameOf(group), String(name), type);
  return Object("track", String(name));
}
static void* StackCallerCreate(void) { return Object("caller", ""); }
static void* HeapFunctionCreate(const char* name, const char* domain) {
  Log("heap_function_create %s %s", name, domain);
  return Object("heap function", name);
}
static void* FrameCreate(const char* name) { return Object("frame", name); }
/* One for each name; from 0, which a collector may take as well. */
static int NumberOf(const char* kind, const char* name, size_t bytes) {
  static char* names[LIMIT];
  static int count;
  char text[128];
  snprintf(text, sizeof text, "%s %.*s", kind, (int)bytes, name);
  for (int i = 0; i < count; i++) {
    if (strcmp(names[i], text) == 0) return i;
  }
  if (count == LIMIT) abort();
  Log("%s", text);
  names[count] = strdup(text);
  return count++;
}
static int EventCreate(const char* name, int bytes) {
  return NumberOf("event_create", name, (size_t)bytes);
}
static int MarkCreate(const char* name) { return NumberOf("mark_create", name, strlen(name)); }
static unsigned char PtRegionCreate(const char* name) {
  Log("pt_region_create %s", name);
  return 1;
}

/* ---- its clock ---- */

static T Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 3 * ((T)now.tv_sec * 1000000000u + (T)now.tv_nsec) + 12345;
}
static T GetTimestamp(void) { return Now(); }
/* Of a time that the program took a moment ago. */
static const char* Age(T time) {
  const T now = Now();
  return time <= now && now - time < 3 * 500000000ull ? "just now" : "another time";
}
/* With a clock domain: the program's number. */
static T In(C clock, T time) { return clock ? time : 0; }

/* ---- calls ---- */

static void Leave(void);
static void FormattedMetadataAdd(D domain, S format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format->text, arguments);
  va_end(arguments);
  Log("formatted_metadata_add %s %s: %s", Domain(domain), String(format), text);
}
static void FormattedMetadataAddOverlapped(D domain, I id, S format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format->text, arguments);
  va_end(arguments);
  Log("formatted_metadata_add_overlapped %s %llu %s: %s", Domain(domain), id.d1, String(format),
      text);
}
static void Detach(void) {
  Log("detach");
  if (IsOption("leaves", "")) Leave();
}

/* X(name, parameters, what is written of them) */
#define CALLS(X)                                                                                   \
  X(task_begin, (D d, I i, I p, S s), "%s %llu %llu %s", Domain(d), i.d1, p.d3, String(s))         \
  X(task_begin_ex, (D d, C c, T t, I i, I p, S s), "%s %s %llu %llu %llu %s", Domain(d),           \
    NameOf(c), In(c, t), i.d1, p.d3, String(s))                                                    \
  X(task_begin_fn, (D d, I i, I p, void* f), "%s %llu %llu %d", Domain(d), i.d1, p.d3, f != NULL)  \
  X(task_begin_fn_ex, (D d, C c, T t, I i, I p, void* f), "%s %s %llu %llu %llu %d", Domain(d),    \
    NameOf(c), In(c, t), i.d1, p.d3, f != NULL)                                                    \
  X(task_end, (D d), "%s", Domain(d))                                                              \
  X(task_end_ex, (D d, C c, T t), "%s %s %llu", Domain(d), NameOf(c), In(c, t))                    \
  X(task_begin_overlapped, (D d, I i, I p, S s), "%s %llu %llu %s", Domain(d), i.d1, p.d3,         \
    String(s))                                                                                     \
  X(task_begin_overlapped_ex, (D d, C c, T t, I i, I p, S s), "%s %s %llu %llu %llu %s",           \
    Domain(d), NameOf(c), In(c, t), i.d1, p.d3, String(s))                                         \
  X(task_end_overlapped, (D d, I i), "%s %llu", Domain(d), i.d1)                                   \
  X(task_end_overlapped_ex, (D d, C c, T t, I i), "%s %s %llu %llu", Domain(d), NameOf(c),         \
    In(c, t), i.d1)                                                                                \
  X(region_begin, (D d, I i, I p, S s), "%s %llu %llu %s", Domain(d), i.d1, p.d3, String(s))       \
  X(region_end, (D d, I i), "%s %llu", Domain(d), i.d1)                                            \
  X(task_group, (D d, I i, I p, S s), "%s %llu %llu %s", Domain(d), i.d1, p.d3, String(s))         \
  X(id_create, (D d, I i), "%s %llu", Domain(d), i.d2)                                             \
  X(id_create_ex, (D d, C c, T t, I i), "%s %s %llu %llu", Domain(d), NameOf(c), In(c, t), i.d2)   \
  X(id_destroy, (D d, I i), "%s %llu", Domain(d), i.d2)                                            \
  X(id_destroy_ex, (D d, C c, T t, I i), "%s %s %llu %llu", Domain(d), NameOf(c), In(c, t), i.d2)  \
  X(metadata_add, (D d, I i, S s, int y, size_t n, const int64_t* v), "%s %llu %s %d %zu %lld",    \
    Domain(d), i.d1, String(s), y, n, (long long)*v)                                               \
  X(metadata_add_with_scope, (D d, int o, S s, int y, size_t n, const int64_t* v),                 \
    "%s %d %s %d %zu %lld", Domain(d), o, String(s), y, n, (long long)*v)                          \
  X(metadata_str_add, (D d, I i, S s, const char* v, size_t n), "%s %llu %s %.*s", Domain(d),      \
    i.d1, String(s), (int)n, v)                                                                    \
  X(metadata_str_add_with_scope, (D d, int o, S s, const char* v, size_t n), "%s %d %s %.*s",      \
    Domain(d), o, String(s), (int)n, v)                                                            \
  X(relation_add, (D d, I i, int r, I j), "%s %llu %d %llu", Domain(d), i.d1, r, j.d3)             \
  X(relation_add_ex, (D d, C c, T t, I i, int r, I j), "%s %s %llu %llu %d %llu", Domain(d),       \
    NameOf(c), In(c, t), i.d1, r, j.d3)                                                            \
  X(relation_add_to_current, (D d, int r, I j), "%s %d %llu", Domain(d), r, j.d3)                  \
  X(relation_add_to_current_ex, (D d, C c, T t, int r, I j), "%s %s %llu %d %llu", Domain(d),      \
    NameOf(c), In(c, t), r, j.d3)                                                                  \
  X(frame_begin_v3, (D d, const I* i), "%s %llu", Domain(d), i ? i->d1 : 0)                        \
  X(frame_end_v3, (D d, const I* i), "%s %llu", Domain(d), i ? i->d1 : 0)                          \
  X(frame_submit_v3, (D d, const I* i, T b, T e), "%s %llu %s %s %d", Domain(d), i ? i->d1 : 0,    \
    Age(b), Age(e), b <= e)                                                                        \
  X(frame_begin, (const void* f), "%s", NameOf(f))                                                 \
  X(frame_end, (const void* f), "%s", NameOf(f))                                                   \
  X(marker, (D d, I i, S s, int o), "%s %llu %s %d", Domain(d), i.d1, String(s), o)                \
  X(marker_ex, (D d, C c, T t, I i, S s, int o), "%s %s %llu %llu %s %d", Domain(d), NameOf(c),    \
    In(c, t), i.d1, String(s), o)                                                                  \
  X(counter_inc, (const void* c), "%s", NameOf(c))                                                 \
  X(counter_dec, (const void* c), "%s", NameOf(c))                                                 \
  X(counter_inc_delta, (const void* c, T v), "%s %llu", NameOf(c), v)                              \
  X(counter_dec_delta, (const void* c, T v), "%s %llu", NameOf(c), v)                              \
  X(counter_inc_v3, (D d, S s), "%s %s", Domain(d), String(s))                                     \
  X(counter_dec_v3, (D d, S s), "%s %s", Domain(d), String(s))                                     \
  X(counter_inc_delta_v3, (D d, S s, T v), "%s %s %llu", Domain(d), String(s), v)                  \
  X(counter_dec_delta_v3, (D d, S s, T v), "%s %s %llu", Domain(d), String(s), v)                  \
  X(counter_set_value, (const void* c, const int64_t* v), "%s %lld", NameOf(c), (long long)*v)     \
  X(counter_set_value_v3, (const void* c, const int64_t* v), "%s %lld", NameOf(c), (long long)*v)  \
  X(counter_set_value_ex, (const void* c, C k, T t, const int64_t* v), "%s %s %llu %lld",          \
    NameOf(c), NameOf(k), In(k, t), (long long)*v)                                                 \
  X(counter_destroy, (const void* c), "%s", NameOf(c))                                             \
  X(bind_context_metadata_to_counter, (const void* c, size_t n, const void* m), "%s %zu %d",       \
    NameOf(c), n, m != NULL)                                                                       \
  X(histogram_submit, (const void* h, size_t n, const void* x, const void* y), "%s %zu %d %d",     \
    NameOf(h), n, x != NULL, y != NULL)                                                            \
  X(set_track, (const void* t), "%s", NameOf(t))                                                   \
  X(clock_domain_reset, (void), "%s", "")                                                          \
  X(stack_callee_enter, (const void* c), "%s", NameOf(c))                                          \
  X(stack_callee_leave, (const void* c), "%s", NameOf(c))                                          \
  X(stack_caller_destroy, (const void* c), "%s", NameOf(c))                                        \
  X(heap_allocate_begin, (const void* h, size_t n, int i), "%s %zu %d", NameOf(h), n, i)           \
  X(heap_free_begin, (const void* h, void* at), "%s %d", NameOf(h), at != NULL)                    \
  X(suppress_push, (unsigned int mask), "%u", mask)                                                \
  X(model_site_beginA, (const char* name), "%s", name)                                             \
  X(module_unload, (const void* at), "%d", at != NULL)                                             \
  X(thread_set_name, (const char* name), "%s", name)                                               \
  X(thread_ignore, (void), "%s", "")                                                               \
  X(thr_ignore, (void), "%s", "")                                                                  \
  X(pause, (void), "%s", "")                                                                       \
  X(resume, (void), "%s", "")                                                                      \
  X(pause_scoped, (int scope), "%d", scope)                                                        \
  X(resume_scoped, (int scope), "%d", scope)                                                       \
  X(sync_create, (const void* o, const char* y, const char* n, int a), "%d %s %s %d", o != NULL,   \
    y, n, a)                                                                                       \
  X(sync_set_name, (const void* o, const char* y, const char* n, int a), "%d %s %s %d", o != NULL, \
    y, n, a)                                                                                       \
  X(sync_rename, (const void* o, const char* n), "%d %s", o != NULL, n)                            \
  X(sync_destroy, (const void* o), "%d", o != NULL)                                                \
  X(sync_prepare, (const void* o), "%d", o != NULL)                                                \
  X(sync_cancel, (const void* o), "%d", o != NULL)                                                 \
  X(sync_acquired, (const void* o), "%d", o != NULL)                                               \
  X(sync_releasing, (const void* o), "%d", o != NULL)                                              \
  X(notify_sync_prepare, (const void* o), "%d", o != NULL)                                         \
  X(notify_sync_cancel, (const void* o), "%d", o != NULL)                                          \
  X(notify_sync_acquired, (const void* o), "%d", o != NULL)                                        \
  X(notify_sync_releasing, (const void* o), "%d", o != NULL)

/* The same, of those that answer: 0. */
#define ANSWERS(X)                                            \
  X(event_start, (int n), "%d", n)                            \
  X(event_end, (int n), "%d", n)                              \
  X(mark, (int n, const char* text), "%d %s", n, text)        \
  X(mark_off, (int n), "%d", n)                               \
  X(mark_global, (int n, const char* text), "%d %s", n, text) \
  X(mark_global_off, (int n), "%d", n)                        \
  X(thr_name_set, (const char* name, int bytes), "%.*s", bytes, name)

#define TAKES(name, parameters, ...) \
  static void Take_##name parameters { Log(#name " " __VA_ARGS__); }
#define TAKES_AND_ANSWERS(name, parameters, ...) \
  static int Take_##name parameters {            \
    Log(#name " " __VA_ARGS__);                  \
    return 0;                                    \
  }
CALLS(TAKES)
ANSWERS(TAKES_AND_ANSWERS)

static const struct {
  const char* name;
  void* function;
} kFunctions[] = {
#define ENTRY(name, ...) {"__itt_" #name, Take_##name},
    CALLS(ENTRY) ANSWERS(ENTRY){"__itt_domain_create", DomainCreate},
    {"__itt_string_handle_create", StringHandleCreate},
    {"__itt_counter_create", CounterCreate},
    {"__itt_counter_create_typed", CounterCreateTyped},
    {"__itt_counter_create_v3", CounterCreateV3},
    {"__itt_histogram_create", HistogramCreate},
    {"__itt_clock_domain_create", ClockDomainCreate},
    {"__itt_track_group_create", TrackGroupCreate},
    {"__itt_track_create", TrackCreate},
    {"__itt_stack_caller_create", StackCallerCreate},
    {"__itt_heap_function_create", HeapFunctionCreate},
    {"__itt_frame_create", FrameCreate},
    {"__itt_event_create", EventCreate},
    {"__itt_mark_create", MarkCreate},
    {"__itt_pt_region_create", PtRegionCreate},
    {"__itt_get_timestamp", GetTimestamp},
    {"__itt_formatted_metadata_add", FormattedMetadataAdd},
    {"__itt_formatted_metadata_add_overlapped", FormattedMetadataAddOverlapped},
    {"__itt_detach", Detach},
};

/* ---- start and end ---- */

static struct itt_global* globals[16];
static size_t global_count;

static void GiveBack(const struct itt_global* global) {
  for (struct itt_api_info* api = global->api_list; api->name; api++) {
    __atomic_store_n(api->function, api->null_function, __ATOMIC_RELEASE);
  }
}

static void Leave(void) {
  for (size_t g = 0; g < global_count; g++) GiveBack(globals[g]);
}

static void* FunctionFor(const char* name) {
  if (IsOption("without=", name + strlen("__itt_"))) return NULL;
  for (size_t i = 0; i < sizeof kFunctions / sizeof *kFunctions; i++) {
    if (strcmp(kFunctions[i].name, name) == 0) return kFunctions[i].function;
  }
  return NULL;
}

EXPORT void __itt_api_init(struct itt_global* global, int groups);
EXPORT void __itt_api_init(struct itt_global* global, int groups) {
  const char* path = getenv("SECOND_COLLECTOR_LOG");
  if (memcmp(global->magic, ITT_MAGIC, sizeof global->magic) != 0 || !path) abort();
  if (log_file < 0) log_file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  pthread_mutex_lock(&global->mutex); /* a recursive one */
  for (struct itt_domain* domain = global->domains; domain; domain = domain->next) {
    Know(domain, domain->name);
    Touch(domain);
  }
  for (struct itt_string_handle* handle = global->strings; handle; handle = handle->next) {
    Know(handle, handle->text);
    handle->extra1 = MAGIC;
    handle->extra2 = handle;
  }
  for (struct itt_counter_info* info = global->counters; info; info = info->next) {
    char name[128];
    snprintf(name, sizeof name, "counter %s", info->name);
    Know(info, name);
    Log("counter_create_typed %s %s %d", info->name, info->domain, info->type);
  }
  for (struct itt_api_info* api = global->api_list; api->name; api++) {
    void* function = api->group & groups ? FunctionFor(api->name) : NULL;
    *api->function = function ? function : api->null_function;
  }
  globals[global_count++] = global;
  pthread_mutex_unlock(&global->mutex);
}

EXPORT void __itt_api_fini(struct itt_global* global);
EXPORT void __itt_api_fini(struct itt_global* global) {
  Log("fini of %s", memcmp(global->magic, ITT_MAGIC, sizeof global->magic) ? "nobody" : "a part");
  if (IsOption("forgets", "")) GiveBack(global);
}

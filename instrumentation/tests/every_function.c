// SPDX-License-Identifier: Apache-2.0
/* Calls every function of ITT that Syncline's collector binds, and some others, where the collector
 * of the environment binds it, once, and says when. The arguments are the functions' names, in any
 * order; a line of stdin begins the calls. Prints for each "NAME unbound", "NAME BEFORE AFTER"
 * (CLOCK_MONOTONIC, ns), or "NAME unknown" when it has no call for it here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "instrumentation/itt/itt_abi.h"

typedef const struct itt_domain* D;
typedef struct itt_string_handle* S;
typedef struct itt_id I;
typedef struct itt_clock_domain* C;
typedef unsigned long long T;

static D domain;
static S string;
static C clock_domain;
static void *counter, *counter_3, *typed, *frame, *histogram, *group, *track, *caller, *heap;
static int event, old_mark, object;
static int64_t number = 7;
static struct itt_context_metadata about[] = {{ITT_CONTEXT_UNITS, (void*)"s"},
                                              {ITT_CONTEXT_TID, &number}};
static char text[] = "text";
static const I none, id = {1, 2, 3}, other = {4, 5, 6};
static I frame_id = {7, 8, 9};

/* MAKE(name, type, variable, parameters, arguments), CALL(name, parameters, arguments): in this
 * order. The last ones end the recording, and that of this thread. */
#define CALLS(MAKE, CALL)                                                                   \
  MAKE(domain_create, D, domain, (const char*), ("every"))                                  \
  MAKE(string_handle_create, S, string, (const char*), ("name %d"))                         \
  MAKE(clock_domain_create, C, clock_domain, (void*, void*), (NULL, NULL))                  \
  MAKE(counter_create, void*, counter, (const char*, const char*), ("plain", "every"))      \
  MAKE(counter_create_typed, void*, typed, (const char*, const char*, int),                 \
       ("real", "every", ITT_METADATA_S64))                                                 \
  MAKE(counter_create_v3, void*, counter_3, (D, const char*, int),                          \
       (domain, "third", ITT_METADATA_S64))                                                 \
  MAKE(event_create, int, event, (const char*, int), ("event", 5))                          \
  MAKE(mark_create, int, old_mark, (const char*), ("mark"))                                 \
  MAKE(frame_create, void*, frame, (const char*), ("frame"))                                \
  MAKE(histogram_create, void*, histogram, (D, const char*, int, int), (domain, "h", 1, 1)) \
  MAKE(track_group_create, void*, group, (S, int), (string, 0))                             \
  MAKE(track_create, void*, track, (void*, S, int), (group, string, 0))                     \
  MAKE(stack_caller_create, void*, caller, (void), ())                                      \
  MAKE(heap_function_create, void*, heap, (const char*, const char*), ("f", "every"))       \
  CALL(histogram_submit, (void*, size_t, void*, void*), (histogram, 1, &number, &number))   \
  CALL(set_track, (void*), (track))                                                         \
  CALL(clock_domain_reset, (void), ())                                                      \
  CALL(stack_callee_enter, (void*), (caller))                                               \
  CALL(stack_callee_leave, (void*), (caller))                                               \
  CALL(stack_caller_destroy, (void*), (caller))                                             \
  CALL(heap_allocate_begin, (void*, size_t, int), (heap, 64, 0))                            \
  CALL(heap_free_begin, (void*, void*), (heap, &object))                                    \
  CALL(suppress_push, (unsigned int), (1))                                                  \
  CALL(model_site_beginA, (const char*), (text))                                            \
  CALL(module_unload, (void*), (&object))                                                   \
  CALL(bind_context_metadata_to_counter, (void*, size_t, void*), (counter_3, 2, about))     \
  CALL(mark_off, (int), (old_mark))                                                         \
  CALL(mark_global_off, (int), (old_mark))                                                  \
  CALL(id_create, (D, I), (domain, id))                                                     \
  CALL(id_create_ex, (D, C, T, I), (domain, clock_domain, 1, id))                           \
  CALL(id_destroy, (D, I), (domain, id))                                                    \
  CALL(id_destroy_ex, (D, C, T, I), (domain, clock_domain, 1, id))                          \
  CALL(pt_region_create, (const char*), ("region"))                                         \
  CALL(get_timestamp, (void), ())                                                           \
  CALL(api_version, (void), ())                                                             \
  CALL(thread_set_name, (const char*), ("every"))                                           \
  CALL(thr_name_set, (const char*, int), ("every", 5))                                      \
  CALL(task_begin, (D, I, I, S), (domain, none, none, string))                              \
  CALL(task_begin_ex, (D, C, T, I, I, S), (domain, clock_domain, 1, id, none, string))      \
  CALL(task_begin_fn, (D, I, I, void*), (domain, none, none, &object))                      \
  CALL(task_begin_fn_ex, (D, C, T, I, I, void*), (domain, clock_domain, 1, id, none, text)) \
  CALL(metadata_add, (D, I, S, int, size_t, void*),                                         \
       (domain, none, string, ITT_METADATA_S64, 1, &number))                                \
  CALL(metadata_add_with_scope, (D, int, S, int, size_t, void*),                            \
       (domain, ITT_SCOPE_TASK, string, ITT_METADATA_U64, 1, &number))                      \
  CALL(metadata_str_add, (D, I, S, const char*, size_t), (domain, id, string, text, 4))     \
  CALL(metadata_str_add_with_scope, (D, int, S, const char*, size_t),                       \
       (domain, ITT_SCOPE_TASK, string, text, 4))                                           \
  CALL(formatted_metadata_add, (D, S, ...), (domain, string, 7))                            \
  CALL(formatted_metadata_add_overlapped, (D, I, S, ...), (domain, id, string, 7))          \
  CALL(relation_add, (D, I, int, I), (domain, id, 1, other))                                \
  CALL(relation_add_ex, (D, C, T, I, int, I), (domain, clock_domain, 1, id, 1, other))      \
  CALL(relation_add_to_current, (D, int, I), (domain, 1, other))                            \
  CALL(relation_add_to_current_ex, (D, C, T, int, I), (domain, clock_domain, 1, 1, other))  \
  CALL(task_group, (D, I, I, S), (domain, id, other, string))                               \
  CALL(task_end, (D), (domain))                                                             \
  CALL(task_end_ex, (D, C, T), (domain, clock_domain, 1))                                   \
  CALL(task_begin_overlapped, (D, I, I, S), (domain, id, none, string))                     \
  CALL(task_end_overlapped, (D, I), (domain, id))                                           \
  CALL(task_begin_overlapped_ex, (D, C, T, I, I, S), (domain, NULL, 1, id, none, string))   \
  CALL(task_end_overlapped_ex, (D, C, T, I), (domain, NULL, 1, id))                         \
  CALL(region_begin, (D, I, I, S), (domain, id, none, string))                              \
  CALL(region_end, (D, I), (domain, id))                                                    \
  CALL(frame_begin_v3, (D, I*), (domain, &frame_id))                                        \
  CALL(frame_end_v3, (D, I*), (domain, &frame_id))                                          \
  CALL(frame_submit_v3, (D, I*, T, T), (domain, NULL, 1, 2))                                \
  CALL(frame_begin, (void*), (frame))                                                       \
  CALL(frame_end, (void*), (frame))                                                         \
  CALL(marker, (D, I, S, int), (domain, none, string, ITT_SCOPE_TASK))                      \
  CALL(marker_ex, (D, C, T, I, S, int), (domain, NULL, 1, none, string, ITT_SCOPE_GLOBAL))  \
  CALL(mark, (int, const char*), (old_mark, text))                                          \
  CALL(mark_global, (int, const char*), (old_mark, text))                                   \
  CALL(event_start, (int), (event))                                                         \
  CALL(event_end, (int), (event))                                                           \
  CALL(counter_inc, (void*), (counter))                                                     \
  CALL(counter_dec, (void*), (counter))                                                     \
  CALL(counter_inc_delta, (void*, T), (counter, 3))                                         \
  CALL(counter_dec_delta, (void*, T), (counter, 3))                                         \
  CALL(counter_inc_v3, (D, S), (domain, string))                                            \
  CALL(counter_dec_v3, (D, S), (domain, string))                                            \
  CALL(counter_inc_delta_v3, (D, S, T), (domain, string, 3))                                \
  CALL(counter_dec_delta_v3, (D, S, T), (domain, string, 3))                                \
  CALL(counter_set_value, (void*, void*), (typed, &number))                                 \
  CALL(counter_set_value_v3, (void*, void*), (counter_3, &number))                          \
  CALL(counter_set_value_ex, (void*, C, T, void*), (typed, clock_domain, 1, &number))       \
  CALL(counter_destroy, (void*), (typed))                                                   \
  CALL(sync_create, (void*, const char*, const char*, int), (&object, "lock", "a", 0))      \
  CALL(sync_set_name, (void*, const char*, const char*, int), (&object, "lock", "b", 0))    \
  CALL(sync_rename, (void*, const char*), (&object, "c"))                                   \
  CALL(sync_prepare, (void*), (&object))                                                    \
  CALL(sync_cancel, (void*), (&object))                                                     \
  CALL(sync_acquired, (void*), (&object))                                                   \
  CALL(sync_releasing, (void*), (&object))                                                  \
  CALL(notify_sync_prepare, (void*), (&object))                                             \
  CALL(notify_sync_cancel, (void*), (&object))                                              \
  CALL(notify_sync_acquired, (void*), (&object))                                            \
  CALL(notify_sync_releasing, (void*), (&object))                                           \
  CALL(sync_destroy, (void*), (&object))                                                    \
  CALL(pause, (void), ())                                                                   \
  CALL(resume, (void), ())                                                                  \
  CALL(pause_scoped, (int), (ITT_COLLECT_HOST))                                             \
  CALL(resume_scoped, (int), (ITT_COLLECT_HOST))                                            \
  CALL(detach, (void), ())                                                                  \
  CALL(thread_ignore, (void), ())                                                           \
  CALL(thr_ignore, (void), ())

#define MAKER(name, type, variable, parameters, arguments) \
  static void Call_##name(void* function) { variable = ((type(*) parameters)function)arguments; }
#define CALLER(name, parameters, arguments) \
  static void Call_##name(void* function) { ((void(*) parameters)function) arguments; }
CALLS(MAKER, CALLER)

#define MAKER_ENTRY(name, type, variable, parameters, arguments) {#name, Call_##name},
#define CALLER_ENTRY(name, parameters, arguments) {#name, Call_##name},
static const struct {
  const char* name;
  void (*call)(void* function);
} kCalls[] = {CALLS(MAKER_ENTRY, CALLER_ENTRY)};
#define CALL_COUNT (sizeof kCalls / sizeof *kCalls)

static long long Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void* functions[512];

static int Load(int count, char** names) {
  static struct itt_global global;
  static struct itt_api_info api[512];
  memcpy(global.magic, ITT_MAGIC, sizeof global.magic);
  global.version_major = 3;
  global.api_list = api;
  for (int i = 0; i < count; i++) {
    char name[128];
    snprintf(name, sizeof name, "__itt_%s", names[i]);
    api[i] = (struct itt_api_info){strdup(name), &functions[i], NULL, NULL, ITT_GROUP_STRUCTURE};
  }
  void* library = dlopen(getenv("INTEL_LIBITTNOTIFY64"), RTLD_LAZY);
  void (*init)(struct itt_global*, int);
  *(void**)&init = library ? dlsym(library, "__itt_api_init") : NULL;
  if (!init) return -1;
  init(&global, ITT_GROUP_ALL);
  return 0;
}

static int IndexOf(const char* name, int count, char** names) {
  for (int i = 0; i < count; i++) {
    if (strcmp(names[i], name) == 0) return i;
  }
  return -1;
}

int main(int argc, char** argv) {
  const int count = argc - 1;
  if (count >= 512 || Load(count, argv + 1) != 0) return 1;
  char line[16];
  if (!fgets(line, sizeof line, stdin)) return 1;
  for (size_t c = 0; c < CALL_COUNT; c++) {
    const int i = IndexOf(kCalls[c].name, count, argv + 1);
    if (i < 0 || !functions[i]) continue;
    const long long before = Now();
    kCalls[c].call(functions[i]);
    printf("%s %lld %lld\n", kCalls[c].name, before, Now());
    functions[i] = NULL;
    argv[1 + i] = "";
  }
  for (int i = 0; i < count; i++) {
    if (*argv[1 + i]) printf("%s %s\n", argv[1 + i], functions[i] ? "unknown" : "unbound");
  }
  fflush(stdout);
  return 0;
}

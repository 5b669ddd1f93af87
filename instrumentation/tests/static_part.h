// SPDX-License-Identifier: Apache-2.0
/* A static part of our own for tests: what a program that uses ITT carries, in the smallest form,
 * with the life of a real one. Objects may be made before the collector is loaded; the first other
 * call opens the library named in INTEL_LIBITTNOTIFY64 and lets it fill the table; without one
 * every call does nothing. Several parts may live in one process.
 */
#ifndef SYNCLINE_INSTRUMENTATION_TESTS_STATIC_PART_H_
#define SYNCLINE_INSTRUMENTATION_TESTS_STATIC_PART_H_

#include "instrumentation/itt/itt_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, result, parameters, group) */
#define STATIC_PART_FUNCTIONS(X)                                                                \
  X(domain_create, struct itt_domain*, (const char*), ITT_GROUP_STRUCTURE)                      \
  X(string_handle_create, struct itt_string_handle*, (const char*), ITT_GROUP_STRUCTURE)        \
  X(counter_create_typed, void*, (const char*, const char*, int), ITT_GROUP_COUNTER)            \
  X(event_create, int, (const char*, int), ITT_GROUP_MARK)                                      \
  X(get_timestamp, unsigned long long, (void), ITT_GROUP_STRUCTURE)                             \
  X(task_begin, void,                                                                           \
    (const struct itt_domain*, struct itt_id, struct itt_id, struct itt_string_handle*),        \
    ITT_GROUP_STRUCTURE)                                                                        \
  X(task_begin_fn, void, (const struct itt_domain*, struct itt_id, struct itt_id, void*),       \
    ITT_GROUP_STRUCTURE)                                                                        \
  X(task_end, void, (const struct itt_domain*), ITT_GROUP_STRUCTURE)                            \
  X(task_begin_overlapped, void,                                                                \
    (const struct itt_domain*, struct itt_id, struct itt_id, struct itt_string_handle*),        \
    ITT_GROUP_STRUCTURE)                                                                        \
  X(task_end_overlapped, void, (const struct itt_domain*, struct itt_id), ITT_GROUP_STRUCTURE)  \
  X(metadata_add, void,                                                                         \
    (const struct itt_domain*, struct itt_id, struct itt_string_handle*, int, size_t, void*),   \
    ITT_GROUP_STRUCTURE)                                                                        \
  X(metadata_str_add, void,                                                                     \
    (const struct itt_domain*, struct itt_id, struct itt_string_handle*, const char*, size_t),  \
    ITT_GROUP_STRUCTURE)                                                                        \
  X(formatted_metadata_add, void, (const struct itt_domain*, struct itt_string_handle*, ...),   \
    ITT_GROUP_STRUCTURE)                                                                        \
  X(marker, void, (const struct itt_domain*, struct itt_id, struct itt_string_handle*, int),    \
    ITT_GROUP_STRUCTURE)                                                                        \
  X(frame_create, void*, (const char*), ITT_GROUP_FRAME)                                        \
  X(frame_begin, void, (void*), ITT_GROUP_FRAME)                                                \
  X(frame_end, void, (void*), ITT_GROUP_FRAME)                                                  \
  X(mark_create, int, (const char*), ITT_GROUP_MARK)                                            \
  X(mark, int, (int, const char*), ITT_GROUP_MARK)                                              \
  X(mark_global, int, (int, const char*), ITT_GROUP_MARK)                                       \
  X(frame_begin_v3, void, (const struct itt_domain*, struct itt_id*), ITT_GROUP_STRUCTURE)      \
  X(frame_end_v3, void, (const struct itt_domain*, struct itt_id*), ITT_GROUP_STRUCTURE)        \
  X(frame_submit_v3, void,                                                                      \
    (const struct itt_domain*, struct itt_id*, unsigned long long, unsigned long long),         \
    ITT_GROUP_STRUCTURE)                                                                        \
  X(relation_add, void, (const struct itt_domain*, struct itt_id, int, struct itt_id),          \
    ITT_GROUP_STRUCTURE)                                                                        \
  X(relation_add_to_current, void, (const struct itt_domain*, int, struct itt_id),              \
    ITT_GROUP_STRUCTURE)                                                                        \
  X(histogram_create, struct itt_histogram*, (const struct itt_domain*, const char*, int, int), \
    ITT_GROUP_STRUCTURE)                                                                        \
  X(histogram_submit, void, (struct itt_histogram*, size_t, void*, void*), ITT_GROUP_STRUCTURE) \
  X(counter_inc_delta, void, (void*, unsigned long long), ITT_GROUP_COUNTER)                    \
  X(counter_set_value, void, (void*, void*), ITT_GROUP_COUNTER)                                 \
  X(bind_context_metadata_to_counter, void, (void*, size_t, struct itt_context_metadata*),      \
    ITT_GROUP_STRUCTURE)                                                                        \
  X(event_start, int, (int), ITT_GROUP_MARK)                                                    \
  X(event_end, int, (int), ITT_GROUP_MARK)                                                      \
  X(sync_create, void, (void*, const char*, const char*, int), ITT_GROUP_SYNC)                  \
  X(sync_acquired, void, (void*), ITT_GROUP_SYNC)                                               \
  X(thread_set_name, void, (const char*), ITT_GROUP_THREAD)                                     \
  X(pause, void, (void), ITT_GROUP_CONTROL)                                                     \
  X(resume, void, (void), ITT_GROUP_CONTROL)                                                    \
  X(detach, void, (void), ITT_GROUP_CONTROL)

enum static_part_index {
#define STATIC_PART_INDEX(name, result, parameters, group) STATIC_PART_##name,
  STATIC_PART_FUNCTIONS(STATIC_PART_INDEX)
#undef STATIC_PART_INDEX
      STATIC_PART_COUNT
};

struct static_part {
  struct itt_global global;
  pthread_t loading; /* the thread that loads the collector; it may call again from within */
  struct itt_api_info api[STATIC_PART_COUNT + 1];
#define STATIC_PART_POINTER(name, result, parameters, group) result(*name) parameters;
  STATIC_PART_FUNCTIONS(STATIC_PART_POINTER)
#undef STATIC_PART_POINTER
};

/* Before anything else. */
void static_part_start(struct static_part* part);
/* As before the collector is there: the part's own objects. */
struct itt_domain* static_part_domain(struct static_part* part, const char* name);
struct itt_string_handle* static_part_string(struct static_part* part, const char* text);
void* static_part_counter(struct static_part* part, const char* name, const char* domain, int type);
/* Loads the collector; 1 when there is one. `ITT_CALL` does it by itself. */
int static_part_load(struct static_part* part);
/* Tells the collector that this part ends. */
void static_part_end(struct static_part* part);

/* ITT_CALL(part, task_end, (domain)): loads the collector at the first call; skips what it does not
 * take. */
#define ITT_CALL(part, name, arguments)                          \
  do {                                                           \
    if (!(part)->global.api_initialized) static_part_load(part); \
    if ((part)->name) (part)->name arguments;                    \
  } while (0)

#ifdef __cplusplus
}
#endif

#endif /* SYNCLINE_INSTRUMENTATION_TESTS_STATIC_PART_H_ */

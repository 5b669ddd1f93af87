// SPDX-License-Identifier: Apache-2.0
/* The tee: a second collector in the process (VTune's) gets every call too.
 *
 * tee.c initialises it as a static part does, with a table of its own in a copy of each static
 * part's structures. The program's table then has functions of tee_calls.c, which call both; where
 * only one of the two takes a call, that one's function.
 *
 * The program holds our objects, or its static part's. The other collector makes its own for the
 * same names (tee_objects.c) and never meets those: what it writes into an object (the fields that
 * are a collector's, the flag that switches a domain off) is between it and itself. */
#ifndef SYNCLINE_INSTRUMENTATION_ITT_TEE_H_
#define SYNCLINE_INSTRUMENTATION_ITT_TEE_H_

#include <stddef.h>

#include "instrumentation/itt/internal.h"

/* ---- what collector.c does with it ---- */

/* The other collector's side of one static part. */
struct itt_tee;

/* Loads the collector that SYNCLINE_ALSO_COLLECTOR names and lets it bind what it wants of this
 * static part. NULL: there is none. `own`: our function of an entry, or none. */
struct itt_tee* itt_tee_begin(struct itt_global* global, int groups,
                              void* (*own)(const struct itt_api_info* api));
/* When we cannot record: it gets the static part itself. 0: there is none. */
int itt_tee_alone(struct itt_global* global, int groups);
/* The static part ends. */
void itt_tee_end(const struct itt_global* global);
/* What belongs into the program's table for the function at `index` of the API's list, where we
 * would take `own` (NULL: nothing). `tee` may be NULL. */
void* itt_tee_function(const struct itt_tee* tee, size_t index, void* own);

/* Objects that a static part made. This thread is busy. */
void itt_tee_adopt_domain(const struct itt_domain* domain);
void itt_tee_adopt_string(const struct itt_string_handle* handle);
void itt_tee_adopt_counter(const struct itt_counter_info* info);

/* ---- calls (tee_calls.c) ---- */

/* The functions that both take, by their names without __itt_. */
/* clang-format off */
#define ITT_TEE_CALLS(X) \
  X(domain_create) X(string_handle_create) X(counter_create) X(counter_create_typed) \
  X(counter_create_v3) X(event_create) X(mark_create) X(frame_create) X(histogram_create) \
  X(histogram_submit) X(clock_domain_create) X(track_group_create) X(track_create) \
  X(task_begin) X(task_begin_ex) \
  X(task_begin_fn) X(task_begin_fn_ex) X(task_end) X(task_end_ex) X(task_begin_overlapped) \
  X(task_begin_overlapped_ex) X(task_end_overlapped) X(task_end_overlapped_ex) X(region_begin) \
  X(region_end) X(task_group) X(id_create) X(id_create_ex) X(id_destroy) X(id_destroy_ex) \
  X(metadata_add) X(metadata_add_with_scope) X(metadata_str_add) X(metadata_str_add_with_scope) \
  X(formatted_metadata_add) X(formatted_metadata_add_overlapped) X(relation_add) \
  X(relation_add_ex) X(relation_add_to_current) X(relation_add_to_current_ex) X(frame_begin_v3) \
  X(frame_end_v3) X(frame_submit_v3) X(frame_begin) X(frame_end) X(marker) X(marker_ex) X(mark) \
  X(mark_off) X(mark_global) X(mark_global_off) X(event_start) X(event_end) X(counter_inc) \
  X(counter_dec) X(counter_inc_delta) X(counter_dec_delta) X(counter_inc_v3) X(counter_dec_v3) \
  X(counter_inc_delta_v3) X(counter_dec_delta_v3) X(counter_set_value) X(counter_set_value_v3) \
  X(counter_set_value_ex) X(counter_destroy) X(bind_context_metadata_to_counter) \
  X(thread_set_name) X(thread_ignore) X(thr_name_set) X(thr_ignore) X(pause) X(resume) \
  X(pause_scoped) X(resume_scoped) X(detach) X(sync_create) X(sync_set_name) X(sync_rename) \
  X(sync_destroy) X(sync_prepare) X(sync_cancel) X(sync_acquired) X(sync_releasing) \
  X(notify_sync_prepare) X(notify_sync_cancel) X(notify_sync_acquired) X(notify_sync_releasing) \
  X(get_timestamp)
/* clang-format on */
enum itt_tee_call {
#define ITT_TEE_PLACE(name) ITT_TEE_##name,
  ITT_TEE_CALLS(ITT_TEE_PLACE)
#undef ITT_TEE_PLACE
      ITT_TEE_CALL_COUNT
};

extern __attribute__((visibility("hidden")))
const struct itt_binding itt_tee_bindings[ITT_TEE_CALL_COUNT];
/* Those in which no object of ours can be: the other collector's own functions. Ends with NULL. */
extern __attribute__((visibility("hidden"))) const char* const itt_tee_direct[];

/* Our functions; this one, which does nothing, where we have none. */
int itt_tee_nothing(void);
extern __attribute__((visibility("hidden"))) void* itt_tee_own[ITT_TEE_CALL_COUNT];
/* Where the other collector keeps its functions; NULL: it never took the call. It takes a function
 * away by writing NULL there. */
extern __attribute__((visibility("hidden"))) void** itt_tee_theirs[ITT_TEE_CALL_COUNT];
static inline void* itt_tee_their(enum itt_tee_call call) {
  void** slot = __atomic_load_n(&itt_tee_theirs[call], __ATOMIC_ACQUIRE);
  return slot ? __atomic_load_n(slot, __ATOMIC_RELAXED) : NULL;
}
/* Remembers what its clock says now. */
void itt_tee_start_clock(void);

/* ---- objects (tee_objects.c) ---- */

/* 0, or -1 without memory. */
int itt_tee_objects_start(void);
/* Events, marks and old frames are numbers to the program: with one of these bits, which no address
 * has, they are found like addresses. */
#define ITT_TEE_EVENT (1ull << 63 | 1ull << 40)
#define ITT_TEE_MARK (1ull << 63 | 1ull << 41)
#define ITT_TEE_FRAME (1ull << 63 | 1ull << 42)
/* The other collector's object for one that the program holds; NULL: none is known. */
void* itt_tee_find(uint64_t held);
void itt_tee_keep(uint64_t held, void* theirs);
/* The same, and makes one when none is known. NULL: it has none, or has switched it off. */
const struct itt_domain* itt_tee_domain(const struct itt_domain* domain);
/* Also one that is switched off. */
const struct itt_domain* itt_tee_any_domain(const struct itt_domain* domain);
struct itt_string_handle* itt_tee_string(const struct itt_string_handle* handle);

#endif /* SYNCLINE_INSTRUMENTATION_ITT_TEE_H_ */

// SPDX-License-Identifier: Apache-2.0
/* The tee's calls: each goes to the other collector, with its own objects, and to us. What ends
 * something comes to us first, everything else last: so our times have nothing of the other's. */
#define _GNU_SOURCE
#include <printf.h>
#include <stdarg.h>
#include <string.h>

#include "instrumentation/itt/tee.h"

typedef const struct itt_domain* Domain;
typedef struct itt_string_handle* String;
typedef struct itt_id Id;
typedef struct itt_clock_domain* Clock;
typedef unsigned long long Time;

#define OWN(name) ((__typeof__(&Both_##name))itt_tee_own[ITT_TEE_##name])
#define THEIRS(name) ((__typeof__(&Both_##name))itt_tee_their(ITT_TEE_##name))
#define STRING(handle) itt_tee_string(handle)

static const struct itt_id none;

/* ---- time
 * ------------------------------------------------------------------------------------------- */

/* The program has our clock from __itt_get_timestamp. What it says of the other one's: through what
 * both said at the start, and say now. */
static Time first_own, first_their;

static Time Both_get_timestamp(void) { return OWN(get_timestamp)(); }

void itt_tee_start_clock(void) {
  __typeof__(&Both_get_timestamp) theirs = THEIRS(get_timestamp);
  if (!theirs || __atomic_load_n(&first_own, __ATOMIC_ACQUIRE)) return;
  first_their = theirs();
  __atomic_store_n(&first_own, syncline_clock_ns(), __ATOMIC_RELEASE);
}

static Time TheirTime(Time own) {
  __typeof__(&Both_get_timestamp) theirs = THEIRS(get_timestamp);
  const Time first = __atomic_load_n(&first_own, __ATOMIC_ACQUIRE);
  if (!theirs || !first || own == 0 || own == ITT_TIMESTAMP_NONE) return own;
  const Time now = syncline_clock_ns(), their_now = theirs();
  if (now <= first || their_now < first_their) return their_now;
  const double rate = (double)(their_now - first_their) / (double)(now - first);
  const double ago = (double)(long long)(now - own) * rate;
  return ago < (double)their_now ? their_now - (Time)(long long)ago : 0;
}

/* A time without a clock domain is one of __itt_get_timestamp. */
static Time TimeOf(Clock clock, Time time) { return clock ? time : TheirTime(time); }

/* ---- calls with nothing to translate
 * ---------------------------------------------------------------- */

#define PLAIN(name, parameters, arguments)          \
  static void Both_##name parameters {              \
    __typeof__(&Both_##name) theirs = THEIRS(name); \
    if (theirs) theirs arguments;                   \
    OWN(name) arguments;                            \
  }

PLAIN(thread_set_name, (const char* name), (name))
PLAIN(thread_ignore, (void), ())
PLAIN(thr_ignore, (void), ())
PLAIN(pause, (void), ())
PLAIN(resume, (void), ())
PLAIN(pause_scoped, (int scope), (scope))
PLAIN(resume_scoped, (int scope), (scope))
PLAIN(detach, (void), ())
PLAIN(sync_create, (void* object, const char* type, const char* name, int attribute),
      (object, type, name, attribute))
PLAIN(sync_set_name, (void* object, const char* type, const char* name, int attribute),
      (object, type, name, attribute))
PLAIN(sync_rename, (void* object, const char* name), (object, name))
PLAIN(sync_destroy, (void* object), (object))
PLAIN(sync_prepare, (void* object), (object))
PLAIN(sync_cancel, (void* object), (object))
PLAIN(sync_acquired, (void* object), (object))
PLAIN(sync_releasing, (void* object), (object))
PLAIN(notify_sync_prepare, (void* object), (object))
PLAIN(notify_sync_cancel, (void* object), (object))
PLAIN(notify_sync_acquired, (void* object), (object))
PLAIN(notify_sync_releasing, (void* object), (object))

static int Both_thr_name_set(const char* name, int bytes) {
  __typeof__(&Both_thr_name_set) theirs = THEIRS(thr_name_set);
  if (theirs) theirs(name, bytes);
  return OWN(thr_name_set)(name, bytes);
}

/* ---- objects
 * ---------------------------------------------------------------------------------------- */

static struct itt_domain* Both_domain_create(const char* name) {
  struct itt_domain* domain = OWN(domain_create)(name);
  if (domain) itt_tee_domain(domain);
  return domain;
}

static String Both_string_handle_create(const char* text) {
  String handle = OWN(string_handle_create)(text);
  itt_tee_string(handle);
  return handle;
}

static void* Counter(void* held, void* theirs) {
  itt_tee_keep((uintptr_t)held, theirs);
  return held;
}
static void* Both_counter_create(const char* name, const char* domain) {
  __typeof__(&Both_counter_create) theirs = THEIRS(counter_create);
  return Counter(OWN(counter_create)(name, domain), theirs ? theirs(name, domain) : NULL);
}
static void* Both_counter_create_typed(const char* name, const char* domain, int type) {
  __typeof__(&Both_counter_create_typed) theirs = THEIRS(counter_create_typed);
  return Counter(OWN(counter_create_typed)(name, domain, type),
                 theirs ? theirs(name, domain, type) : NULL);
}
static void* Both_counter_create_v3(Domain domain, const char* name, int type) {
  __typeof__(&Both_counter_create_v3) theirs = THEIRS(counter_create_v3);
  Domain d = theirs ? itt_tee_any_domain(domain) : NULL;
  return Counter(OWN(counter_create_v3)(domain, name, type), d ? theirs(d, name, type) : NULL);
}

/* The other's number of an event or a mark: kept as one more, so that 0 can be one. */
static int NumberOf(uint64_t kind, int held, int* number) {
  const uintptr_t kept = held > 0 ? (uintptr_t)itt_tee_find(kind | (uint64_t)held) : 0;
  *number = (int)(uint32_t)(kept - 1);
  return kept != 0;
}
static void KeepNumber(uint64_t kind, int held, int theirs) {
  itt_tee_keep(kind | (uint64_t)held, (void*)((uintptr_t)(uint32_t)theirs + 1));
}

static int Both_event_create(const char* name, int bytes) {
  __typeof__(&Both_event_create) theirs = THEIRS(event_create);
  const int held = OWN(event_create)(name, bytes);
  int number;
  if (theirs && held > 0 && !NumberOf(ITT_TEE_EVENT, held, &number)) {
    KeepNumber(ITT_TEE_EVENT, held, theirs(name, bytes));
  }
  return held;
}
static int Both_mark_create(const char* name) {
  __typeof__(&Both_mark_create) theirs = THEIRS(mark_create);
  const int held = OWN(mark_create)(name);
  int number;
  if (theirs && held > 0 && !NumberOf(ITT_TEE_MARK, held, &number)) {
    KeepNumber(ITT_TEE_MARK, held, theirs(name));
  }
  return held;
}
static void* Both_frame_create(const char* name) {
  __typeof__(&Both_frame_create) theirs = THEIRS(frame_create);
  void* held = OWN(frame_create)(name);
  const uint64_t key = ITT_TEE_FRAME | (uintptr_t)held;
  if (theirs && held && !itt_tee_find(key)) itt_tee_keep(key, theirs(name));
  return held;
}

/* Also for one that a static part made. */
static struct itt_histogram* TheirHistogram(const struct itt_histogram* held) {
  struct itt_histogram* (*create)(Domain, const char*, int, int) =
      itt_tee_their(ITT_TEE_histogram_create);
  struct itt_histogram* theirs = itt_tee_find((uintptr_t)held);
  if (theirs || !held || !create) return theirs;
  Domain d = itt_tee_any_domain(held->domain);
  if (d && held->name) theirs = create(d, held->name, held->x_type, held->y_type);
  itt_tee_keep((uintptr_t)held, theirs);
  return theirs;
}
static struct itt_histogram* Both_histogram_create(Domain domain, const char* name, int x_type,
                                                   int y_type) {
  struct itt_histogram* held = OWN(histogram_create)(domain, name, x_type, y_type);
  TheirHistogram(held);
  return held;
}
static void Both_histogram_submit(struct itt_histogram* held, size_t length, void* x, void* y) {
  __typeof__(&Both_histogram_submit) theirs = THEIRS(histogram_submit);
  struct itt_histogram* histogram = theirs ? TheirHistogram(held) : NULL;
  if (histogram) theirs(histogram, length, x, y);
  OWN(histogram_submit)(held, length, x, y);
}

/* To us these are nothing: the program has the other's. */
static Clock Both_clock_domain_create(itt_clock_info_function function, void* data) {
  __typeof__(&Both_clock_domain_create) theirs = THEIRS(clock_domain_create);
  Clock clock = theirs ? theirs(function, data) : NULL;
  return clock ? clock : OWN(clock_domain_create)(function, data);
}
static void* Both_track_group_create(String name, int type) {
  __typeof__(&Both_track_group_create) theirs = THEIRS(track_group_create);
  return theirs ? theirs(STRING(name), type) : OWN(track_group_create)(name, type);
}
static void* Both_track_create(void* group, String name, int type) {
  __typeof__(&Both_track_create) theirs = THEIRS(track_create);
  return theirs ? theirs(group, STRING(name), type) : OWN(track_create)(group, name, type);
}

/* ---- calls in a domain: `d` is the other's
 * ---------------------------------------------------------- */

#define IN_DOMAIN(name, parameters, own_arguments, their_arguments) \
  static void Both_##name parameters {                              \
    __typeof__(&Both_##name) theirs = THEIRS(name);                 \
    Domain d = theirs ? itt_tee_domain(domain) : NULL;              \
    if (d) theirs their_arguments;                                  \
    OWN(name) own_arguments;                                        \
  }
#define ENDS_IN_DOMAIN(name, parameters, own_arguments, their_arguments) \
  static void Both_##name parameters {                                   \
    OWN(name) own_arguments;                                             \
    __typeof__(&Both_##name) theirs = THEIRS(name);                      \
    Domain d = theirs ? itt_tee_domain(domain) : NULL;                   \
    if (d) theirs their_arguments;                                       \
  }

IN_DOMAIN(task_begin, (Domain domain, Id id, Id parent, String name), (domain, id, parent, name),
          (d, id, parent, STRING(name)))
IN_DOMAIN(task_begin_ex, (Domain domain, Clock clock, Time time, Id id, Id parent, String name),
          (domain, clock, time, id, parent, name),
          (d, clock, TimeOf(clock, time), id, parent, STRING(name)))
IN_DOMAIN(task_begin_fn, (Domain domain, Id id, Id parent, void* function),
          (domain, id, parent, function), (d, id, parent, function))
IN_DOMAIN(task_begin_fn_ex,
          (Domain domain, Clock clock, Time time, Id id, Id parent, void* function),
          (domain, clock, time, id, parent, function),
          (d, clock, TimeOf(clock, time), id, parent, function))
ENDS_IN_DOMAIN(task_end, (Domain domain), (domain), (d))
ENDS_IN_DOMAIN(task_end_ex, (Domain domain, Clock clock, Time time), (domain, clock, time),
               (d, clock, TimeOf(clock, time)))
IN_DOMAIN(task_begin_overlapped, (Domain domain, Id id, Id parent, String name),
          (domain, id, parent, name), (d, id, parent, STRING(name)))
IN_DOMAIN(task_begin_overlapped_ex,
          (Domain domain, Clock clock, Time time, Id id, Id parent, String name),
          (domain, clock, time, id, parent, name),
          (d, clock, TimeOf(clock, time), id, parent, STRING(name)))
ENDS_IN_DOMAIN(task_end_overlapped, (Domain domain, Id id), (domain, id), (d, id))
ENDS_IN_DOMAIN(task_end_overlapped_ex, (Domain domain, Clock clock, Time time, Id id),
               (domain, clock, time, id), (d, clock, TimeOf(clock, time), id))
IN_DOMAIN(region_begin, (Domain domain, Id id, Id parent, String name), (domain, id, parent, name),
          (d, id, parent, STRING(name)))
ENDS_IN_DOMAIN(region_end, (Domain domain, Id id), (domain, id), (d, id))
IN_DOMAIN(task_group, (Domain domain, Id id, Id parent, String name), (domain, id, parent, name),
          (d, id, parent, STRING(name)))
IN_DOMAIN(id_create, (Domain domain, Id id), (domain, id), (d, id))
IN_DOMAIN(id_create_ex, (Domain domain, Clock clock, Time time, Id id), (domain, clock, time, id),
          (d, clock, TimeOf(clock, time), id))
IN_DOMAIN(id_destroy, (Domain domain, Id id), (domain, id), (d, id))
IN_DOMAIN(id_destroy_ex, (Domain domain, Clock clock, Time time, Id id), (domain, clock, time, id),
          (d, clock, TimeOf(clock, time), id))
IN_DOMAIN(metadata_add, (Domain domain, Id id, String key, int type, size_t count, void* data),
          (domain, id, key, type, count, data), (d, id, STRING(key), type, count, data))
IN_DOMAIN(metadata_add_with_scope,
          (Domain domain, int scope, String key, int type, size_t count, void* data),
          (domain, scope, key, type, count, data), (d, scope, STRING(key), type, count, data))
IN_DOMAIN(metadata_str_add, (Domain domain, Id id, String key, const char* text, size_t bytes),
          (domain, id, key, text, bytes), (d, id, STRING(key), text, bytes))
IN_DOMAIN(metadata_str_add_with_scope,
          (Domain domain, int scope, String key, const char* text, size_t bytes),
          (domain, scope, key, text, bytes), (d, scope, STRING(key), text, bytes))
IN_DOMAIN(relation_add, (Domain domain, Id head, int relation, Id tail),
          (domain, head, relation, tail), (d, head, relation, tail))
IN_DOMAIN(relation_add_ex, (Domain domain, Clock clock, Time time, Id head, int relation, Id tail),
          (domain, clock, time, head, relation, tail),
          (d, clock, TimeOf(clock, time), head, relation, tail))
IN_DOMAIN(relation_add_to_current, (Domain domain, int relation, Id tail), (domain, relation, tail),
          (d, relation, tail))
IN_DOMAIN(relation_add_to_current_ex,
          (Domain domain, Clock clock, Time time, int relation, Id tail),
          (domain, clock, time, relation, tail), (d, clock, TimeOf(clock, time), relation, tail))
IN_DOMAIN(frame_begin_v3, (Domain domain, Id* id), (domain, id), (d, id))
ENDS_IN_DOMAIN(frame_end_v3, (Domain domain, Id* id), (domain, id), (d, id))
IN_DOMAIN(frame_submit_v3, (Domain domain, Id* id, Time begin, Time end), (domain, id, begin, end),
          (d, id, TheirTime(begin), TheirTime(end)))
IN_DOMAIN(marker, (Domain domain, Id id, String name, int scope), (domain, id, name, scope),
          (d, id, STRING(name), scope))
IN_DOMAIN(marker_ex, (Domain domain, Clock clock, Time time, Id id, String name, int scope),
          (domain, clock, time, id, name, scope),
          (d, clock, TimeOf(clock, time), id, STRING(name), scope))
IN_DOMAIN(counter_inc_v3, (Domain domain, String name), (domain, name), (d, STRING(name)))
IN_DOMAIN(counter_dec_v3, (Domain domain, String name), (domain, name), (d, STRING(name)))
IN_DOMAIN(counter_inc_delta_v3, (Domain domain, String name, Time delta), (domain, name, delta),
          (d, STRING(name), delta))
IN_DOMAIN(counter_dec_delta_v3, (Domain domain, String name, Time delta), (domain, name, delta),
          (d, STRING(name), delta))

/* ---- calls with another object
 * ---------------------------------------------------------------------- */

#define OF_COUNTER(name, parameters, own_arguments, their_arguments) \
  static void Both_##name parameters {                               \
    __typeof__(&Both_##name) theirs = THEIRS(name);                  \
    void* c = theirs ? itt_tee_find((uintptr_t)counter) : NULL;      \
    if (c) theirs their_arguments;                                   \
    OWN(name) own_arguments;                                         \
  }
OF_COUNTER(counter_inc, (void* counter), (counter), (c))
OF_COUNTER(counter_dec, (void* counter), (counter), (c))
OF_COUNTER(counter_inc_delta, (void* counter, Time delta), (counter, delta), (c, delta))
OF_COUNTER(counter_dec_delta, (void* counter, Time delta), (counter, delta), (c, delta))
OF_COUNTER(counter_set_value, (void* counter, void* value), (counter, value), (c, value))
OF_COUNTER(counter_set_value_v3, (void* counter, void* value), (counter, value), (c, value))
OF_COUNTER(counter_set_value_ex, (void* counter, Clock clock, Time time, void* value),
           (counter, clock, time, value), (c, clock, TimeOf(clock, time), value))
OF_COUNTER(counter_destroy, (void* counter), (counter), (c))
OF_COUNTER(bind_context_metadata_to_counter, (void* counter, size_t count, void* metadata),
           (counter, count, metadata), (c, count, metadata))

#define OF_NUMBER(name, kind, parameters, own_arguments, their_arguments) \
  static int Both_##name parameters {                                     \
    __typeof__(&Both_##name) theirs = THEIRS(name);                       \
    int number;                                                           \
    if (theirs && NumberOf(kind, held, &number)) theirs their_arguments;  \
    return OWN(name) own_arguments;                                       \
  }
OF_NUMBER(event_start, ITT_TEE_EVENT, (int held), (held), (number))
OF_NUMBER(event_end, ITT_TEE_EVENT, (int held), (held), (number))
OF_NUMBER(mark, ITT_TEE_MARK, (int held, const char* text), (held, text), (number, text))
OF_NUMBER(mark_off, ITT_TEE_MARK, (int held), (held), (number))
OF_NUMBER(mark_global, ITT_TEE_MARK, (int held, const char* text), (held, text), (number, text))
OF_NUMBER(mark_global_off, ITT_TEE_MARK, (int held), (held), (number))

#define OF_FRAME(name)                                                       \
  static void Both_##name(void* held) {                                      \
    __typeof__(&Both_##name) theirs = THEIRS(name);                          \
    void* f = theirs ? itt_tee_find(ITT_TEE_FRAME | (uintptr_t)held) : NULL; \
    if (f) theirs(f);                                                        \
    OWN(name)(held);                                                         \
  }
OF_FRAME(frame_begin)
OF_FRAME(frame_end)

/* ---- calls with any number of arguments
 * ------------------------------------------------------------- */

/* In x86-64's calling convention the arguments that a format names lie in four registers for whole
 * numbers, eight for reals, and words on the stack, each kind in order: so they are handed on
 * without their types. Of the stack no more is read than the format says: it may end there.
 * Elsewhere the other collector does not get these calls. */
#if defined(__x86_64__)
#define REGISTERS 4
#define REALS 8
#define STACK_WORDS 40
#define ARGUMENTS_LIMIT (REGISTERS + REALS + STACK_WORDS)
struct Arguments {
  uint64_t word[REGISTERS + STACK_WORDS];
  double real[REALS];
};

/* Words on the stack, behind `before` others; more than STACK_WORDS: too many. */
static size_t StackWords(const char* format, size_t before) {
  int types[ARGUMENTS_LIMIT] = {0};
  const size_t count = parse_printf_format(format, ARGUMENTS_LIMIT, types);
  if (count > ARGUMENTS_LIMIT) return STACK_WORDS + 1;
  size_t whole = 0, reals = 0, words = before;
  for (size_t i = 0; i < count; i++) {
    const int kind = types[i] & ~PA_FLAG_MASK;
    const int real = !(types[i] & PA_FLAG_PTR) && (kind == PA_DOUBLE || kind == PA_FLOAT);
    if (real && types[i] & PA_FLAG_LONG_DOUBLE) {
      words += words % 2 + 2;
    } else if (real ? reals++ >= REALS : whole++ >= REGISTERS) {
      words++;
    }
  }
  return words - before;
}

/* 0: there are too many. */
static int Gather(struct Arguments* all, String format, size_t before, va_list list) {
  const size_t words = format && format->text ? StackWords(format->text, before) : 0;
  if (words > STACK_WORDS) return 0;
  memset(all, 0, sizeof *all);
  for (size_t i = 0; i < REGISTERS; i++) all->word[i] = va_arg(list, uint64_t);
  for (size_t i = 0; i < REALS; i++) all->real[i] = va_arg(list, double);
  for (size_t i = 0; i < words; i++) all->word[REGISTERS + i] = va_arg(list, uint64_t);
  return 1;
}
#define FOUR(values, i) values[i], values[(i) + 1], values[(i) + 2], values[(i) + 3]
#define TWENTY(values, i)                                                                \
  FOUR(values, i), FOUR(values, (i) + 4), FOUR(values, (i) + 8), FOUR(values, (i) + 12), \
      FOUR(values, (i) + 16)
#define ALL(a) \
  FOUR(a.word, 0), FOUR(a.real, 0), FOUR(a.real, 4), TWENTY(a.word, 4), TWENTY(a.word, 24)

static void Both_formatted_metadata_add(Domain domain, String format, ...) {
  __typeof__(&Both_formatted_metadata_add) theirs = THEIRS(formatted_metadata_add);
  Domain d = theirs ? itt_tee_domain(domain) : NULL;
  struct Arguments all;
  va_list list;
  va_start(list, format);
  if (d && Gather(&all, format, 0, list)) theirs(d, STRING(format), ALL(all));
  va_end(list);
  if (itt_tee_own[ITT_TEE_formatted_metadata_add] == itt_tee_nothing) return;
  va_start(list, format);
  itt_formatted(domain, &none, format, list);
  va_end(list);
}

static void Both_formatted_metadata_add_overlapped(Domain domain, Id id, String format, ...) {
  __typeof__(&Both_formatted_metadata_add_overlapped) theirs =
      THEIRS(formatted_metadata_add_overlapped);
  Domain d = theirs ? itt_tee_domain(domain) : NULL;
  struct Arguments all;
  va_list list;
  va_start(list, format);
  if (d && Gather(&all, format, sizeof id / sizeof(uint64_t), list)) {
    theirs(d, id, STRING(format), ALL(all));
  }
  va_end(list);
  if (itt_tee_own[ITT_TEE_formatted_metadata_add_overlapped] == itt_tee_nothing) return;
  va_start(list, format);
  itt_formatted(domain, &id, format, list);
  va_end(list);
}
#else
#define Both_formatted_metadata_add NULL
#define Both_formatted_metadata_add_overlapped NULL
#endif

/* ---- which
 * ------------------------------------------------------------------------------------------ */

const struct itt_binding itt_tee_bindings[ITT_TEE_CALL_COUNT] = {
#define BINDING(name) {"__itt_" #name, Both_##name},
    ITT_TEE_CALLS(BINDING)};

#define DIRECT(name) "__itt_" #name
const char* const itt_tee_direct[] = {
    DIRECT(pt_region_create),
    DIRECT(set_track),
    DIRECT(clock_domain_reset),
    DIRECT(stack_caller_create),
    DIRECT(stack_caller_destroy),
    DIRECT(stack_callee_enter),
    DIRECT(stack_callee_leave),
    DIRECT(heap_function_create),
    DIRECT(heap_allocate_begin),
    DIRECT(heap_allocate_end),
    DIRECT(heap_free_begin),
    DIRECT(heap_free_end),
    DIRECT(heap_reallocate_begin),
    DIRECT(heap_reallocate_end),
    DIRECT(heap_internal_access_begin),
    DIRECT(heap_internal_access_end),
    DIRECT(heap_record),
    DIRECT(heap_record_memory_growth_begin),
    DIRECT(heap_record_memory_growth_end),
    DIRECT(heap_reset_detection),
    DIRECT(memory_read),
    DIRECT(memory_write),
    DIRECT(memory_update),
    DIRECT(suppress_push),
    DIRECT(suppress_pop),
    DIRECT(suppress_mark_range),
    DIRECT(suppress_clear_range),
    DIRECT(model_site_begin),
    DIRECT(model_site_beginA),
    DIRECT(model_site_beginAL),
    DIRECT(model_site_end),
    DIRECT(model_site_end_2),
    DIRECT(model_task_begin),
    DIRECT(model_task_beginA),
    DIRECT(model_task_beginAL),
    DIRECT(model_task_end),
    DIRECT(model_task_end_2),
    DIRECT(model_iteration_taskA),
    DIRECT(model_iteration_taskAL),
    DIRECT(model_lock_acquire),
    DIRECT(model_lock_acquire_2),
    DIRECT(model_lock_release),
    DIRECT(model_lock_release_2),
    DIRECT(model_record_allocation),
    DIRECT(model_record_deallocation),
    DIRECT(model_induction_uses),
    DIRECT(model_reduction_uses),
    DIRECT(model_observe_uses),
    DIRECT(model_clear_uses),
    DIRECT(model_disable_push),
    DIRECT(model_disable_pop),
    DIRECT(model_aggregate_task),
    DIRECT(module_load),
    DIRECT(module_load_with_sections),
    DIRECT(module_unload),
    DIRECT(module_unload_with_sections),
    DIRECT(av_save),
    DIRECT(notify_sync_name),
    DIRECT(obj_mode_set),
    DIRECT(thr_mode_set),
    DIRECT(state_get),
    DIRECT(state_set),
    DIRECT(enable_attach),
    NULL,
};

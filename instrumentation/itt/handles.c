// SPDX-License-Identifier: Apache-2.0
/* Domains, string handles and everything else that a create function must return.
 *
 * Objects that the static parts made before we were loaded are adopted; later ones come from here,
 * one for each text however many static parts ask, and are never freed (the API has no way to say
 * so). Programs that make a new string for every step are bounded twice: by the name table (then
 * texts travel in the events) and by the arena (then everything new shares one handle). */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "instrumentation/block/text_hash.h"
#include "instrumentation/itt/internal.h"

struct side_table itt_handles = {NULL, 16u << 20};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
void itt_lock(void) { pthread_mutex_lock(&mutex); }
void itt_unlock(void) { pthread_mutex_unlock(&mutex); }

struct syncline_thread* itt_occupy(void) {
  struct syncline_thread* common = syncline_thread_self();
  if (!common || common->busy) return NULL;
  common->busy = 1;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  return common;
}

static void** by_id; /* our domain or string handle of a name's id */

static struct itt_string_handle too_many = {"(too many names)", NULL, 0, NULL, NULL};
static struct itt_domain switched_off = {0, "(off)", NULL, 0, NULL, NULL};

/* ---- ids
 * ------------------------------------------------------------------------------------------- */

/* The lock of the side tables and of the names are taken one after the other, never together. An
 * object without an id (the table is full, or not there yet) is asked for its text when it is first
 * recorded. */
static struct side_entry* Remember(const void* object, uint32_t id) {
  if (!id) return NULL;
  itt_lock();
  const struct side_entry* old = side_find(&itt_handles, (uintptr_t)object);
  const int over = old && old->value != id;
  struct side_entry* entry = side_put(&itt_handles, (uintptr_t)object, id);
  itt_unlock();
  /* Libraries are unloaded, and their objects with them: an address may become another's. */
  if (over) __atomic_fetch_add(&itt_shared.names_epoch, 1, __ATOMIC_RELEASE);
  return entry;
}

void itt_adopt_domain(const struct itt_domain* domain) {
  if (!domain->name) return;
  Remember(domain, syncline_name_intern(SYNCLINE_NAME_DOMAIN, domain->name, strlen(domain->name)));
}

void itt_adopt_string(const struct itt_string_handle* handle) {
  if (!handle->text) return;
  Remember(handle, syncline_name_intern(SYNCLINE_NAME_STRING, handle->text, strlen(handle->text)));
}

/* Domains and strings, by what they have in common. */
static const char* TextOf(const void* object, uint8_t kind) {
  return kind == SYNCLINE_NAME_DOMAIN ? ((const struct itt_domain*)object)->name
                                      : ((const struct itt_string_handle*)object)->text;
}

/* Of an object that is asked for the first time; NAME_IN_EVENT: the table is full. 0: it has no
 * text. */
static uint32_t IdOfText(const void* object, uint8_t kind) {
  const char* text = TextOf(object, kind);
  if (!text) return 0;
  const uint32_t id = syncline_name_intern(kind, text, strlen(text));
  return id ? id : NAME_IN_EVENT;
}

static void Announce(struct itt_thread* thread, uint32_t id) {
  if (id != NAME_IN_EVENT) syncline_name_announce(thread->common, id);
}

static uint32_t OwnId(struct itt_thread* thread, struct itt_object* own, uint8_t kind) {
  uint32_t id = __atomic_load_n(&own->id, __ATOMIC_RELAXED);
  if (!id) id = IdOfText(own + 1, kind);
  if (!id) return 0;
  Announce(thread, id);
  __atomic_store_n(&own->id, id, __ATOMIC_RELAXED);
  __atomic_store_n(&own->session, thread->common->session, __ATOMIC_RELEASE);
  return id;
}

/* The object is looked into only when we do not know it: it may have gone with the library that
 * made it, while a task of that library is still open. */
static uint32_t ForeignId(struct itt_thread* thread, const void* object, uint8_t kind) {
  struct side_entry* entry = side_find(&itt_handles, (uintptr_t)object);
  if (entry && entry->session == thread->common->session) return entry->value;
  const uint32_t id = entry ? entry->value : IdOfText(object, kind);
  if (!id) return 0;
  if (!entry) entry = Remember(object, id);
  Announce(thread, id);
  if (entry) __atomic_store_n(&entry->session, thread->common->session, __ATOMIC_RELAXED);
  return id;
}

/* The epoch is read before the object is looked up, so that an adoption meanwhile is noticed by the
 * next call. */
static void ForgetWhatIsOver(struct itt_thread* thread) {
  const uint32_t epoch = __atomic_load_n(&itt_shared.names_epoch, __ATOMIC_ACQUIRE);
  if (thread->names_epoch != epoch) itt_forget_names(thread, epoch);
}

void itt_forget_names(struct itt_thread* thread, uint32_t epoch) {
  memset(thread->known, 0, sizeof thread->known);
  thread->names_epoch = epoch;
  thread->names_session = thread->common->session;
}

/* An object without a text is not remembered: it may get one. */
uint32_t itt_id_slow(struct itt_thread* thread, const void* object, uint8_t kind) {
  if (!object) return 0;
  struct itt_object* own = Object(object);
  if (own) return OwnId(thread, own, kind);
  ForgetWhatIsOver(thread);
  struct itt_known* known = KnownAt(thread, object);
  const uint32_t id = ForeignId(thread, object, kind);
  if (id) {
    known->object = object;
    known->id = id;
  }
  return id;
}

uint32_t itt_name(uint8_t kind, const char* text, size_t bytes) {
  uint32_t id = syncline_name_find(kind, text, bytes);
  if (id) return id;
  struct syncline_thread* common = itt_occupy();
  if (!common) return 0;
  id = syncline_name_intern(kind, text, bytes);
  itt_release(common);
  return id;
}

/* ---- making objects
 * -------------------------------------------------------------------------------- */

/* Two threads may make an object for one text at once: the first to get here wins. */
static void* Settle(uint32_t id, void* object) {
  void* expected = NULL;
  if (!id || !by_id) return object;
  return __atomic_compare_exchange_n(&by_id[id], &expected, object, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)
             ? object
             : expected;
}

static void* Known(uint8_t kind, const char* text, size_t bytes) {
  const uint32_t id = syncline_name_find(kind, text, bytes);
  return id && by_id ? __atomic_load_n(&by_id[id], __ATOMIC_ACQUIRE) : NULL;
}

static struct itt_domain* DomainCreate(const char* name) {
  if (!name) return &switched_off;
  const size_t bytes = strlen(name);
  struct itt_domain* domain = Known(SYNCLINE_NAME_DOMAIN, name, bytes);
  if (domain) return domain;
  char* copy;
  const uint32_t id = itt_name(SYNCLINE_NAME_DOMAIN, name, bytes);
  domain = itt_object_new(id, sizeof *domain, name, bytes, &copy);
  if (!domain) return &switched_off;
  domain->flags = 1;
  domain->name = copy;
  return Settle(id, domain);
}

/* Strings beyond the name table: remembered in a small table of their own, so that a loop over a
 * few new names does not eat the arena. */
#define OVERFLOW_SLOTS 65536u
static struct itt_string_handle** overflow;

static uint32_t OverflowHash(const char* text) {
  uint32_t hash = 2166136261u;
  for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 16777619u;
  return hash;
}

static struct itt_string_handle* OverflowFind(const char* text) {
  const uint32_t begin = OverflowHash(text);
  for (uint32_t i = 0; overflow && i < 8; i++) {
    struct itt_string_handle* handle =
        __atomic_load_n(&overflow[(begin + i) % OVERFLOW_SLOTS], __ATOMIC_ACQUIRE);
    if (handle && strcmp(handle->text, text) == 0) return handle;
  }
  return NULL;
}

static void OverflowPut(struct itt_string_handle* handle) {
  const uint32_t begin = OverflowHash(handle->text);
  for (uint32_t i = 0; overflow && i < 8; i++) {
    struct itt_string_handle* expected = NULL;
    if (__atomic_compare_exchange_n(&overflow[(begin + i) % OVERFLOW_SLOTS], &expected, handle, 0,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      return;
    }
  }
}

static __attribute__((noinline)) struct itt_string_handle* NewString(const char* text,
                                                                     size_t bytes) {
  const uint32_t id = itt_name(SYNCLINE_NAME_STRING, text, bytes);
  struct itt_string_handle* handle = id ? NULL : OverflowFind(text);
  if (handle) return handle;
  char* copy;
  handle = itt_object_new(id, sizeof *handle, text, bytes, &copy);
  if (!handle) return &too_many;
  handle->text = copy;
  if (!id) OverflowPut(handle);
  return Settle(id, handle);
}

/* Handles that were asked for lately, by their texts: programs ask for one before every task. The
 * place of an object, see objects.c; 0: none. Two that fall on one slot live side by side. */
#define RECENT_HANDLES 1024u
static uint32_t recent[RECENT_HANDLES] __attribute__((aligned(64)));

static inline struct itt_string_handle* RecentAt(uint32_t slot, const char* text) {
  struct itt_string_handle* handle =
      itt_object_at(__atomic_load_n(&recent[slot], __ATOMIC_ACQUIRE));
  return handle && strcmp((const char*)(handle + 1), text) == 0 ? handle : NULL;
}

static void Keep(uint32_t slot, const struct itt_string_handle* handle) {
  if (__atomic_load_n(&recent[slot], __ATOMIC_RELAXED) != 0 &&
      __atomic_load_n(&recent[slot ^ 1], __ATOMIC_RELAXED) == 0) {
    slot ^= 1;
  }
  __atomic_store_n(&recent[slot], itt_object_place(handle), __ATOMIC_RELEASE);
}

/* NULL for a text without a handle. */
static SYNCLINE_HOT struct itt_string_handle* Lookup(const char* text) {
  const size_t bytes = strlen(text);
  const uint32_t slot = syncline_text_hash(SYNCLINE_NAME_STRING, text, bytes) % RECENT_HANDLES;
  struct itt_string_handle* handle = RecentAt(slot, text);
  if (__builtin_expect(handle != NULL, 1)) return handle;
  handle = RecentAt(slot ^ 1, text);
  if (handle) return handle;
  handle = Known(SYNCLINE_NAME_STRING, text, bytes);
  if (handle) Keep(slot, handle);
  return handle;
}

static SYNCLINE_HOT struct itt_string_handle* StringHandleCreate(const char* text) {
  if (!text) return NULL;
  struct itt_thread* thread = itt_self;
  struct itt_string_handle* handle;
  if (Records(thread, *itt_shared.gate)) {
    const uint64_t cost = Begun(thread->common);
    handle = Lookup(text);
    Done(thread->common, cost);
  } else {
    handle = Lookup(text);
  }
  return __builtin_expect(handle != NULL, 1) ? handle : NewString(text, strlen(text));
}

/* ---- the rest: opaque to us
 * ------------------------------------------------------------------------ */

static struct itt_histogram* HistogramCreate(const struct itt_domain* domain, const char* name,
                                             int x_type, int y_type) {
  char* copy;
  struct itt_histogram* histogram =
      itt_object_new(0, sizeof *histogram, name ? name : "", name ? strlen(name) : 0, &copy);
  if (!histogram) return NULL;
  histogram->domain = domain;
  histogram->name = copy;
  histogram->x_type = x_type;
  histogram->y_type = y_type;
  return histogram;
}

static struct itt_clock_domain* ClockDomainCreate(itt_clock_info_function function, void* data) {
  struct itt_clock_domain* clock = syncline_arena(sizeof *clock);
  if (!clock) return NULL;
  clock->function = function;
  clock->function_data = data;
  if (function) function(&clock->info, data);
  return clock;
}

static struct itt_track_group* TrackGroupCreate(struct itt_string_handle* name, int type) {
  struct itt_track_group* group = syncline_arena(sizeof *group);
  if (!group) return NULL;
  group->name = name;
  group->type = type;
  return group;
}

static struct itt_track* TrackCreate(struct itt_track_group* group, struct itt_string_handle* name,
                                     int type) {
  struct itt_track* track = syncline_arena(sizeof *track);
  if (!track) return NULL;
  track->name = name;
  track->group = group;
  track->type = type;
  return track;
}

/* Callers make these by the million (one for each OpenMP region) and only hand them back. */
static void* StackCallerCreate(void) {
  static char caller[16];
  return caller;
}

static void* HeapFunctionCreate(const char* name, const char* domain) {
  static char function[16];
  (void)name, (void)domain;
  return function;
}

/* The number of an Intel PT region; its begin and end never reach a collector. */
static unsigned char PtRegionCreate(const char* name) {
  static unsigned char last;
  (void)name;
  return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

static const char* ApiVersion(void) { return "3.26.0"; }
static unsigned long long GetTimestamp(void) { return syncline_clock_ns(); }

int itt_handles_start(void) {
  by_id = syncline_reserve(((size_t)SYNCLINE_NAME_IDS_LIMIT + 1) * sizeof(void*));
  overflow = syncline_reserve(OVERFLOW_SLOTS * sizeof(void*));
  return by_id && overflow ? 0 : -1;
}

const struct itt_binding itt_create_bindings[] = {
    {"__itt_domain_create", DomainCreate},
    {"__itt_string_handle_create", StringHandleCreate},
    {"__itt_histogram_create", HistogramCreate},
    {"__itt_clock_domain_create", ClockDomainCreate},
    {"__itt_track_group_create", TrackGroupCreate},
    {"__itt_track_create", TrackCreate},
    {"__itt_stack_caller_create", StackCallerCreate},
    {"__itt_heap_function_create", HeapFunctionCreate},
    {"__itt_pt_region_create", PtRegionCreate},
    {"__itt_get_timestamp", GetTimestamp},
    {"__itt_api_version", ApiVersion},
    {NULL, NULL},
};

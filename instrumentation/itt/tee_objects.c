// SPDX-License-Identifier: Apache-2.0
/* The tee's objects: the other collector's for each that the program holds. Those of ours that lie
 * in the range of objects.c are found by their place, all others in a side table. */
#include <sys/mman.h>

#include "instrumentation/itt/tee.h"

#define PLACES (OBJECTS_BYTES / OBJECTS_ALIGNMENT + 1)
#define OTHERS_LIMIT (1u << 20)

static void** by_place;
static struct side_table others = {NULL, OTHERS_LIMIT}; /* values: indexes into other_objects */
static void** other_objects;
static uint32_t other_count; /* guarded by itt_lock */

/* Two threads may be at it: the first one's counts. */
static int Reserve(void*** table, size_t entries) {
  if (__atomic_load_n(table, __ATOMIC_ACQUIRE)) return 0;
  const size_t bytes = entries * sizeof(void*);
  void** expected = NULL;
  void** fresh = syncline_reserve(bytes);
  if (!fresh) return -1;
  if (!__atomic_compare_exchange_n(table, &expected, fresh, 0, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    munmap(fresh, bytes);
  }
  return 0;
}

int itt_tee_objects_start(void) {
  return Reserve(&by_place, PLACES) == 0 ? Reserve(&other_objects, OTHERS_LIMIT) : -1;
}

static void* FindOther(uint64_t held) {
  const struct side_entry* entry = side_find(&others, held);
  return entry ? __atomic_load_n(&other_objects[entry->value], __ATOMIC_ACQUIRE) : NULL;
}

static inline void* Find(const void* object) {
  const uint32_t place = itt_object_place(object);
  return __builtin_expect(place != 0, 1) ? __atomic_load_n(&by_place[place], __ATOMIC_ACQUIRE)
                                         : FindOther((uintptr_t)object);
}

void* itt_tee_find(uint64_t held) {
  return held >> 63 ? FindOther(held) : Find((const void*)(uintptr_t)held);
}

/* An object that is known gets another one: the address of a library that has gone may be another's
 * now. This thread is busy. */
static void KeepOther(uint64_t held, void* theirs) {
  itt_lock();
  const struct side_entry* entry = side_find(&others, held);
  if (entry) {
    __atomic_store_n(&other_objects[entry->value], theirs, __ATOMIC_RELEASE);
  } else if (theirs && other_count < OTHERS_LIMIT) {
    other_objects[other_count] = theirs;
    if (side_put(&others, held, other_count)) other_count++;
  }
  itt_unlock();
}

void itt_tee_keep(uint64_t held, void* theirs) {
  if (!held || !theirs) return;
  const uint32_t place = held >> 63 ? 0 : itt_object_place((const void*)(uintptr_t)held);
  if (place) {
    __atomic_store_n(&by_place[place], theirs, __ATOMIC_RELEASE);
    return;
  }
  struct syncline_thread* common = itt_occupy();
  if (!common) return; /* the next call tries again */
  KeepOther(held, theirs);
  itt_release(common);
}

static struct itt_domain* MakeDomain(const char* name) {
  struct itt_domain* (*create)(const char*) = itt_tee_their(ITT_TEE_domain_create);
  return create && name ? create(name) : NULL;
}

static struct itt_string_handle* MakeString(const char* text) {
  struct itt_string_handle* (*create)(const char*) = itt_tee_their(ITT_TEE_string_handle_create);
  return create && text ? create(text) : NULL;
}

const struct itt_domain* itt_tee_any_domain(const struct itt_domain* domain) {
  struct itt_domain* theirs = Find(domain);
  if (__builtin_expect(theirs != NULL, 1) || !domain) return theirs;
  theirs = MakeDomain(domain->name);
  itt_tee_keep((uintptr_t)domain, theirs);
  return theirs;
}

const struct itt_domain* itt_tee_domain(const struct itt_domain* domain) {
  const struct itt_domain* theirs = itt_tee_any_domain(domain);
  return theirs && theirs->flags ? theirs : NULL;
}

struct itt_string_handle* itt_tee_string(const struct itt_string_handle* handle) {
  struct itt_string_handle* theirs = Find(handle);
  if (__builtin_expect(theirs != NULL, 1) || !handle) return theirs;
  theirs = MakeString(handle->text);
  itt_tee_keep((uintptr_t)handle, theirs);
  return theirs;
}

/* None is kept as well: at this address there may have been another object. */
static void Adopt(const void* object, void* theirs) { KeepOther((uintptr_t)object, theirs); }

void itt_tee_adopt_domain(const struct itt_domain* domain) {
  Adopt(domain, MakeDomain(domain->name));
}

void itt_tee_adopt_string(const struct itt_string_handle* handle) {
  Adopt(handle, MakeString(handle->text));
}

void itt_tee_adopt_counter(const struct itt_counter_info* info) {
  void* (*typed)(const char*, const char*, int) = itt_tee_their(ITT_TEE_counter_create_typed);
  void* (*plain)(const char*, const char*) = itt_tee_their(ITT_TEE_counter_create);
  void* theirs = NULL;
  if (typed && info->name) {
    theirs = typed(info->name, info->domain, info->type);
  } else if (plain && info->name) {
    theirs = plain(info->name, info->domain);
  }
  Adopt(info, theirs);
}

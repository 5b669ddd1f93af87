// SPDX-License-Identifier: Apache-2.0
/* Counters: increments are summed here, recorded or not, and events carry the value after the call.
 */
#define _GNU_SOURCE
#include <string.h>

#include "instrumentation/itt/internal.h"

#define COUNTERS_LIMIT 65536u

/* What the program says of a counter, by enum itt_context_type. */
struct About {
  uint32_t said;                      /* which: a bit each */
  uint32_t session;                   /* the recording in which it was written; 0: none */
  uint64_t values[ITT_CONTEXT_TYPES]; /* of a text: its id */
};
#define ABOUT_TEXT_BYTES 255u /* of one text; the rest is cut */
#define ABOUT_ITEMS_LIMIT 64u /* of one call */

struct Counter {
  uint32_t domain; /* name ids; 0: none or refused */
  uint32_t name;
  int type;            /* enum itt_metadata_type */
  uint64_t bits;       /* the value, in the type's representation widened to 64 bits */
  struct About* about; /* NULL: nothing is said of it */
};

static struct Counter** counters; /* by the value in the side table */
static uint32_t count;            /* guarded by itt_lock */
/* By the address that the caller holds (a static part's object, or ours), and, but for those of a
 * static part, by what they are called (KeyOf). */
static struct side_table by_key = {NULL, 2 * COUNTERS_LIMIT};

/* Made again with the same names and type it is the same counter, as with Intel's static part; one
 * that is a domain and a string (`is_of_strings`) is another. No address has one of the two highest
 * bits. 0: a name is missing or was refused, and it is one of its own. */
static uint64_t KeyOf(int is_of_strings, uint32_t domain, uint32_t name, int type) {
  if (!name || type < 0 || type > 15) return 0;
  return (is_of_strings ? 1ull << 63 : 1ull << 62) | (uint64_t)type << 58 | (uint64_t)domain << 32 |
         name;
}

static struct Counter* Find(uint64_t key) {
  const struct side_entry* entry = side_find(&by_key, key);
  return entry ? counters[entry->value] : NULL;
}

static int IsAddress(uint64_t key) { return key >> 62 == 0; }

/* `key` 0: the counter's own address. This thread is busy. */
static struct Counter* Make(uint64_t key, uint32_t domain, uint32_t name, int type) {
  if (__atomic_load_n(&count, __ATOMIC_RELAXED) >= COUNTERS_LIMIT) return NULL;
  struct Counter* counter = syncline_arena(sizeof *counter);
  if (!counter) return NULL;
  *counter = (struct Counter){domain, name, type, 0, NULL};
  itt_lock();
  if (!counters) counters = syncline_reserve(COUNTERS_LIMIT * sizeof *counters);
  struct Counter* result = NULL;
  if (counters && count < COUNTERS_LIMIT) {
    const struct side_entry* known = IsAddress(key) ? NULL : side_find(&by_key, key);
    if (known) {
      result = counters[known->value]; /* another thread was first */
    } else {
      const uint64_t address = key && IsAddress(key) ? key : (uintptr_t)counter;
      counters[count] = counter;
      if (side_put(&by_key, address, count) && (IsAddress(key) || side_put(&by_key, key, count))) {
        __atomic_store_n(&count, count + 1, __ATOMIC_RELAXED);
        result = counter;
      }
    }
  }
  itt_unlock();
  return result;
}

static uint32_t NameOf(uint8_t kind, const char* text) {
  return text ? itt_name(kind, text, strlen(text)) : 0;
}

void itt_adopt_counter(struct itt_counter_info* info) {
  if (!info->name) return;
  Make((uintptr_t)info,
       info->domain ? syncline_name_intern(SYNCLINE_NAME_DOMAIN, info->domain, strlen(info->domain))
                    : 0,
       syncline_name_intern(SYNCLINE_NAME_COUNTER, info->name, strlen(info->name)), info->type);
}

static struct Counter* MakeOwn(uint64_t key, uint32_t domain, uint32_t name, int type) {
  struct syncline_thread* common = itt_occupy();
  if (!common) return NULL;
  struct Counter* counter = Make(key, domain, name, type);
  itt_release(common);
  return counter;
}

static void* CounterCreateTyped(const char* name, const char* domain, int type) {
  const uint32_t domain_id = NameOf(SYNCLINE_NAME_DOMAIN, domain);
  const uint32_t name_id = NameOf(SYNCLINE_NAME_COUNTER, name);
  const uint64_t key = domain && !domain_id ? 0 : KeyOf(0, domain_id, name_id, type);
  struct Counter* counter = key ? Find(key) : NULL;
  return counter ? counter : MakeOwn(key, domain_id, name_id, type);
}
static void* CounterCreate(const char* name, const char* domain) {
  return CounterCreateTyped(name, domain, ITT_METADATA_U64);
}
static void* CounterCreateV3(const struct itt_domain* domain, const char* name, int type) {
  return CounterCreateTyped(name, domain ? domain->name : NULL, type);
}

static int IsReal(int type) { return type == ITT_METADATA_FLOAT || type == ITT_METADATA_DOUBLE; }
static int IsSigned(int type) {
  return type == ITT_METADATA_S64 || type == ITT_METADATA_S32 || type == ITT_METADATA_S16;
}

static int IsText(int type) {
  return type == ITT_CONTEXT_NAME || type == ITT_CONTEXT_DEVICE || type == ITT_CONTEXT_UNITS ||
         type == ITT_CONTEXT_PCI_ADDRESS;
}

/* In a recorded call: two threads may write it both. */
static void EmitAbout(struct itt_thread* thread, const struct syncline_itt_where* at,
                      struct About* about) {
  const uint32_t said = __atomic_load_n(&about->said, __ATOMIC_ACQUIRE);
  __atomic_store_n(&about->session, thread->common->session, __ATOMIC_RELAXED);
  for (int type = 0; type < ITT_CONTEXT_TYPES; type++) {
    if ((said >> type & 1) == 0) continue;
    const uint64_t value = __atomic_load_n(&about->values[type], __ATOMIC_RELAXED);
    const uint32_t text = IsText(type) ? (uint32_t)value : 0;
    syncline_name_announce(thread->common, text);
    syncline_count(thread->common,
                   itt_shared.emit->counter_metadata(at, (uint8_t)type, text, text ? 0 : value));
  }
}

/* Its names are announced. */
static struct syncline_itt_where AtCounter(const struct itt_thread* thread,
                                           const struct Counter* counter) {
  struct syncline_itt_where at = At(thread);
  at.domain = counter->domain;
  at.name = counter->name;
  syncline_name_announce(thread->common, at.domain);
  syncline_name_announce(thread->common, at.name);
  return at;
}

static void Emit(const struct Counter* counter, uint64_t bits) {
  struct itt_thread* thread = ItThread();
  uint64_t cost;
  if (!thread || Quiet(thread) || Enter(thread, &cost) != ITT_RECORD) return;
  const struct syncline_itt_where at = AtCounter(thread, counter);
  struct About* about = __atomic_load_n(&counter->about, __ATOMIC_ACQUIRE);
  if (about && __atomic_load_n(&about->session, __ATOMIC_RELAXED) != thread->common->session) {
    EmitAbout(thread, &at, about);
  }
  int written;
  if (IsReal(counter->type)) {
    double value;
    memcpy(&value, &bits, sizeof value);
    written = itt_shared.emit->counter_f64(&at, value);
  } else if (IsSigned(counter->type) || bits >> 63) {
    /* An unsigned counter that was decremented below zero is shown as what its user meant. */
    written = itt_shared.emit->counter_i64(&at, (int64_t)bits);
  } else {
    written = itt_shared.emit->counter_u64(&at, bits);
  }
  Leave(thread, cost, written);
}

static void Add(struct Counter* counter, uint64_t delta) {
  if (!counter) return;
  if (!IsReal(counter->type)) {
    Emit(counter, __atomic_add_fetch(&counter->bits, delta, __ATOMIC_RELAXED));
    return;
  }
  uint64_t before = __atomic_load_n(&counter->bits, __ATOMIC_RELAXED);
  uint64_t after;
  do {
    double value;
    memcpy(&value, &before, sizeof value);
    value += (double)(int64_t)delta;
    memcpy(&after, &value, sizeof after);
  } while (!__atomic_compare_exchange_n(&counter->bits, &before, after, 1, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  Emit(counter, after);
}

static void Set(struct Counter* counter, const void* value) {
  if (!counter || !value) return;
  union {
    uint64_t bits;
    int64_t s64;
    double f64;
  } out = {0};
  switch (counter->type) {
    case ITT_METADATA_U32: {
      uint32_t in;
      memcpy(&in, value, sizeof in);
      out.bits = in;
      break;
    }
    case ITT_METADATA_S32: {
      int32_t in;
      memcpy(&in, value, sizeof in);
      out.s64 = in;
      break;
    }
    case ITT_METADATA_U16: {
      uint16_t in;
      memcpy(&in, value, sizeof in);
      out.bits = in;
      break;
    }
    case ITT_METADATA_S16: {
      int16_t in;
      memcpy(&in, value, sizeof in);
      out.s64 = in;
      break;
    }
    case ITT_METADATA_FLOAT: {
      float in;
      memcpy(&in, value, sizeof in);
      out.f64 = in;
      break;
    }
    default:
      memcpy(&out.bits, value, sizeof out.bits);
  }
  __atomic_store_n(&counter->bits, out.bits, __ATOMIC_RELAXED);
  Emit(counter, out.bits);
}

static void CounterInc(void* counter) { Add(Find((uintptr_t)counter), 1); }
static void CounterDec(void* counter) { Add(Find((uintptr_t)counter), (uint64_t)-1); }
static void CounterIncDelta(void* counter, unsigned long long delta) {
  Add(Find((uintptr_t)counter), delta);
}
static void CounterDecDelta(void* counter, unsigned long long delta) {
  Add(Find((uintptr_t)counter), (uint64_t)-delta);
}
static void CounterSetValue(void* counter, void* value) { Set(Find((uintptr_t)counter), value); }
static void CounterSetValueEx(void* counter, struct itt_clock_domain* clock,
                              unsigned long long timestamp, void* value) {
  (void)clock, (void)timestamp;
  CounterSetValue(counter, value);
}
/* The object may still be in another thread's hands, and its name is in the table for good. */
static void CounterDestroy(void* counter) { (void)counter; }

/* Made on first use; NULL without memory. Two threads may be at it: the first one's counts. */
static struct About* AboutOf(struct Counter* counter) {
  struct About* about = __atomic_load_n(&counter->about, __ATOMIC_ACQUIRE);
  if (about) return about;
  struct About* fresh = syncline_arena(sizeof *fresh);
  if (!fresh) return NULL;
  memset(fresh, 0, sizeof *fresh);
  return __atomic_compare_exchange_n(&counter->about, &about, fresh, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)
             ? fresh
             : about;
}

/* Wide texts, and types of newer versions, are left out. */
static void Keep(struct About* about, const struct itt_context_metadata* item) {
  uint64_t value = 0;
  if (!item->value) return;
  if (IsText(item->type)) {
    const size_t bytes = strnlen(item->value, ABOUT_TEXT_BYTES);
    if (bytes) value = itt_name(SYNCLINE_NAME_OTHER, item->value, bytes);
    if (!value) return;
  } else if (item->type >= ITT_CONTEXT_TID && item->type < ITT_CONTEXT_TYPES) {
    memcpy(&value, item->value, sizeof value);
  } else {
    return;
  }
  __atomic_store_n(&about->values[item->type], value, __ATOMIC_RELAXED);
  __atomic_fetch_or(&about->said, 1u << item->type, __ATOMIC_RELEASE);
}

/* Written now, and in later recordings before the counter's first value. */
static void BindContextMetadata(void* held, size_t count_of_items,
                                const struct itt_context_metadata* items) {
  struct Counter* counter = Find((uintptr_t)held);
  struct About* about = counter && items && count_of_items ? AboutOf(counter) : NULL;
  if (!about) return;
  for (size_t i = 0; i < count_of_items && i < ABOUT_ITEMS_LIMIT; i++) Keep(about, &items[i]);
  __atomic_store_n(&about->session, 0, __ATOMIC_RELAXED);
  struct itt_thread* thread = ItThread();
  uint64_t cost;
  if (!thread || Quiet(thread) || Enter(thread, &cost) != ITT_RECORD) return;
  const struct syncline_itt_where at = AtCounter(thread, counter);
  EmitAbout(thread, &at, about);
  Done(thread->common, cost);
}

/* Counters of the third form are a domain and a string. */
static struct Counter* OfStrings(const struct itt_domain* domain,
                                 const struct itt_string_handle* name) {
  if (!domain || !name || !domain->name || !name->text) return NULL;
  const uint32_t domain_id = NameOf(SYNCLINE_NAME_DOMAIN, domain->name);
  const uint32_t name_id = NameOf(SYNCLINE_NAME_COUNTER, name->text);
  if (!domain_id || !name_id) return NULL;
  const uint64_t key = KeyOf(1, domain_id, name_id, ITT_METADATA_U64);
  struct Counter* counter = Find(key);
  return counter ? counter : MakeOwn(key, domain_id, name_id, ITT_METADATA_U64);
}

static void CounterIncV3(const struct itt_domain* domain, struct itt_string_handle* name) {
  Add(OfStrings(domain, name), 1);
}
static void CounterDecV3(const struct itt_domain* domain, struct itt_string_handle* name) {
  Add(OfStrings(domain, name), (uint64_t)-1);
}
static void CounterIncDeltaV3(const struct itt_domain* domain, struct itt_string_handle* name,
                              unsigned long long delta) {
  Add(OfStrings(domain, name), delta);
}
static void CounterDecDeltaV3(const struct itt_domain* domain, struct itt_string_handle* name,
                              unsigned long long delta) {
  Add(OfStrings(domain, name), (uint64_t)-delta);
}

const struct itt_binding itt_counter_bindings[] = {
    {"__itt_counter_create", CounterCreate},
    {"__itt_counter_create_typed", CounterCreateTyped},
    {"__itt_counter_create_v3", CounterCreateV3},
    {"__itt_counter_inc", CounterInc},
    {"__itt_counter_dec", CounterDec},
    {"__itt_counter_inc_delta", CounterIncDelta},
    {"__itt_counter_dec_delta", CounterDecDelta},
    {"__itt_counter_inc_v3", CounterIncV3},
    {"__itt_counter_dec_v3", CounterDecV3},
    {"__itt_counter_inc_delta_v3", CounterIncDeltaV3},
    {"__itt_counter_dec_delta_v3", CounterDecDeltaV3},
    {"__itt_counter_set_value", CounterSetValue},
    {"__itt_counter_set_value_v3", CounterSetValue},
    {"__itt_counter_set_value_ex", CounterSetValueEx},
    {"__itt_counter_destroy", CounterDestroy},
    {"__itt_bind_context_metadata_to_counter", BindContextMetadata},
    {NULL, NULL},
};

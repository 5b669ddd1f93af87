// SPDX-License-Identifier: Apache-2.0
/* Metadata: numbers and texts that belong to a task. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "instrumentation/block/text_hash.h"
#include "instrumentation/itt/internal.h"

#define MAX_VALUES 64u /* of one call; the rest is cut */

static const struct itt_id none;

/* A text that comes again (oneDNN's shapes: the same few hundred for days) becomes a name, 4 bytes
 * instead of hundreds; one that never does (a step's number) must not fill the table. So: a name at
 * second sight. Hash collisions and races only make a text a name too early. */
static uint32_t seen[4096];

static uint32_t RepeatedName(const char* text, size_t bytes) {
  const uint32_t id = syncline_name_find(SYNCLINE_NAME_STRING, text, bytes);
  if (id) return id;
  const uint32_t hash = syncline_text_hash(0, text, bytes) | 1u;
  uint32_t* slot = &seen[(hash >> 1) % (sizeof seen / sizeof *seen)];
  if (__atomic_load_n(slot, __ATOMIC_RELAXED) == hash) {
    return syncline_name_intern(SYNCLINE_NAME_STRING, text, bytes);
  }
  __atomic_store_n(slot, hash, __ATOMIC_RELAXED);
  return 0;
}

/* Between Enter and Leave. `text` is NUL-terminated. */
static int EmitText(struct itt_thread* thread, const struct syncline_itt_where* at,
                    const struct itt_id* id, const char* text, size_t bytes) {
  const uint32_t name = RepeatedName(text, bytes);
  if (!name) return itt_shared.emit->metadata_text(at, id, text);
  syncline_name_announce(thread->common, name);
  return itt_shared.emit->metadata_name(at, id, name);
}

static struct syncline_itt_where AtKey(struct itt_thread* thread, const struct itt_domain* domain,
                                       const struct itt_string_handle* key) {
  struct syncline_itt_where at = At(thread);
  at.domain = Carried(DomainId(thread, domain));
  at.name = Carried(StringId(thread, key));
  return at;
}

static size_t ElementBytes(int type) {
  switch (type) {
    case ITT_METADATA_U64:
    case ITT_METADATA_S64:
    case ITT_METADATA_DOUBLE:
      return 8;
    case ITT_METADATA_U32:
    case ITT_METADATA_S32:
    case ITT_METADATA_FLOAT:
      return 4;
    case ITT_METADATA_U16:
    case ITT_METADATA_S16:
      return 2;
    default:
      return 0;
  }
}

/* One element as the 64 bits that the event carries. */
static uint64_t Element(int type, const char* at) {
  union {
    uint64_t u64;
    int64_t s64;
    uint32_t u32;
    int32_t s32;
    uint16_t u16;
    int16_t s16;
    float f32;
    double f64;
  } in = {0}, out = {0};
  memcpy(&in, at, ElementBytes(type));
  switch (type) {
    case ITT_METADATA_U32:
      return in.u32;
    case ITT_METADATA_S32:
      out.s64 = in.s32;
      return out.u64;
    case ITT_METADATA_U16:
      return in.u16;
    case ITT_METADATA_S16:
      out.s64 = in.s16;
      return out.u64;
    case ITT_METADATA_FLOAT:
      out.f64 = in.f32;
      return out.u64;
    default:
      return in.u64;
  }
}

static int EmitNumbers(const struct syncline_itt_where* at, const struct itt_id* id, int type,
                       size_t count, const char* data) {
  uint64_t values[MAX_VALUES];
  const size_t bytes = ElementBytes(type);
  if (count > MAX_VALUES) count = MAX_VALUES;
  for (size_t i = 0; i < count; i++) values[i] = Element(type, data + i * bytes);
  switch (type) {
    case ITT_METADATA_S64:
    case ITT_METADATA_S32:
    case ITT_METADATA_S16:
      return itt_shared.emit->metadata_i64(at, id, (const int64_t*)values, count);
    case ITT_METADATA_FLOAT:
    case ITT_METADATA_DOUBLE:
      return itt_shared.emit->metadata_f64(at, id, values, count);
    default:
      return itt_shared.emit->metadata_u64(at, id, values, count);
  }
}

static void MetadataAdd(const struct itt_domain* domain, struct itt_id id,
                        struct itt_string_handle* key, int type, size_t count, void* data) {
  struct itt_thread* thread = ItThread();
  uint64_t cost;
  if (!thread || Quiet(thread) || !data || !ElementBytes(type)) return;
  if (!HasId(&id) && NewestIsLeftOut(thread)) return;
  if (Enter(thread, &cost) != ITT_RECORD) return;
  const struct syncline_itt_where at = AtKey(thread, domain, key);
  Leave(thread, cost, EmitNumbers(&at, &id, type, count, data));
}

static void MetadataStrAdd(const struct itt_domain* domain, struct itt_id id,
                           struct itt_string_handle* key, const char* data, size_t length) {
  struct itt_thread* thread = ItThread();
  uint64_t cost;
  if (!thread || Quiet(thread) || !data) return;
  if (!HasId(&id) && NewestIsLeftOut(thread)) return;
  if (Enter(thread, &cost) != ITT_RECORD) return;
  /* `length` may be 0 for "up to the NUL", and the text may have none within `length`. */
  const size_t limit = length && length < SCRATCH_BYTES - 1 ? length : SCRATCH_BYTES - 1;
  const size_t bytes = strnlen(data, limit);
  memcpy(thread->scratch, data, bytes);
  thread->scratch[bytes] = 0;
  const struct syncline_itt_where at = AtKey(thread, domain, key);
  Leave(thread, cost, EmitText(thread, &at, &id, thread->scratch, bytes));
}

/* The scope says whose metadata it is when there is no id; the events know tasks only. */
static void MetadataAddWithScope(const struct itt_domain* domain, int scope,
                                 struct itt_string_handle* key, int type, size_t count,
                                 void* data) {
  (void)scope;
  MetadataAdd(domain, none, key, type, count, data);
}
static void MetadataStrAddWithScope(const struct itt_domain* domain, int scope,
                                    struct itt_string_handle* key, const char* data,
                                    size_t length) {
  (void)scope;
  MetadataStrAdd(domain, none, key, data, length);
}

/* oneDNN says with this what each primitive is: implementation, layouts, shapes. */
void itt_formatted(const struct itt_domain* domain, const struct itt_id* id,
                   const struct itt_string_handle* format, va_list arguments) {
  struct itt_thread* thread = ItThread();
  uint64_t cost;
  if (!thread || Quiet(thread) || !format || !format->text) return;
  if (!HasId(id) && NewestIsLeftOut(thread)) return;
  if (Enter(thread, &cost) != ITT_RECORD) return;
  int bytes = vsnprintf(thread->scratch, SCRATCH_BYTES, format->text, arguments);
  if (bytes < 0) bytes = 0;
  if (bytes > (int)SCRATCH_BYTES - 1) bytes = SCRATCH_BYTES - 1;
  thread->scratch[bytes] = 0;
  const struct syncline_itt_where at = AtKey(thread, domain, format);
  Leave(thread, cost, EmitText(thread, &at, id, thread->scratch, (size_t)bytes));
}

static void FormattedMetadataAdd(const struct itt_domain* domain, struct itt_string_handle* format,
                                 ...) {
  va_list arguments;
  va_start(arguments, format);
  itt_formatted(domain, &none, format, arguments);
  va_end(arguments);
}

static void FormattedMetadataAddOverlapped(const struct itt_domain* domain, struct itt_id id,
                                           struct itt_string_handle* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  itt_formatted(domain, &id, format, arguments);
  va_end(arguments);
}

const struct itt_binding itt_metadata_bindings[] = {
    {"__itt_metadata_add", MetadataAdd},
    {"__itt_metadata_str_add", MetadataStrAdd},
    {"__itt_metadata_add_with_scope", MetadataAddWithScope},
    {"__itt_metadata_str_add_with_scope", MetadataStrAddWithScope},
    {"__itt_formatted_metadata_add", FormattedMetadataAdd},
    {"__itt_formatted_metadata_add_overlapped", FormattedMetadataAddOverlapped},
    {NULL, NULL},
};

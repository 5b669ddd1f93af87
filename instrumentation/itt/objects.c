// SPDX-License-Identifier: Apache-2.0
/* Objects of ours that have a name, in one range of addresses, each at the beginning of a cache
 * line: its name's id, the object, its text. */
#include <string.h>

#include "instrumentation/itt/internal.h"

static size_t used; /* of the range */

void itt_objects_start(void) {
  void* range = syncline_reserve(OBJECTS_BYTES);
  if (range) itt_shared.objects = (uintptr_t)range;
}

/* NULL when there is no room left in the range. */
static struct itt_object* Place(size_t bytes) {
  if (itt_shared.objects == ITT_NO_OBJECTS || bytes > OBJECTS_BYTES) return NULL;
  bytes = (bytes + OBJECTS_ALIGNMENT - 1) & ~(size_t)(OBJECTS_ALIGNMENT - 1);
  if (__atomic_load_n(&used, __ATOMIC_RELAXED) + bytes > OBJECTS_BYTES) return NULL;
  const size_t at = __atomic_fetch_add(&used, bytes, __ATOMIC_RELAXED);
  return at + bytes <= OBJECTS_BYTES ? (struct itt_object*)(itt_shared.objects + at) : NULL;
}

void* itt_object_new(uint32_t id, size_t bytes, const char* text, size_t text_bytes, char** copy) {
  const size_t all_bytes = bytes + text_bytes + 1;
  struct itt_object* own = Place(sizeof *own + all_bytes);
  char* object = own ? (char*)(own + 1) : syncline_arena(all_bytes);
  if (!object) return NULL;
  if (own) own->id = id;
  *copy = object + bytes;
  memcpy(*copy, text, text_bytes);
  (*copy)[text_bytes] = 0;
  return object;
}

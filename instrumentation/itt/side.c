// SPDX-License-Identifier: Apache-2.0
#include "instrumentation/itt/side.h"

#include "instrumentation/block/block.h"

#define FIRST_SLOTS 1024u

static struct side_slots* NewSlots(uint64_t count) {
  struct side_slots* slots =
      syncline_reserve(sizeof(struct side_slots) + count * sizeof(struct side_entry));
  if (slots) slots->mask = count - 1;
  return slots;
}

static struct side_entry* Insert(struct side_slots* slots, uint64_t key, uint32_t value) {
  uint64_t at = side_hash(key) & slots->mask;
  while (slots->entries[at].key != 0) at = (at + 1) & slots->mask;
  slots->entries[at].value = value;
  __atomic_store_n(&slots->entries[at].key, key, __ATOMIC_RELEASE);
  slots->used++;
  return &slots->entries[at];
}

/* At most half full, so that a search always meets a free entry. */
static int MakeRoom(struct side_table* table) {
  struct side_slots* old = table->slots;
  if (old && 2 * (old->used + 1) <= old->mask) return 0;
  struct side_slots* fresh = NewSlots(old ? 2 * (old->mask + 1) : FIRST_SLOTS);
  if (!fresh) return -1;
  for (uint64_t at = 0; old && at <= old->mask; at++) {
    if (old->entries[at].key) Insert(fresh, old->entries[at].key, old->entries[at].value);
  }
  __atomic_store_n(&table->slots, fresh, __ATOMIC_RELEASE);
  return 0;
}

struct side_entry* side_put(struct side_table* table, uint64_t key, uint32_t value) {
  struct side_entry* entry = side_find(table, key);
  if (entry) {
    __atomic_store_n(&entry->value, value, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->session, 0, __ATOMIC_RELEASE);
    return entry;
  }
  if (table->slots && table->slots->used >= table->limit) return 0;
  return MakeRoom(table) == 0 ? Insert(table->slots, key, value) : 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Side tables: what we know about objects that belong to others, by their address.
 *
 * Why not extra1 and extra2 of the objects: they are VTune's when its collector runs too, and
 * counters come with them uninitialised. Looking up takes no lock; putting takes the table's. Keys
 * are never removed: a handle lives as long as the process, and an address that is used again is
 * put again.
 */
#ifndef SYNCLINE_INSTRUMENTATION_ITT_SIDE_H_
#define SYNCLINE_INSTRUMENTATION_ITT_SIDE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct side_entry {
  uint64_t key; /* 0: free */
  uint32_t value;
  uint32_t session; /* the recording in which it was announced; 0: none */
};

struct side_slots {
  uint64_t mask;
  uint64_t used;
  struct side_entry entries[];
};

struct side_table {
  struct side_slots* slots; /* replaced by a bigger one; readers may stay in the old one */
  uint64_t limit;           /* no more keys than this */
};

static inline uint64_t side_hash(uint64_t key) {
  key *= 0x9E3779B97F4A7C15ull;
  return key ^ (key >> 32);
}

/* The entry of `key`; NULL when it has none. */
static inline struct side_entry* side_find(const struct side_table* table, uint64_t key) {
  struct side_slots* slots = __atomic_load_n(&table->slots, __ATOMIC_ACQUIRE);
  if (__builtin_expect(!slots, 0)) return 0;
  for (uint64_t at = side_hash(key) & slots->mask;; at = (at + 1) & slots->mask) {
    const uint64_t found = __atomic_load_n(&slots->entries[at].key, __ATOMIC_ACQUIRE);
    if (found == 0) return 0; /* first: callers may ask for NULL */
    if (found == key) return &slots->entries[at];
  }
}

/* Gives `key` (not 0) a value, also when it had one. The caller holds the lock that guards the
 * table. NULL when the table is full or there is no memory. */
struct side_entry* side_put(struct side_table* table, uint64_t key, uint32_t value);

#ifdef __cplusplus
}
#endif

#endif /* SYNCLINE_INSTRUMENTATION_ITT_SIDE_H_ */

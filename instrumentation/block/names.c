// SPDX-License-Identifier: Apache-2.0
/* The name table: texts get ids that mean the same for the life of the process.
 *
 * Texts live in the .names file, which is mapped; here is the way from a text to its id (a hash
 * table that readers walk without a lock) and from an id to its text. Only making a name takes the
 * process's lock. The hash table grows by publishing a bigger one; the old one stays, because a
 * reader may be in it, and together they are less than twice the last. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "instrumentation/block/internal.h"
#include "instrumentation/block/text_hash.h"

#define IDS_LIMIT SYNCLINE_NAME_IDS_LIMIT /* a record is 12 bytes at least */
#define TEXT_LIMIT 65534u

struct Entry {
  uint32_t hash;
  uint32_t id; /* 0: free; written last */
};

struct Table {
  uint32_t mask;
  uint32_t used;
  struct Entry entries[];
};

struct Info {
  uint32_t offset; /* of the record in the names file */
  uint32_t announced_session;
};

static struct Table* table;
static struct Info* infos; /* by id */
static uint32_t count;
static uint64_t bytes_used; /* of the names file; private, so that a fork freezes it */

static const struct syncline_name_record* Record(uint32_t id) {
  return (const struct syncline_name_record*)(syncline_process.files.names + infos[id].offset);
}

static uint32_t Find(const struct Table* in, uint32_t hash, uint8_t kind, const char* text,
                     size_t bytes) {
  for (uint32_t at = hash & in->mask;; at = (at + 1) & in->mask) {
    const uint32_t id = __atomic_load_n(&in->entries[at].id, __ATOMIC_ACQUIRE);
    if (id == 0) return 0;
    if (in->entries[at].hash != hash) continue;
    const struct syncline_name_record* record = Record(id);
    if (record->text_bytes == bytes && record->kind == kind &&
        memcmp(record + 1, text, bytes) == 0) {
      return id;
    }
  }
}

static void Put(struct Table* in, uint32_t hash, uint32_t id) {
  uint32_t at = hash & in->mask;
  while (in->entries[at].id != 0) at = (at + 1) & in->mask;
  in->entries[at].hash = hash;
  __atomic_store_n(&in->entries[at].id, id, __ATOMIC_RELEASE);
  in->used++;
}

static struct Table* NewTable(uint32_t slots) {
  struct Table* fresh = syncline_reserve(sizeof(struct Table) + slots * sizeof(struct Entry));
  if (fresh) fresh->mask = slots - 1;
  return fresh;
}

/* At most half full, so that Find always meets a free entry. */
static int MakeRoom(void) {
  struct Table* old = table;
  if (2 * (old->used + 1) <= old->mask) return 0;
  struct Table* fresh = NewTable(2 * (old->mask + 1));
  if (!fresh) return -1;
  for (uint32_t at = 0; at <= old->mask; at++) {
    if (old->entries[at].id) Put(fresh, old->entries[at].hash, old->entries[at].id);
  }
  __atomic_store_n(&table, fresh, __ATOMIC_RELEASE);
  return 0;
}

int syncline_names_start(void) {
  if (!infos) infos = syncline_reserve(((size_t)IDS_LIMIT + 1) * sizeof(struct Info));
  if (!infos) return -1;
  struct Table* fresh = table ? table : NewTable(4096);
  if (!fresh) return -1;
  bytes_used = sizeof(struct syncline_names_header);
  __atomic_store_n(&table, fresh, __ATOMIC_RELEASE);
  return 0;
}

int syncline_names_after_fork(struct syncline_files* fresh, uint8_t* old_names) {
  if (syncline_files_grow_names(fresh, bytes_used) != 0) return -1;
  memcpy(fresh->names, old_names, bytes_used);
  /* To the old address, where readers look: ids and pointers to texts stay good. */
  void* moved = mremap(fresh->names, SYNCLINE_NAMES_LIMIT, SYNCLINE_NAMES_LIMIT,
                       MREMAP_MAYMOVE | MREMAP_FIXED, old_names);
  if (moved == MAP_FAILED) return -1;
  fresh->names = moved;
  fresh->block->names_count = count;
  __atomic_store_n(&fresh->block->names_bytes, bytes_used, __ATOMIC_RELEASE);
  return 0;
}

/* The lock is held. */
static uint32_t Append(uint8_t kind, const char* text, size_t bytes, int cut) {
  struct syncline_files* files = &syncline_process.files;
  const uint64_t record_bytes =
      (sizeof(struct syncline_name_record) + bytes + 1 + 3) & ~(uint64_t)3;
  if (count >= IDS_LIMIT || MakeRoom() != 0 ||
      syncline_files_grow_names(files, bytes_used + record_bytes) != 0) {
    return 0;
  }
  uint8_t* at = files->names + bytes_used;
  struct syncline_name_record record = {count + 1, (uint16_t)bytes, kind, (uint8_t)cut};
  memcpy(at, &record, sizeof record);
  memcpy(at + sizeof record, text, bytes);
  at[sizeof record + bytes] = 0;
  infos[count + 1] = (struct Info){(uint32_t)bytes_used, 0};
  bytes_used += record_bytes;
  __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
  files->block->names_count = count;
  __atomic_store_n(&files->block->names_bytes, bytes_used, __ATOMIC_RELEASE);
  return count;
}

uint32_t syncline_name_count(void) { return __atomic_load_n(&count, __ATOMIC_ACQUIRE); }

uint32_t syncline_name_find(uint8_t kind, const char* text, size_t bytes) {
  const struct Table* in = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
  if (!in || bytes > TEXT_LIMIT) return 0;
  return Find(in, syncline_text_hash(kind, text, bytes), kind, text, bytes);
}

/* A handler may have interrupted what a fork waits for. */
static int Lock(void) {
  if (syncline_in_handler()) return syncline_lock_unless_forking();
  syncline_lock();
  return 1;
}

uint32_t syncline_name_intern(uint8_t kind, const char* text, size_t bytes) {
  const struct Table* in = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
  if (!in) return 0;
  const int cut = bytes > TEXT_LIMIT;
  if (cut) bytes = TEXT_LIMIT;
  const uint32_t hash = syncline_text_hash(kind, text, bytes);
  uint32_t id = Find(in, hash, kind, text, bytes);
  if (__builtin_expect(id != 0, 1)) return id;
  const int saved = errno;
  if (!Lock()) {
    errno = saved;
    return 0;
  }
  if (syncline_process_ensure() == 0) {
    id = Find(table, hash, kind, text, bytes);
    if (!id) {
      id = Append(kind, text, bytes, cut);
      if (id) {
        Put(table, hash, id);
      } else {
        __atomic_fetch_add(&syncline_process.files.block->names_refused, 1, __ATOMIC_RELAXED);
      }
    }
  }
  syncline_unlock();
  errno = saved;
  return id;
}

const char* syncline_name_text(uint32_t id) { return id ? (const char*)(Record(id) + 1) : ""; }

void syncline_name_announce(struct syncline_thread* thread, uint32_t id) {
  if (id == 0 || thread->session == 0) return;
  if (__atomic_load_n(&infos[id].announced_session, __ATOMIC_RELAXED) == thread->session) return;
  /* Written before it is marked: two threads may both announce it, none may use it unannounced. */
  const struct syncline_name_record* record = Record(id);
  syncline_count(thread, syncline_process.emit->name(syncline_process.files.block->process_key, id,
                                                     record->kind, (const char*)(record + 1)));
  __atomic_store_n(&infos[id].announced_session, thread->session, __ATOMIC_RELAXED);
}

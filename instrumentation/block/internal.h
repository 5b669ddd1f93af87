// SPDX-License-Identifier: Apache-2.0
/* What the files of libsyncline_block.so share. Nothing here is exported. */
#ifndef SYNCLINE_INSTRUMENTATION_BLOCK_INTERNAL_H_
#define SYNCLINE_INSTRUMENTATION_BLOCK_INTERNAL_H_

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "instrumentation/block/block.h"
#include "instrumentation/block/provider.h"

#define SYNCLINE_HIDDEN __attribute__((visibility("hidden")))

#define SYNCLINE_NAMES_LIMIT (64u << 20)

/* The files of a process, mapped. */
struct syncline_files {
  struct syncline_block* block;
  struct syncline_thread_slot* slots;
  uint8_t* names; /* SYNCLINE_NAMES_LIMIT reserved; names_bytes_backed usable */
  uint64_t names_bytes_backed;
  uint32_t names_tries_saved; /* since the last try to grow that failed; 0: it did not fail */
  uint32_t* counters;         /* shared by the user's processes: [0] the next key */
  char directory[256];
  char stem[80]; /* PIDNS-PID-STARTTICKS */
};

/* files.c. 0 or -1; on failure nothing is left behind. */
SYNCLINE_HIDDEN int syncline_files_make(struct syncline_files* files);
/* Backs the names file up to `bytes`. */
SYNCLINE_HIDDEN int syncline_files_grow_names(struct syncline_files* files, uint64_t bytes);
SYNCLINE_HIDDEN void syncline_files_unlink(const struct syncline_files* files);
SYNCLINE_HIDDEN uint32_t syncline_files_next_key(struct syncline_files* files);
/* What there is of it and fits, NUL-terminated; how many bytes that is. A file that cannot be
 * opened leaves `out` as it is. */
SYNCLINE_HIDDEN size_t syncline_read_small_file(const char* path, char* out, size_t out_bytes);

/* The process. Guarded by the lock unless said otherwise. */
struct syncline_process {
  struct syncline_files files;
  const struct syncline_emit* emit; /* the tracer; never NULL */
  uint32_t ready;                   /* there is a block */
  uint32_t forked;                  /* a child that has not made its block yet */
  uint32_t ever_recorded;
  uint32_t session;  /* of the recording now on; 0: none */
  uint32_t sessions; /* counts up, across forks */
  uint32_t sources;
};
extern SYNCLINE_HIDDEN struct syncline_process syncline_process;
SYNCLINE_HIDDEN void syncline_lock(void);
SYNCLINE_HIDDEN void syncline_unlock(void);
/* 0 while a fork holds the lock: for what may have interrupted the allocator, or be called by one.
 * The fork may be waiting for the allocator's locks. */
SYNCLINE_HIDDEN int syncline_lock_unless_forking(void);
/* By the fork, which holds the lock. */
SYNCLINE_HIDDEN void syncline_fork_holds_lock(int holds);
/* Wait no longer; 0 when it is locked. The lock, and any mutex. */
SYNCLINE_HIDDEN int syncline_lock_for(long ns);
SYNCLINE_HIDDEN int syncline_lock_timed(pthread_mutex_t* mutex, long ns);
/* 0 when there is a block; in a forked child it makes one. The lock is held. */
SYNCLINE_HIDDEN int syncline_process_ensure(void);

/* names.c: the lock is held. */
SYNCLINE_HIDDEN int syncline_names_start(void);
/* Moves the parent's names into the child's own file. */
SYNCLINE_HIDDEN int syncline_names_after_fork(struct syncline_files* fresh, uint8_t* old_names);

/* threads.c */
SYNCLINE_HIDDEN int syncline_threads_start(void);
/* 1 when LTTng-UST has what it needs of this thread, which it allocates: 0 in a signal handler, if
 * this thread never was here outside of one. */
SYNCLINE_HIDDEN int syncline_thread_is_known_to_tracer(struct syncline_thread* thread);
/* In the child: this thread, the only one, lets go of the parent's slot. */
SYNCLINE_HIDDEN void syncline_threads_after_fork(void);
/* Gives the thread a key and a slot in the block as it is now. The lock is held. */
SYNCLINE_HIDDEN void syncline_thread_enter(struct syncline_thread* thread);
/* Refreshes the name from the kernel and writes syncline:thread. */
SYNCLINE_HIDDEN void syncline_thread_announce(struct syncline_thread* thread);

/* handler.c */
/* 1: this thread is in a signal handler, so that nothing must be allocated. */
SYNCLINE_HIDDEN int syncline_in_handler(void);

/* cost.c */
/* Chooses what calls are timed with, and measures what reading that takes. */
SYNCLINE_HIDDEN void syncline_cost_start_up(void);
/* A recording begins for this process, or for this thread. */
SYNCLINE_HIDDEN void syncline_cost_recording_begins(struct syncline_block* block);
SYNCLINE_HIDDEN void syncline_cost_restart(struct syncline_thread* thread);

/* Sums over the slots. */
struct syncline_sums {
  uint64_t events;
  uint64_t lost;
  uint64_t cost_ns;
};
SYNCLINE_HIDDEN struct syncline_sums syncline_thread_sums(void);

#endif /* SYNCLINE_INSTRUMENTATION_BLOCK_INTERNAL_H_ */

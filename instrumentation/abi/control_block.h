// SPDX-License-Identifier: Apache-2.0
/* The control block: the one thing that a training process and the agent share.
 *
 * One file per process, memory-mapped by both, in the user's runtime directory (0700; files 0600):
 *   $SYNCLINE_RUNTIME_DIR, else /dev/shm/syncline-UID
 *   PIDNS-PID-STARTTICKS.block    header + thread slots           (fixed size, mapped whole)
 *   PIDNS-PID-STARTTICKS.names    append-only name table          (grows)
 *   stacks/PIDNS-PID-STARTTICKS.stacks   what its Python answered to `stacks_asked`
 *   counters                      a u32: the last key given       (shared by the user's processes;
 *                                                                  begins at a random number)
 * PID is as the process sees itself, PIDNS the inode of /proc/self/ns/pid.
 *
 * Who writes what: the agent writes the words of the gate's cache line and nothing else. The
 * process writes the rest. The agent treats every byte as hostile: bounds, O_NOFOLLOW, owner and
 * mode checked, truncation survived (SIGBUS: it reads with pread, or maps and revalidates the
 * size).
 *
 * The gate: generation is 0 while nothing is recorded. A recording gets a non-zero number that
 * never repeats within the process's life. One relaxed load per ITT call compares it with the
 * number that the process last acted on; a change makes the process announce itself (on) or stop
 * (off).
 *
 * Little endian, natural alignment; additive: new fields go into `reserved`, `version` tells.
 * Plain C, no dependency: everybody may include it.
 */
#ifndef SYNCLINE_ABI_CONTROL_BLOCK_H_
#define SYNCLINE_ABI_CONTROL_BLOCK_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SYNCLINE_BLOCK_MAGIC "SYNCBLK1" /* 8 bytes, no NUL */
#define SYNCLINE_NAMES_MAGIC "SYNCNAM1"
#define SYNCLINE_BLOCK_VERSION 1u
#define SYNCLINE_BLOCK_THREADS 1024u /* slots; further threads share the last one */

/* Bits of syncline_block.sources: which of our libraries are loaded. */
#define SYNCLINE_SOURCE_ITT 1u
#define SYNCLINE_SOURCE_NET 2u
#define SYNCLINE_SOURCE_PYTHON 4u
#define SYNCLINE_SOURCE_DEVICE 8u

/* Bits of syncline_block.left_out. */
#define SYNCLINE_LEFT_OUT_MESSAGES 1u /* what is sent and received */

/* Values of syncline_block.state. */
#define SYNCLINE_STATE_STARTING 0u
#define SYNCLINE_STATE_LIVE 1u
#define SYNCLINE_STATE_EXITED 2u /* set at exit; a killed process leaves LIVE behind */

/* 64 bytes, one cache line; written by its thread only (the last slot by every thread that found no
 * other). Counts since the process began: a slot that a new thread takes over from a dead one
 * counts on, so that the sum over the slots is the process's. `events` counts every event of our
 * providers, the announcements (on, off, thread, name, pause, resume) included. */
struct syncline_thread_slot {
  uint32_t thread_key; /* 0: free */
  int32_t tid;
  uint64_t events;  /* events handed to the tracer */
  uint64_t lost;    /* events that could not be: table full, re-entered, fork */
  uint64_t cost_ns; /* estimate: time inside our code while recording, from a sample of calls */
  uint64_t cost_samples;
  char name[24]; /* NUL-terminated, cut; the thread's name as last known */
};

/* What `cost_ns` is made of, of all threads since the process began: enough for an interval around
 * it (control_block/cost.h). All zero in blocks of libraries that did not count it. */
struct syncline_cost {
  uint64_t samples;        /* timed calls that stand for the calls since the sample before, too */
  uint64_t calls;          /* that these stand for, themselves included */
  uint64_t sampled_ns;     /* estimate: what those calls took; part of cost_ns */
  uint64_t squares;        /* sum over the samples of (ns x calls it stands for)^2 / 1024 */
  uint64_t timed_ns;       /* of cost_ns, what a clock has seen: samples once, and all below */
  uint64_t interrupted;    /* timed calls that took too long to have been ours alone */
  uint64_t interrupted_ns; /* what they took: counted once, stands for nothing else */
};

struct syncline_block {
  uint8_t magic[8];
  uint32_t version;
  uint32_t header_bytes; /* sizeof(struct syncline_block): where the slots begin */
  uint32_t state;
  uint32_t sources;
  int32_t pid; /* in its own namespace */
  uint32_t uid;
  uint64_t pid_namespace;
  uint64_t start_ticks;
  uint64_t started_monotonic_ns; /* when the block was made */
  int32_t rank;                  /* -1: unknown */
  int32_t world_size;            /* -1: unknown */
  int32_t local_rank;            /* -1: unknown */
  uint32_t process_key;          /* from `counters`: names the process in events */
  char job[128];                 /* NUL-terminated UTF-8, all of these */
  char incarnation[64];
  char role[64];
  char hostname[64];
  char boot_id[40];
  char executable[256];
  char command_line[1024]; /* blanks between arguments; secrets redacted; cut at 1023 */

  /* The agent's word, on its own cache line. Also a futex word: the agent wakes after writing. */
  uint32_t generation __attribute__((aligned(64)));
  /* Another number than before: its Python is asked for its stacks (1, 2, 3 ...; 0: never asked).
   * Libraries that do not know it leave it. Those who wait on `generation` are woken. */
  uint32_t stacks_asked;
  /* What is not to be recorded; written before the generation that it is for. Libraries that do not
   * know it record everything. */
  uint32_t operators_least_us; /* operators in others that mostly take less; 0: none is */
  uint32_t left_out;           /* SYNCLINE_LEFT_OUT_... */
  uint32_t reserved_gate[12];

  /* The process's answer, on its own cache line. */
  uint32_t generation_seen __attribute__((aligned(64))); /* last value of the gate acted on */
  uint32_t thread_slots_used;                            /* high-water mark */
  uint64_t on_monotonic_ns;                              /* first call after the gate opened */
  uint64_t off_monotonic_ns; /* first call after it closed; 0 while on */
  uint64_t names_bytes;      /* valid bytes of the .names file */
  uint32_t names_count;
  uint32_t names_refused; /* names that did not fit: they travel in the events */
  uint64_t events_at_on;  /* sums over the slots when the generation was seen */
  uint64_t lost_at_on;
  uint64_t cost_ns_at_on;
  uint32_t paused;               /* the program called __itt_pause */
  uint32_t recording_generation; /* the one that the times and sums above belong to; 0: none yet */
  uint64_t asked_monotonic_ns;   /* first call after the gate opened */
  uint64_t lost_before_on;       /* calls between asked and on: the tracer was not ready */
  uint32_t pauses;               /* __itt_pause while recording_generation was on, and before it */
  uint32_t reserved_answer[7];

  struct syncline_cost cost;
  struct syncline_cost cost_at_on; /* when the generation was seen */

  uint8_t reserved[400];
  /* struct syncline_thread_slot slots[SYNCLINE_BLOCK_THREADS]; */
};

/* The .names file: this header, then records. Ids count from 1 in order of appearance. */
struct syncline_names_header {
  uint8_t magic[8];
  uint32_t version;
  uint32_t limit_bytes; /* the table never grows beyond; default 64 MiB */
};

/* A record: this, the text, a NUL, padding to 4. Written before names_bytes is advanced (release),
 * so the file may end in zeros or in half a record: valid records are those whose ids count on. */
struct syncline_name_record {
  uint32_t id;
  uint16_t text_bytes; /* without NUL; longer names are cut at 65534 */
  uint8_t kind;        /* docs/event-schema.md, syncline:name */
  uint8_t flags;       /* 1: text was cut */
};

#ifdef __cplusplus
}
#endif

#endif /* SYNCLINE_ABI_CONTROL_BLOCK_H_ */

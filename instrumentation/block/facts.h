// SPDX-License-Identifier: Apache-2.0
/* What a process is, from its environment and command line. Pure: the caller gives the environment.
 */
#ifndef SYNCLINE_INSTRUMENTATION_BLOCK_FACTS_H_
#define SYNCLINE_INSTRUMENTATION_BLOCK_FACTS_H_

#include <stddef.h>

#include "instrumentation/abi/control_block.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef const char* (*syncline_environment)(const char* name, void* context);

/* Fills rank, world_size, local_rank, job, incarnation and role. What `syncline run` was told wins
 * (SYNCLINE_JOB, SYNCLINE_RANK, SYNCLINE_ROLE), then, from the most specific launcher to the least:
 * torchrun (RANK ...), Open MPI, PMI, Slurm, TF_CONFIG. Unknown numbers are -1. */
void syncline_facts_from_environment(struct syncline_block* block, syncline_environment get,
                                     void* context);

/* The task of a TF_CONFIG: its type, its index and how many tasks of that type there are. */
struct syncline_tf_task {
  char type[64];
  int index; /* -1: not found */
  int count; /* -1: not found */
};
void syncline_parse_tf_config(const char* json, struct syncline_tf_task* task);

/* `raw`: arguments, each with its NUL (as in /proc/self/cmdline). Writes them with blanks between,
 * without secrets (values of passwords, tokens, keys; passwords in URLs), cut to `out_bytes` - 1,
 * with a NUL. */
void syncline_redact_command_line(const char* raw, size_t raw_bytes, char* out, size_t out_bytes);

/* Copies text into a fixed array, cut at a character's border, NUL-terminated; control characters
 * become blanks. */
void syncline_copy_text(char* out, size_t out_bytes, const char* text);

#ifdef __cplusplus
}
#endif

#endif /* SYNCLINE_INSTRUMENTATION_BLOCK_FACTS_H_ */

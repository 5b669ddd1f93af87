// SPDX-License-Identifier: Apache-2.0
/* libsyncline_torch.so, the tasks of the hook's own: garbage collections, waits and marks.
 *
 * They are written by the ITT collector that the program has, to which tasks.c is one more static
 * part (itt/itt_abi.h): the collector keeps one stack of open tasks for each thread, so that these
 * nest with PyTorch's operators, and have domains and names as PyTorch's own have. */
#ifndef SYNCLINE_INSTRUMENTATION_TORCH_TASKS_H_
#define SYNCLINE_INSTRUMENTATION_TORCH_TASKS_H_

#include <stddef.h>

#include "instrumentation/block/block.h"
#include "instrumentation/itt/itt_abi.h"

/* What the collector fills in. */
struct syncline_torch_itt {
  struct itt_domain* (*domain_create)(const char*);
  struct itt_string_handle* (*string_handle_create)(const char*);
  void (*task_begin)(const struct itt_domain*, struct itt_id, struct itt_id,
                     struct itt_string_handle*);
  void (*task_end)(const struct itt_domain*);
  void (*metadata_add)(const struct itt_domain*, struct itt_id, struct itt_string_handle*, int,
                       size_t, void*);
};
/* NULL before syncline_torch_tasks_start, and where the collector lacks one of them. */
__attribute__((visibility("hidden"))) const struct syncline_torch_itt* syncline_torch_itt(void);

#endif /* SYNCLINE_INSTRUMENTATION_TORCH_TASKS_H_ */

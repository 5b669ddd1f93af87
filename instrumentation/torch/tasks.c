// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "instrumentation/torch/tasks.h"

#include <dlfcn.h>
#include <string.h>

#include "instrumentation/block/block.h"
#include "instrumentation/torch/watch.h"

static const struct itt_id kNoId;
static struct syncline_torch_itt itt;

#define ENTRY(call) \
  { "__itt_" #call, (void**)(void*)&itt.call, NULL, NULL, ITT_GROUP_STRUCTURE }
static struct itt_api_info api[] = {
    ENTRY(domain_create), ENTRY(string_handle_create), ENTRY(task_begin),
    ENTRY(task_end),      ENTRY(metadata_add),         {NULL, NULL, NULL, NULL, 0},
};
static struct itt_global global = {
    .version_major = 3, .mutex = PTHREAD_MUTEX_INITIALIZER, .api_list = api};

static struct itt_domain* own_domain;
static struct itt_domain* torch_domain;
static struct itt_string_handle* wait_name; /* the last: it says that all is there */

const struct syncline_torch_itt* syncline_torch_itt(void) { return wait_name ? &itt : NULL; }

SYNCLINE_EXPORT int syncline_torch_tasks_start(const char* collector) {
  if (global.library) return wait_name ? 0 : -1;
  global.library = dlopen(collector, RTLD_LAZY);
  if (!global.library) return -1;
  void (*init)(struct itt_global*, int);
  *(void**)&init = dlsym(global.library, "__itt_api_init");
  if (!init) return -1;
  memcpy(global.magic, ITT_MAGIC, sizeof global.magic);
  init(&global, ITT_GROUP_ALL);
  if (!itt.domain_create || !itt.string_handle_create || !itt.task_begin || !itt.task_end ||
      !itt.metadata_add) {
    return -1;
  }
  own_domain = itt.domain_create("syncline");
  torch_domain = itt.domain_create("PyTorch");
  if (own_domain && torch_domain) wait_name = itt.string_handle_create("Work.wait");
  return wait_name ? 0 : -1;
}

SYNCLINE_EXPORT int syncline_torch_mark(const char* text) {
  struct syncline_thread* thread = syncline_thread_self();
  struct itt_string_handle* name = wait_name ? itt.string_handle_create(text) : NULL;
  if (!thread || !name) return 0;
  itt.task_begin(own_domain, kNoId, kNoId, name);
  const int recorded = *syncline_gate != 0 && thread->session != 0;
  itt.task_end(own_domain);
  return recorded;
}

/* How many waits this thread is in, from the first that has a task on: a handler of a signal may
 * wait within another one. */
static __thread uint32_t waits;

SYNCLINE_EXPORT void syncline_torch_wait_begin(void) {
  if (waits == 0 && (!wait_name || *syncline_gate == 0)) return;
  if (waits++ == 0) itt.task_begin(torch_domain, kNoId, kNoId, wait_name);
}

SYNCLINE_EXPORT void syncline_torch_wait_end(void) {
  if (waits > 0 && --waits == 0) itt.task_end(torch_domain);
}

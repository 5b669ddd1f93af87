// SPDX-License-Identifier: Apache-2.0
// For annotate_test: an ITT collector that prints what it is told.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "instrumentation/itt/itt_abi.h"

#define SAY(...) fprintf(stderr, __VA_ARGS__)

static struct itt_domain domain;
static struct itt_string_handle handles[16];

static int IsOurs(const struct itt_domain* of) { return strcmp(of->name, "annotations") == 0; }

static struct itt_domain* DomainCreate(const char* name) {
  SAY("domain %s\n", name);
  domain.name = name;
  domain.flags = getenv("ANNOTATE_TEST_SWITCHED_OFF") == NULL;
  return &domain;
}
static struct itt_string_handle* StringHandleCreate(const char* text) {
  size_t i = 0;
  while (handles[i].text && strcmp(handles[i].text, text) != 0) i++;
  if (!handles[i].text) handles[i].text = strdup(text);
  return &handles[i];
}
static void* CounterCreateTyped(const char* name, const char* domain_name, int type) {
  SAY("counter %s of %s, type %d\n", name, domain_name, type);
  return strdup(name);
}
static void TaskBegin(const struct itt_domain* of, struct itt_id id, struct itt_id parent,
                      struct itt_string_handle* name) {
  if (IsOurs(of) && !id.d1 && !parent.d1) SAY("begin %s\n", name->text);
}
static void TaskEnd(const struct itt_domain* of) {
  if (IsOurs(of)) SAY("end\n");
}
static void MetadataAdd(const struct itt_domain* of, struct itt_id id,
                        struct itt_string_handle* key, int type, size_t count, void* data) {
  if (!IsOurs(of) || id.d1 || type != ITT_METADATA_U64 || count != 1) return;
  SAY("%s %llu\n", key->text, *(unsigned long long*)data);
}
static void TaskBeginOverlapped(const struct itt_domain* of, struct itt_id id, struct itt_id parent,
                                struct itt_string_handle* name) {
  if (IsOurs(of) && !parent.d1) SAY("region %s %llu %llx\n", name->text, id.d1, id.d2);
}
static void TaskEndOverlapped(const struct itt_domain* of, struct itt_id id) {
  if (IsOurs(of)) SAY("region ends %llu %llx\n", id.d1, id.d2);
}
static void CounterSetValue(void* counter, void* value) {
  SAY("%s = %g\n", (const char*)counter, *(double*)value);
}
static void Pause(void) { SAY("pause\n"); }
static void Resume(void) { SAY("resume\n"); }

static const struct {
  const char* name;
  void* function;
} kFunctions[] = {
    {"__itt_domain_create", DomainCreate},
    {"__itt_string_handle_create", StringHandleCreate},
    {"__itt_counter_create_typed", CounterCreateTyped},
    {"__itt_task_begin", TaskBegin},
    {"__itt_task_end", TaskEnd},
    {"__itt_metadata_add", MetadataAdd},
    {"__itt_task_begin_overlapped", TaskBeginOverlapped},
    {"__itt_task_end_overlapped", TaskEndOverlapped},
    {"__itt_counter_set_value", CounterSetValue},
    {"__itt_pause", Pause},
    {"__itt_resume", Resume},
};

__attribute__((visibility("default"))) void __itt_api_init(struct itt_global* global, int groups);
void __itt_api_init(struct itt_global* global, int groups) {
  if (memcmp(global->magic, ITT_MAGIC, sizeof global->magic) != 0 || groups != ITT_GROUP_ALL)
    return;
  SAY("init %lu, mutex %ld\n", global->version_major, global->mutex_initialized);
  void (*marks)(void);
  *(void**)&marks = dlsym(RTLD_DEFAULT, "MarkWhileLoading");
  if (marks) marks();
  const char* unwanted = getenv("ANNOTATE_TEST_UNWANTED");
  for (struct itt_api_info* api = global->api_list; api->name; api++) {
    void* function = NULL;
    for (size_t i = 0; i < sizeof kFunctions / sizeof *kFunctions; i++) {
      if (strcmp(kFunctions[i].name, api->name) == 0) function = kFunctions[i].function;
    }
    if (!function) SAY("unknown %s\n", api->name);
    if (unwanted && strcmp(unwanted, api->name) == 0) function = api->null_function;
    __atomic_store_n(api->function, function, __ATOMIC_RELEASE);
  }
}

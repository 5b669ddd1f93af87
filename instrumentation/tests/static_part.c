// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "instrumentation/tests/static_part.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

void static_part_start(struct static_part* part) {
  memset(part, 0, sizeof *part);
  memcpy(part->global.magic, ITT_MAGIC, sizeof part->global.magic);
  part->global.version_major = 3;
  part->global.version_build = 20180723;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&part->global.mutex, &attributes);
  part->global.mutex_initialized = 1;
  part->global.api_list = part->api;
#define ENTRY(call, result, parameters, api_group)                     \
  part->api[STATIC_PART_##call].name = "__itt_" #call;                 \
  part->api[STATIC_PART_##call].function = (void**)(void*)&part->call; \
  part->api[STATIC_PART_##call].group = api_group;
  STATIC_PART_FUNCTIONS(ENTRY)
#undef ENTRY
}

struct itt_domain* static_part_domain(struct static_part* part, const char* name) {
  if (part->domain_create) return part->domain_create(name);
  pthread_mutex_lock(&part->global.mutex);
  struct itt_domain* domain = calloc(1, sizeof *domain);
  domain->flags = 1;
  domain->name = strdup(name);
  domain->next = part->global.domains;
  part->global.domains = domain;
  pthread_mutex_unlock(&part->global.mutex);
  return domain;
}

struct itt_string_handle* static_part_string(struct static_part* part, const char* text) {
  if (part->string_handle_create) return part->string_handle_create(text);
  pthread_mutex_lock(&part->global.mutex);
  struct itt_string_handle* handle = calloc(1, sizeof *handle);
  handle->text = strdup(text);
  handle->next = part->global.strings;
  part->global.strings = handle;
  pthread_mutex_unlock(&part->global.mutex);
  return handle;
}

void* static_part_counter(struct static_part* part, const char* name, const char* domain,
                          int type) {
  if (part->counter_create_typed) return part->counter_create_typed(name, domain, type);
  pthread_mutex_lock(&part->global.mutex);
  struct itt_counter_info* info = malloc(sizeof *info);
  memset(info, 0xA5, sizeof *info); /* the real ones leave extra1 and extra2 uninitialised */
  info->name = strdup(name);
  info->domain = strdup(domain);
  info->type = type;
  info->next = part->global.counters;
  part->global.counters = info;
  pthread_mutex_unlock(&part->global.mutex);
  return info;
}

int static_part_load(struct static_part* part) {
  pthread_mutex_lock(&part->global.mutex);
  if (!part->global.api_initialized && !pthread_equal(part->loading, pthread_self())) {
    part->loading = pthread_self();
    const char* path = getenv("INTEL_LIBITTNOTIFY64");
    void* library = path ? dlopen(path, RTLD_LAZY) : NULL;
    void (*init)(struct itt_global*, int);
    *(void**)&init = library ? dlsym(library, "__itt_api_init") : NULL;
    part->global.library = library;
    if (init) init(&part->global, ITT_GROUP_ALL);
    __atomic_store_n(&part->global.api_initialized, 1, __ATOMIC_RELEASE);
    part->loading = 0;
  }
  pthread_mutex_unlock(&part->global.mutex);
  return part->global.library != NULL;
}

void static_part_end(struct static_part* part) {
  void (*fini)(struct itt_global*);
  *(void**)&fini = part->global.library ? dlsym(part->global.library, "__itt_api_fini") : NULL;
  if (fini) fini(&part->global);
}

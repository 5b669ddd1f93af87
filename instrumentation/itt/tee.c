// SPDX-License-Identifier: Apache-2.0
/* Loads the other collector and lets it bind. See tee.h. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "instrumentation/abi/tracer.h"
#include "instrumentation/itt/tee.h"

void* itt_tee_own[ITT_TEE_CALL_COUNT];
void** itt_tee_theirs[ITT_TEE_CALL_COUNT];

/* Never given back: the other collector may write there as long as it lives. */
struct itt_tee {
  struct itt_global global; /* its copy of the static part's */
  void* later_fields[8];    /* of newer static parts: it sees none of their objects */
  const struct itt_global* real;
  struct itt_tee* next;
  const char* path;
  int ended;
  size_t count;
  void** slots; /* what it bound, by the API's index */
  struct itt_api_info apis[];
};
static struct itt_tee* tees;

typedef void (*Init)(struct itt_global* global, int groups);
typedef void (*Fini)(struct itt_global* global);
/* Ours. Not by its exported name: that may be the other's, where it is preloaded. */
extern __attribute__((visibility("hidden"))) void itt_init_here(struct itt_global* global,
                                                                int init_groups);

int itt_tee_nothing(void) { return 0; }

/* Each thread that initialises a static part comes here: the loader returns the same library. */
static void* Load(const char** path, Init* init) {
  *path = secure_getenv(SYNCLINE_ALSO_COLLECTOR_VARIABLE);
  void* library = *path && **path ? dlopen(*path, RTLD_LAZY) : NULL;
  *(void**)init = library ? dlsym(library, "__itt_api_init") : NULL;
  return *init && *init != itt_init_here ? library : NULL;
}

static int IsDirect(const char* name) {
  for (const char* const* direct = itt_tee_direct; *direct; direct++) {
    if (strcmp(*direct, name) == 0) return 1;
  }
  return 0;
}

/* ITT_TEE_CALL_COUNT: none. */
static size_t CallOf(const char* name) {
  size_t call = 0;
  while (call < ITT_TEE_CALL_COUNT && strcmp(itt_tee_bindings[call].name, name) != 0) call++;
  return call;
}

static struct itt_tee* Copy(struct itt_global* global) {
  static const pthread_mutex_t kMutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  size_t count = 0;
  while (global->api_list && global->api_list[count].name) count++;
  const size_t list_bytes = (count + 1) * sizeof(struct itt_api_info);
  struct itt_tee* tee = syncline_reserve(sizeof *tee + list_bytes + count * sizeof(void*));
  if (!tee) return NULL;
  memcpy(&tee->global, global, offsetof(struct itt_global, histograms));
  tee->real = global;
  tee->count = count;
  tee->slots = (void**)((char*)tee->apis + list_bytes);
  for (size_t i = 0; i < count; i++) {
    tee->apis[i] = global->api_list[i];
    tee->apis[i].null_function = NULL;
    if (!IsDirect(tee->apis[i].name)) tee->apis[i].function = &tee->slots[i];
  }
  tee->global.mutex = kMutex;
  tee->global.api_list = tee->apis;
  tee->global.next = NULL;
  tee->global.threads = NULL;
  tee->global.domains = NULL;
  tee->global.strings = NULL;
  tee->global.counters = NULL;
  return tee;
}

static int IsOf(const struct itt_tee* tee, void** slot) {
  return tee && slot >= tee->slots && slot < tee->slots + tee->count;
}

/* Where several static parts have the function, the first one's counts that is still there: the
 * other collector may take its functions away from a part that ends. */
static void Remember(struct itt_tee* tee, const struct itt_tee* ending) {
  for (size_t i = 0; tee->apis[i].name; i++) {
    const size_t call = CallOf(tee->apis[i].name);
    if (call == ITT_TEE_CALL_COUNT || !__atomic_load_n(&tee->slots[i], __ATOMIC_RELAXED)) continue;
    void** slot = __atomic_load_n(&itt_tee_theirs[call], __ATOMIC_ACQUIRE);
    while ((IsOf(ending, slot) || !(slot && __atomic_load_n(slot, __ATOMIC_RELAXED))) &&
           !__atomic_compare_exchange_n(&itt_tee_theirs[call], &slot, &tee->slots[i], 0,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    }
  }
}

static void RememberOwn(const struct itt_tee* tee, void* (*own)(const struct itt_api_info* api)) {
  for (size_t i = 0; tee->apis[i].name; i++) {
    const size_t call = CallOf(tee->apis[i].name);
    if (call == ITT_TEE_CALL_COUNT) continue;
    void* ours = own(&tee->apis[i]);
    __atomic_store_n(&itt_tee_own[call], ours ? ours : (void*)itt_tee_nothing, __ATOMIC_RELEASE);
  }
}

struct itt_tee* itt_tee_begin(struct itt_global* global, int groups,
                              void* (*own)(const struct itt_api_info* api)) {
  const char* path;
  Init init;
  void* library = Load(&path, &init);
  struct itt_tee* tee = library && itt_tee_objects_start() == 0 ? Copy(global) : NULL;
  if (!tee) return NULL;
  tee->path = path;
  tee->global.library = library;
  tee->global.library_path = &tee->path;
  init(&tee->global, groups);
  tee->global.api_initialized = 1;
  RememberOwn(tee, own);
  /* Before its functions count: a part that ends meanwhile hands over to one that it can see. */
  tee->next = __atomic_load_n(&tees, __ATOMIC_RELAXED);
  while (
      !__atomic_compare_exchange_n(&tees, &tee->next, tee, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  Remember(tee, NULL);
  itt_tee_start_clock();
  return tee;
}

int itt_tee_alone(struct itt_global* global, int groups) {
  const char* path;
  Init init;
  if (!Load(&path, &init)) return 0;
  init(global, groups);
  return 1;
}

void* itt_tee_function(const struct itt_tee* tee, size_t index, void* own) {
  if (!tee) return own;
  const struct itt_api_info* api = &tee->apis[index];
  if (api->function != &tee->slots[index]) { /* its own has written there, or nobody */
    void* theirs = __atomic_load_n(api->function, __ATOMIC_RELAXED);
    return theirs && theirs != api->init_function ? theirs : own;
  }
  const size_t call = CallOf(api->name);
  if (call == ITT_TEE_CALL_COUNT || !tee->slots[index]) return own;
  return itt_tee_bindings[call].function ? itt_tee_bindings[call].function : own;
}

static void RememberLiving(const struct itt_tee* ending) {
  for (struct itt_tee* tee = __atomic_load_n(&tees, __ATOMIC_ACQUIRE); tee; tee = tee->next) {
    if (!__atomic_load_n(&tee->ended, __ATOMIC_RELAXED)) Remember(tee, ending);
  }
}

/* A library that was loaded again may have its static part at the same address: the newest. */
void itt_tee_end(const struct itt_global* global) {
  struct itt_tee* tee = __atomic_load_n(&tees, __ATOMIC_ACQUIRE);
  while (tee && tee->real != global) tee = tee->next;
  Fini fini = NULL;
  if (tee) *(void**)&fini = dlsym(tee->global.library, "__itt_api_fini");
  if (!fini) return;
  __atomic_store_n(&tee->ended, 1, __ATOMIC_RELAXED);
  RememberLiving(tee); /* so that no other part's call is lost meanwhile */
  fini(&tee->global);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  RememberLiving(NULL);
}

// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "instrumentation/device/device.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "instrumentation/block/block.h"
#include "instrumentation/block/enter.h"

static const struct syncline_device_emit* tracer; /* NULL: LTTng is missing */

int device_start(void) {
  struct syncline_thread* thread = syncline_thread_self();
  if (!thread || thread->busy) return -1;
  thread->busy = 1; /* what is loaded allocates, and an allocator may call ITT */
  const int opened = syncline_open(SYNCLINE_SOURCE_DEVICE);
  if (opened == 0 && !tracer) {
    void* library = syncline_load_sibling(SYNCLINE_DEVICE_PROVIDER_FILE);
    const struct syncline_device_emit* found =
        library ? dlsym(library, SYNCLINE_DEVICE_PROVIDER_SYMBOL) : NULL;
    __atomic_store_n(&tracer, found, __ATOMIC_RELEASE);
  }
  thread->busy = 0;
  return opened == 0 && tracer ? 0 : -1;
}

int device_is_asked(void) {
  if (*syncline_gate != 0) return 1;
  const struct syncline_thread* thread = syncline_thread_self();
  return thread && thread->generation != 0;
}

static struct syncline_thread* Enter(uint64_t* cost) {
  return __atomic_load_n(&tracer, __ATOMIC_ACQUIRE) ? SynclineEnter(cost) : NULL;
}

int device_launch(uint64_t launch, const char* name) {
  uint64_t cost;
  struct syncline_thread* thread = Enter(&cost);
  if (!thread) return 0;
  const int written = tracer->launch(thread->key, launch, SynclineName(thread, name));
  SynclineLeave(thread, cost, written);
  return written;
}

void device_work(const struct device_work* work) {
  uint64_t cost;
  struct syncline_thread* thread = Enter(&cost);
  if (!thread) return;
  const struct syncline_device_work fields = {
      .device = SynclineName(thread, work->device),
      .queue = SynclineName(thread, work->queue),
      .name = SynclineName(thread, work->name),
      .kind = (uint8_t)work->kind,
      .launch = work->launch,
      .begin = work->begin_ns,
      .end = work->end_ns,
      .bound = work->bound_ns,
      .bytes = work->bytes,
  };
  SynclineLeave(thread, cost, tracer->work(thread->key, &fields));
}

int device_collective_call(uint64_t call, const char* name) {
  uint64_t cost;
  struct syncline_thread* thread = Enter(&cost);
  if (!thread) return 0;
  const int written = tracer->collective_call(thread->key, call, SynclineName(thread, name));
  SynclineLeave(thread, cost, written);
  return written;
}

void device_collective(const struct device_collective* collective) {
  uint64_t cost;
  struct syncline_thread* thread = Enter(&cost);
  if (!thread) return;
  const struct syncline_device_collective fields = {
      .launch = collective->call,
      .communicator = collective->communicator,
      .size = collective->ranks,
      .rank = collective->rank,
      .name = SynclineName(thread, collective->name),
      .description = SynclineName(thread, collective->how),
      .sequence = collective->number,
      .peer = collective->peer,
      .bytes = collective->bytes,
      .since = collective->since_ns,
      .begin = collective->begin,
      .end = collective->end,
      .ahead = collective->ahead_ns,
      .waited = collective->watched_ns,
  };
  SynclineLeave(thread, cost, tracer->collective(thread->key, &fields));
}

void device_refused(uint64_t launch) {
  uint64_t cost;
  struct syncline_thread* thread = Enter(&cost);
  if (!thread) return;
  const struct syncline_device_work nothing = {.kind = SYNCLINE_DEVICE_NOTHING, .launch = launch};
  SynclineLeave(thread, cost, tracer->work(thread->key, &nothing));
}

void device_spent(uint64_t ticks) {
  struct syncline_thread* thread = syncline_thread_self();
  if (thread && thread->session) syncline_cost_timed(thread, syncline_cost_ns(ticks));
}

void device_follow(void) {
  struct syncline_thread* thread = syncline_thread_self();
  if (thread && !thread->busy && *syncline_gate != thread->generation) {
    syncline_gate_changed(thread);
  }
}

void device_tracing(const char* source, enum syncline_device_tracing state) {
  uint64_t cost;
  struct syncline_thread* thread = Enter(&cost);
  if (!thread) return;
  const uint32_t id = SynclineName(thread, source);
  SynclineLeave(thread, cost, tracer->tracing(thread->key, id, (uint8_t)state));
}

void device_lost(const char* source, uint64_t count) {
  uint64_t cost;
  struct syncline_thread* thread = count ? Enter(&cost) : NULL;
  if (!thread) return;
  const uint32_t id = SynclineName(thread, source);
  SynclineLeave(thread, cost, tracer->lost(thread->key, id, count));
}

static int IsFramework(struct dl_phdr_info* object, size_t bytes, void* found) {
  (void)bytes;
  static const char* const kTheirs[] = {"libtorch_", "libtensorflow", "libkineto", "xla_cuda",
                                        "libjax",    "libpaddle",     "libmxnet"};
  const char* name = strrchr(object->dlpi_name, '/');
  name = name ? name + 1 : object->dlpi_name;
  for (size_t i = 0; i < sizeof kTheirs / sizeof *kTheirs; i++) {
    if (strncmp(name, kTheirs[i], strlen(kTheirs[i])) == 0) *(int*)found = 1;
  }
  return *(int*)found;
}

int device_is_of_framework(void) {
  int found = 0;
  dl_iterate_phdr(IsFramework, &found);
  return found;
}

// SPDX-License-Identifier: Apache-2.0
/* A driver and a CUPTI of our own, for tests of libsyncline_cuda.so where there is no GPU. Built
 * twice: as libcuda.so.1 it takes launches and lets a "device" do them, one after the other on each
 * stream; with FAKE_CUPTI as libcupti.so.12 it tells who has subscribed. The interface between the
 * two is the test's own; that to the library under test is CUPTI's
 * (instrumentation/device/cupti.h), as far as it is used.
 *
 * FAKE_CUPTI_BUSY in the environment: another tool has CUPTI. */
#define _GNU_SOURCE
#include "instrumentation/tests/fake_cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "instrumentation/device/cupti.h"

#define API __attribute__((visibility("default")))

#ifndef FAKE_CUPTI

API struct fake_hooks fake_hooks;

API int cuDriverGetVersion(int* version) {
  *version = 12080;
  return 0;
}

static void Inject(void) {
  const char* path = getenv("CUDA_INJECTION64_PATH");
  void* library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  int (*start)(void) = NULL;
  if (library) *(void**)&start = dlsym(library, "InitializeInjection");
  if (start) start();
}

API int cuInit(unsigned flags) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)flags;
  return pthread_once(&once, Inject);
}

static void Call(uint32_t id, const char* function, const char* kernel, uint32_t stream,
                 uint64_t length_ns, uint64_t bytes, uint32_t kind) {
  static uint32_t last;
  const uint32_t correlation = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
  void (*hook)(const struct fake_call*) = __atomic_load_n(&fake_hooks.call, __ATOMIC_ACQUIRE);
  const struct fake_call call = {id, function, kernel, correlation, length_ns, bytes, stream, kind};
  if (hook) hook(&call);
}

API int cuLaunchKernel(const char* kernel, uint32_t stream, uint64_t length_ns) {
  Call(307, "cuLaunchKernel", kernel, stream, length_ns, 0, CUPTI_KERNEL);
  return 0;
}
API int cuMemcpyHtoDAsync_v2(uint64_t bytes, uint32_t stream) {
  Call(277, "cuMemcpyHtoDAsync_v2", NULL, stream, 1000 + bytes / 10, bytes, CUPTI_COPY);
  return 0;
}
API int cuMemcpyPeerAsync(uint64_t bytes, uint32_t stream) {
  Call(301, "cuMemcpyPeerAsync", NULL, stream, 1000 + bytes / 10, bytes, CUPTI_PEER_COPY);
  return 0;
}
API int cuMemsetD8Async(uint64_t bytes, uint32_t stream) {
  Call(216, "cuMemsetD8Async", NULL, stream, 500, bytes, CUPTI_FILL);
  return 0;
}
API int cuCtxSynchronize(void) {
  Call(17, "cuCtxSynchronize", NULL, 0, 0, 0, 0);
  return 0;
}

#else

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct fake_hooks* driver;
static cupti_callback callback;
static cupti_clock now;
static cupti_wants_buffer wants;
static cupti_has_buffer has;
static uint8_t called[1024];
static uint8_t kinds[64];
static uint8_t* buffer;
static size_t size, used;
static uint64_t busy_until[16];

enum { kBytes = 160 }; /* of every record */

static void GiveBuffer(void) {
  if (buffer) has(NULL, 0, buffer, size, used);
  buffer = NULL;
  used = size = 0;
}

static void Record(const struct fake_call* call, uint64_t begin_ns, uint64_t end_ns) {
  if (!buffer || used + kBytes > size) {
    size_t most = 0;
    GiveBuffer();
    wants(&buffer, &size, &most);
    if (!buffer) return;
  }
  uint8_t* record = buffer + used;
  used += kBytes;
  memset(record, 0, kBytes);
  const uint32_t device = 1;
#define PUT(place, value) memcpy(record + (place), &(value), sizeof(value))
  PUT(0, call->kind);
  PUT(16, begin_ns);
  PUT(24, end_ns);
  if (call->kind == CUPTI_KERNEL) {
    PUT(40, device);
    PUT(48, call->stream);
    PUT(92, call->correlation);
    PUT(104, call->kernel);
  } else if (call->kind == CUPTI_PEER_COPY) { /* from this device to the first one */
    record[4] = 10;
    PUT(8, call->bytes);
    PUT(32, device);
    PUT(40, call->stream);
    PUT(44, device);
    PUT(60, call->correlation);
  } else {
    record[4] = 1;
    PUT(8, call->bytes);
    PUT(32, device);
    PUT(40, call->stream);
    PUT(44, call->correlation);
  }
#undef PUT
}

static void OnCall(const struct fake_call* call) {
  struct cupti_callback_data data;
  memset(&data, 0, sizeof data);
  data.site = CUPTI_ENTER;
  data.function = call->function;
  data.symbol = call->kernel;
  data.correlation = call->correlation;
  pthread_mutex_lock(&mutex);
  const cupti_callback to = called[call->id] ? callback : NULL;
  pthread_mutex_unlock(&mutex);
  if (to) to(NULL, CUPTI_DRIVER_API, call->id, &data);
  pthread_mutex_lock(&mutex);
  if (call->kind != 0 && kinds[call->kind] && now) {
    uint64_t* busy = &busy_until[call->stream % 16];
    const uint64_t begin_ns = now() + 2000 > *busy ? now() + 2000 : *busy;
    *busy = begin_ns + call->length_ns;
    Record(call, begin_ns, *busy);
  }
  pthread_mutex_unlock(&mutex);
}

API int cuptiSubscribe(void** subscriber, cupti_callback to, void* user) {
  (void)user;
  if (getenv("FAKE_CUPTI_BUSY") || callback) return CUPTI_BUSY;
  driver = dlsym(RTLD_DEFAULT, "fake_hooks");
  if (!driver) return 15;
  callback = to;
  *subscriber = &callback;
  __atomic_store_n(&driver->call, OnCall, __ATOMIC_RELEASE);
  return 0;
}
API int cuptiUnsubscribe(void* subscriber) {
  if (subscriber != &callback) return 1;
  pthread_mutex_lock(&mutex);
  callback = NULL;
  memset(called, 0, sizeof called);
  pthread_mutex_unlock(&mutex);
  return 0;
}
API int cuptiEnableCallback(uint32_t on, void* subscriber, int domain, uint32_t id) {
  if (subscriber != &callback || domain != CUPTI_DRIVER_API || id >= sizeof called) return 1;
  called[id] = (uint8_t)on;
  return 0;
}
API int cuptiGetCallbackName(int domain, uint32_t id, const char** name) {
  if (domain != CUPTI_DRIVER_API) return 1;
  *name = id == 307   ? "cuLaunchKernel"
          : id == 277 ? "cuMemcpyHtoDAsync_v2"
          : id == 301 ? "cuMemcpyPeerAsync"
          : id == 216 ? "cuMemsetD8Async"
          : id == 17  ? "cuCtxSynchronize"
          : id == 527 ? "cuLaunchHostFunc"
                      : NULL;
  return *name ? 0 : 1;
}
API int cuptiActivityEnable(uint32_t kind) {
  if (kind >= sizeof kinds || !has) return 1;
  kinds[kind] = 1;
  return 0;
}
API int cuptiActivityDisable(uint32_t kind) {
  if (kind < sizeof kinds) kinds[kind] = 0;
  return 0;
}
API int cuptiActivityRegisterCallbacks(cupti_wants_buffer to_want, cupti_has_buffer to_have) {
  wants = to_want;
  has = to_have;
  return 0;
}
/* A second time it is a fault, as CUPTI's own answers are then. */
API int cuptiActivityRegisterTimestampCallback(cupti_clock clock) {
  if (now) abort();
  now = clock;
  return 0;
}
API int cuptiActivityGetNextRecord(uint8_t* from, size_t filled, uint8_t** record) {
  uint8_t* next = *record ? *record + kBytes : from;
  if (next >= from + filled) return 12;
  *record = next;
  return 0;
}
API int cuptiActivityFlushAll(uint32_t flag) {
  pthread_mutex_lock(&mutex);
  uint64_t last = 0;
  for (int i = 0; i < 16; i++) last = busy_until[i] > last ? busy_until[i] : last;
  if (flag || !now || last <= now()) GiveBuffer(); /* all of it is done */
  pthread_mutex_unlock(&mutex);
  return 0;
}
API int cuptiActivityGetNumDroppedRecords(void* context, uint32_t stream, size_t* count) {
  (void)context;
  (void)stream;
  *count = 0;
  return 0;
}

#endif

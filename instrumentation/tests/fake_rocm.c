// SPDX-License-Identifier: Apache-2.0
/* A ROCm of our own, for tests of libsyncline_rocm.so and its tool where there is no GPU. Built
 * three times: as libhsa-runtime64.so.1 it takes kernels and copies; with FAKE_REGISTRY as
 * librocprofiler-register.so.0 it looks for tools and the SDK in the way in which ROCm's does it
 * (and aborts the program where that does); with FAKE_SDK as librocprofiler-sdk.so it serves the
 * tools, by the part of its interface that is used (instrumentation/device/rocprofiler.h).
 *
 * FAKE_ROCM_VERSION in the environment: the SDK's; before 10000 its records of code objects are of
 * the older kind, and its kinds have other numbers. FAKE_ROCM_REFUSES: it starts no context;
 * FAKE_ROCM_LOSES: it loses seven records; FAKE_ROCM_DEAF: the registry looks for no tool;
 * FAKE_ROCM_IS_THEIRS: another tool brings it in, and it may log. */
#define _GNU_SOURCE
#include "instrumentation/tests/fake_rocm.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "instrumentation/device/rocprofiler.h"

#define API __attribute__((visibility("default")))

#if defined(FAKE_REGISTRY)

typedef int (*set_table)(const char*, uint64_t, uint64_t, void**, uint64_t);

static void* OpenSdk(void) {
  void* library = dlopen("librocprofiler-sdk.so", RTLD_LAZY | RTLD_GLOBAL);
  Dl_info own;
  char path[4096];
  if (library || !dladdr((void*)&OpenSdk, &own)) return library;
  const int length = (int)(strrchr(own.dli_fname, '/') - own.dli_fname);
  snprintf(path, sizeof path, "%.*s/librocprofiler-sdk.so", length, own.dli_fname);
  return dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
}

API int rocprofiler_register_library_api_table(const char* name, void** tables) {
  if (getenv("FAKE_ROCM_DEAF")) return 1;
  if (!getenv("ROCP_TOOL_LIBRARIES") && !dlsym(RTLD_DEFAULT, "rocprofiler_configure")) return 1;
  set_table set = NULL;
  *(void**)&set = dlsym(RTLD_DEFAULT, "rocprofiler_set_api_table");
  if (!set) {
    void* const library = OpenSdk();
    if (library) *(void**)&set = dlsym(library, "rocprofiler_set_api_table");
  }
  if (!set) abort();
  return set(name, 1, 0, tables, 1);
}

#elif defined(FAKE_SDK)

enum { kKernelId = 11, kCopyId = 10, kCodeId = 10, kShift = 3, kPendingMax = 4096 };
enum { kOtherAgent = 77, kGpu0 = 200, kGpu1 = 300 };

typedef struct rocprofiler_tool* (*configure)(uint32_t, const char*, uint32_t, void*);
/* How the older versions pass it. */
struct old_record {
  uint64_t words[7];
};
typedef void (*old_says)(struct old_record record, uint64_t* user, void* data);

struct pending {
  int is_copy;
  uint8_t record[192];
  uint64_t end;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct pending pending[kPendingMax];
static size_t pending_count;
static uint64_t dropped;
static uint64_t busy_until[64];

static uint32_t version;
static struct rocprofiler_tool* tool;
static int is_initializing;
static uint64_t contexts;
static int is_on[8];
static rocprofiler_says says;
static uint64_t says_in;
static rocprofiler_has_records has;
static void* has_data;
static int takes_kernels, takes_copies;
static uint64_t takes_in;
static rocprofiler_asks asks;

/* The real one logs a warning as it is loaded. */
__attribute__((constructor)) static void Log(void) {
  const char* const level = getenv("ROCPROFILER_LOG_LEVEL");
  const char* const interposes = getenv("ROCPROFILER_QUEUE_INTERPOSITION");
  if (getenv("FAKE_ROCM_IS_THEIRS")) return;
  if (!interposes || strcmp(interposes, "0") != 0) abort();
  if (!level || strcmp(level, "fatal") != 0) abort();
  setenv("GLOG_minloglevel", "3", 1);
}

static int Shift(void) { return version < 10000 ? kShift : 0; }

static uint64_t Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

API int rocprofiler_get_timestamp(uint64_t* now) {
  *now = Now();
  return 0;
}
API int rocprofiler_create_context(struct rocprofiler_handle* context) {
  if (!is_initializing || context->value != 0 || contexts == 7) return 1;
  context->value = ++contexts;
  return 0;
}
API int rocprofiler_start_context(struct rocprofiler_handle context) {
  if (context.value == 0 || context.value > contexts || is_on[context.value]) return 1;
  if (getenv("FAKE_ROCM_REFUSES") && !is_initializing) return 1;
  is_on[context.value] = 1;
  return 0;
}
API int rocprofiler_stop_context(struct rocprofiler_handle context) {
  if (context.value == 0 || context.value > contexts) return 1;
  is_on[context.value] = 0;
  return 0;
}
API int rocprofiler_create_buffer(struct rocprofiler_handle context, size_t bytes, size_t watermark,
                                  int policy, rocprofiler_has_records to_have, void* data,
                                  struct rocprofiler_handle* buffer) {
  if (!is_initializing || context.value == 0 || watermark > bytes ||
      policy != ROCPROFILER_LOSSLESS) {
    return 1;
  }
  has = to_have;
  has_data = data;
  buffer->value = 5;
  return 0;
}
API int rocprofiler_configure_buffer_tracing_service(struct rocprofiler_handle context, int kind,
                                                     const int32_t* operations, size_t count,
                                                     struct rocprofiler_handle buffer) {
  if (!is_initializing || context.value == 0 || operations || count || buffer.value != 5) return 1;
  takes_kernels |= kind == kKernelId + Shift();
  takes_copies |= kind == kCopyId + Shift();
  takes_in = context.value;
  return kind == kKernelId + Shift() || kind == kCopyId + Shift() ? 0 : 1;
}
API int rocprofiler_configure_callback_tracing_service(struct rocprofiler_handle context, int kind,
                                                       const int32_t* operations, size_t count,
                                                       rocprofiler_says to_say, void* data) {
  if (!is_initializing || kind != kCodeId + Shift() || operations || count || data) return 1;
  says = to_say;
  says_in = context.value;
  return 0;
}
API int rocprofiler_configure_external_correlation_id_request_service(
    struct rocprofiler_handle context, const int* kinds, size_t count, rocprofiler_asks to_ask,
    void* data) {
  if (!is_initializing || context.value != takes_in || kinds || count || data) return 1;
  asks = to_ask;
  return 0;
}
API int rocprofiler_query_buffer_tracing_kind_name(int kind, const char** name, uint64_t* length) {
  *name = kind == kKernelId + Shift() ? "KERNEL_DISPATCH"
          : kind == kCopyId + Shift() ? "MEMORY_COPY"
          : kind == 1                 ? "HSA_CORE_API"
                                      : NULL;
  *length = *name ? strlen(*name) : 0;
  return *name ? 0 : 4;
}
API int rocprofiler_query_callback_tracing_kind_name(int kind, const char** name,
                                                     uint64_t* length) {
  *name = kind == kCodeId + Shift() ? "CODE_OBJECT" : kind == 1 ? "HSA_CORE_API" : NULL;
  *length = *name ? strlen(*name) : 0;
  return *name ? 0 : 4;
}
API int rocprofiler_query_available_agents(int agent_version, rocprofiler_agents found,
                                           size_t bytes, void* data) {
  static const struct rocprofiler_agent kAgents[] = {
      {400, kOtherAgent, 1}, {400, kGpu0, ROCPROFILER_GPU}, {400, kGpu1, ROCPROFILER_GPU}};
  const void* agents[] = {&kAgents[0], &kAgents[1], &kAgents[2]};
  if (agent_version != ROCPROFILER_AGENT_VERSION || bytes > 400) return 38;
  return found(agent_version, agents, 3, data);
}

/* What is over goes to the tool, from a thread of our own. */
static void* Deliver(void* unused) {
  static struct pending done[kPendingMax];
  static struct rocprofiler_header headers[kPendingMax];
  static struct rocprofiler_header* pointers[kPendingMax];
  size_t count = 0;
  size_t left = 0;
  (void)unused;
  pthread_mutex_lock(&mutex);
  const uint64_t now = Now();
  for (size_t i = 0; i < pending_count; i++) {
    if (pending[i].end <= now) {
      done[count++] = pending[i];
    } else {
      pending[left++] = pending[i];
    }
  }
  pending_count = left;
  const uint64_t lost = dropped; /* in all */
  pthread_mutex_unlock(&mutex);
  for (size_t i = 0; i < count; i++) {
    headers[i].category = ROCPROFILER_RECORD_OF_TRACING;
    headers[i].kind = (uint32_t)((done[i].is_copy ? kCopyId : kKernelId) + Shift());
    headers[i].payload = done[i].record;
    pointers[i] = &headers[i];
  }
  if (count) {
    has((struct rocprofiler_handle){takes_in}, (struct rocprofiler_handle){5}, pointers, count,
        has_data, lost);
  }
  return NULL;
}

API int rocprofiler_flush_buffer(struct rocprofiler_handle buffer) {
  pthread_t thread;
  if (buffer.value != 5 || !has || pthread_create(&thread, NULL, Deliver, NULL) != 0) return 1;
  return pthread_join(thread, NULL);
}

static void Record(int is_copy, uint32_t operation, uint64_t thread, uint64_t queue,
                   uint64_t kernel, uint64_t length_ns, uint64_t bytes) {
  uint64_t number = 0;
  if (!(is_copy ? takes_copies : takes_kernels) || !is_on[takes_in]) return;
  asks(thread, (struct rocprofiler_handle){takes_in}, is_copy ? 10 : 11, (int32_t)operation, 1,
       &number, NULL);
  pthread_mutex_lock(&mutex);
  if (getenv("FAKE_ROCM_LOSES")) dropped = 7;
  uint64_t* const busy = &busy_until[queue % 64];
  const uint64_t soon = Now() + 2000;
  const uint64_t begin = *busy > soon ? *busy : soon;
  *busy = begin + length_ns;
  struct pending* const made = pending_count < kPendingMax ? &pending[pending_count++] : NULL;
  if (!made) dropped++;
  if (made) {
    const uint64_t size = is_copy ? 96 : 184;
    const uint32_t kind = (uint32_t)((is_copy ? kCopyId : kKernelId) + Shift());
    const uint64_t own = is_copy && operation == ROCPROFILER_DEVICE_TO_HOST ? kOtherAgent : kGpu1;
    const uint64_t other = own == kGpu1 ? kOtherAgent : kGpu1;
    memset(made, 0, sizeof *made);
    made->is_copy = is_copy;
    made->end = *busy;
#define PUT(place, value) memcpy(made->record + (place), &(value), sizeof(value))
    PUT(0, size);
    PUT(8, kind);
    PUT(12, operation);
    PUT(24, number);
    PUT(32, thread);
    PUT(40, begin);
    PUT(48, *busy);
    if (is_copy) {
      PUT(56, own);
      PUT(64, other);
      PUT(72, bytes);
    } else {
      const uint64_t info_size = 72;
      PUT(56, info_size);
      PUT(64, own);
      PUT(72, queue);
      PUT(80, kernel);
    }
#undef PUT
  }
  pthread_mutex_unlock(&mutex);
}

static void Kernel(uint64_t kernel, uint64_t queue, uint64_t length_ns) {
  Record(0, 2, (uint64_t)syscall(SYS_gettid), queue, kernel, length_ns, 0);
}
static void Copy(uint32_t operation, uint64_t bytes) {
  Record(1, operation, (uint64_t)syscall(SYS_gettid), operation, 0, 1000 + bytes / 10, bytes);
}

static void SayKernel(uint64_t id, const char* name) {
  uint64_t payload[8] = {sizeof payload, id, 1, (uint64_t)(uintptr_t)name};
  uint64_t user = 0;
  const uint64_t kind = (uint64_t)(kCodeId + Shift());
  if (!says || !is_on[says_in]) return;
  for (uint64_t phase = 1; phase <= 2; phase++) {
    if (phase == 2) payload[3] = (uint64_t)(uintptr_t) "unloaded"; /* is not to be taken */
    if (version < 10000) {
      const struct old_record record = {
          {says_in, 1, 0, 0, kind | 2ull << 32, phase, (uint64_t)(uintptr_t)payload}};
      ((old_says)(void*)says)(record, &user, NULL);
    } else {
      const struct rocprofiler_callback_record record = {
          {says_in, 1, 0, 0, 0, kind | 2ull << 32, phase, (uint64_t)(uintptr_t)payload}};
      says(record, &user, NULL);
    }
  }
}

static void End(void) {
  if (tool && tool->finalize) tool->finalize(tool->data);
}
static void EndClient(void) {}

/* Each one once. */
static void Configure(void* library) {
  static configure known[32];
  static size_t count;
  configure found = NULL;
  *(void**)&found = dlsym(library, "rocprofiler_configure");
  for (size_t i = 0; i < count; i++) {
    if (known[i] == found) return;
  }
  if (!found || count == 32) return;
  known[count++] = found;
  struct rocprofiler_tool* const one = found(version, "fake", 0, NULL);
  if (!one || one->size != sizeof *one) return;
  tool = one;
  is_initializing = 1;
  if (tool->initialize(EndClient, tool->data) != 0) tool = NULL;
  is_initializing = 0;
  atexit(End);
}

/* In all that is loaded, also for somebody alone. */
static void FindTools(void) {
  struct link_map* object = NULL;
  Configure(RTLD_DEFAULT);
  if (dlinfo(dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD), RTLD_DI_LINKMAP, &object) != 0) return;
  for (; object; object = object->l_next) {
    void* const library = *object->l_name ? dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (library) Configure(library);
  }
}

API int rocprofiler_set_api_table(const char* name, uint64_t library_version, uint64_t instance,
                                  void** tables, uint64_t count) {
  (void)library_version, (void)instance;
  const char* const given = getenv("FAKE_ROCM_VERSION");
  const char* const sets = getenv("ROCPROFILER_SET_ROCPROFILER_REGISTER_LIBRARY");
  if (strcmp(name, "hsa") != 0 || count != 1) return 1;
  if (!sets || strcmp(sets, "0") != 0) setenv("ROCPROFILER_REGISTER_LIBRARY", "/nowhere", 1);
  version = given ? (uint32_t)atoi(given) : 10100;
  FindTools();
  SayKernel(FAKE_MULTIPLY_0, "multiply_0.kd");
  SayKernel(FAKE_MULTIPLY_1, "multiply_1.kd");
  SayKernel(FAKE_ADD_0, "add_0.kd");
  SayKernel(FAKE_ADD_1, "_Z5add_1Pfi.kd");
  struct fake_table* const table = tables[0];
  table->kernel = Kernel;
  table->copy = Copy;
  return 0;
}

#else

int rocprofiler_register_library_api_table(const char* name, void** tables);

static struct fake_table table;

static void Register(void) {
  void* tables[] = {&table};
  rocprofiler_register_library_api_table("hsa", tables);
}
API int hsa_init(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  return pthread_once(&once, Register);
}
API void fake_kernel(uint64_t kernel, uint64_t queue, uint64_t length_ns) {
  if (table.kernel) table.kernel(kernel, queue, length_ns);
}
API void fake_copy(uint32_t operation, uint64_t bytes) {
  if (table.copy) table.copy(operation, bytes);
}

#endif

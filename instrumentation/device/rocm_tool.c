// SPDX-License-Identifier: Apache-2.0
/* libsyncline_rocm_tool.so: a tool of ROCm's rocprofiler-sdk. It sleeps on the gate, in a thread of
 * its own; while a recording runs it has the SDK say which kernels and copies the program asks for,
 * and when the device did them.
 *
 * ROCm's runtime tells rocprofiler-register of itself as it initialises, and that looks for a
 * function rocprofiler_configure, and then for the SDK: where it finds the one alone, it aborts the
 * program. So the function is shown only once the SDK is loaded: the one beside the program's
 * rocprofiler-register, never another ROCm's. A process with a framework that has a profiler of its
 * own is left to that, and one with a tool of the older kinds to that tool.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "instrumentation/block/block.h"
#include "instrumentation/block/watch_thread.h"
#include "instrumentation/device/device.h"
#include "instrumentation/device/device_clock.h"
#include "instrumentation/device/rocm.h"
#include "instrumentation/device/rocm_names.h"
#include "instrumentation/device/rocprofiler.h"

#define SOURCE "rocprofiler-sdk"
#define LEFT SOURCE ": left to the profiler of the program's framework"
#define MS 1000000u
#define FLUSH_NS (20u * MS) /* what is done is recorded so much later, or lost at the end */
/* The SDK has two, and beside each 16 times as much, all of which it writes whenever it has handed
 * over what is in one. */
#define BUFFER_BYTES (128u << 10)
#define KINDS_MAX 64
#define TEXT_BYTES 64
#define LAUNCHES_OF_ROCM (1ull << 48) /* beyond those of the other sources */

static struct rocprofiler sdk;
static int shown;                               /* to ROCm: the SDK is there, and ours */
static struct rocprofiler_handle names_context; /* always on: which kernels there are */
static struct rocprofiler_handle context;       /* on while a recording runs */
static struct rocprofiler_handle buffer;
static uint32_t kernel_kind;
static uint32_t copy_kind;
static uint32_t code_kind;
static uint32_t clocks = DEVICE_ALL_CLOCKS; /* of device_clock.h: those that the SDK may stamp by */
static uint64_t opened_ns;                  /* the trace clock: when the recording began */

/* Guarded by `mutex`. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int waits;           /* ROCm's runtime has not asked for a tool */
static const char* absence; /* why nothing is heard */
static int on;
static int stopped; /* the process ends; atomic */
static pid_t owner; /* in which our thread runs */

/* ---- what the SDK calls */

/* In the calling thread: its call is known by the number that the work will have. */
static int Asks(uint64_t thread, struct rocprofiler_handle of, int kind, int32_t operation,
                uint64_t correlation, uint64_t* number, void* data) {
  static uint64_t last_launch = LAUNCHES_OF_ROCM;
  (void)of, (void)operation, (void)correlation, (void)data;
  *number = 0;
  /* A thread of the runtime's asks for somebody else: for whom is not known. */
  if (thread != (uint64_t)syscall(SYS_gettid)) return 0;
  const uint64_t launch = __atomic_add_fetch(&last_launch, 1, __ATOMIC_RELAXED);
  const char* const name = kind == ROCPROFILER_REQUEST_OF_COPY ? "copy" : "kernel";
  if (device_launch(launch, name)) *number = launch;
  return 0;
}

static void HasCode(struct rocprofiler_callback_record record, uint64_t* user, void* data) {
  (void)user, (void)data;
  uint64_t kernel = 0;
  const char* const name = RocprofilerKernelOf(&record, code_kind, &kernel);
  if (name) RocmNamesAdd(kernel, name);
}

/* A copy is of the GPU at one of its ends, and the SDK does not say which of its engines made it.
 */
static void CopyIsDone(const struct rocprofiler_record* record, struct device_work* work) {
  static const char* const kNames[] = {"copy", "copy on the host", "copy host to device",
                                       "copy device to host", "copy device to device"};
  static const char* const kQueues[] = {"copies", "copies on the host", "copies to the device",
                                        "copies to the host", "copies between devices"};
  const uint32_t kind = record->operation <= ROCPROFILER_DEVICE_TO_DEVICE ? record->operation : 0;
  work->kind = SYNCLINE_DEVICE_COPY;
  work->name = kNames[kind];
  work->queue = kQueues[kind];
  work->bytes = record->bytes;
}

static uint64_t RecordIsRead(const struct rocprofiler_header* header) {
  const int is_copy = header->kind == copy_kind;
  struct rocprofiler_record record;
  if (header->category != ROCPROFILER_RECORD_OF_TRACING ||
      (!is_copy && header->kind != kernel_kind)) {
    return 0;
  }
  const uint32_t by = __atomic_load_n(&clocks, __ATOMIC_RELAXED);
  if (!RocprofilerRead(header, is_copy, &record) || record.begin == 0 ||
      record.end < record.begin || by == 0) {
    return 1;
  }
  const struct device_placed at = device_clock_place(by, record.begin);
  const uint64_t end_ns = at.ns + (record.end - record.begin);
  if (end_ns < __atomic_load_n(&opened_ns, __ATOMIC_RELAXED)) return 0; /* before the recording */
  char device[TEXT_BYTES];
  char queue[TEXT_BYTES];
  struct device_work work = {.device = device,
                             .queue = queue,
                             .kind = SYNCLINE_DEVICE_KERNEL,
                             .launch = record.external,
                             .begin_ns = at.ns,
                             .end_ns = end_ns,
                             .bound_ns = at.bound_ns};
  const uint64_t agent =
      is_copy && record.operation == ROCPROFILER_DEVICE_TO_HOST ? record.from_agent : record.agent;
  if (is_copy && record.operation == ROCPROFILER_HOST_TO_HOST) {
    snprintf(device, sizeof device, "host");
  } else {
    RocmNamesDevice(agent, device, sizeof device);
  }
  if (is_copy) {
    CopyIsDone(&record, &work);
    device_work(&work);
    return 0;
  }
  RocmNamesQueue(record.agent, record.queue, queue, sizeof queue);
  char* const name = RocmNamesKernel(record.kernel);
  work.name = name;
  device_work(&work);
  free(name);
  return 0;
}

static void Has(struct rocprofiler_handle of, struct rocprofiler_handle from,
                struct rocprofiler_header** headers, size_t count, void* data, uint64_t dropped) {
  static uint64_t dropped_before; /* the SDK's count is of all since its begin */
  (void)of, (void)from, (void)data;
  uint64_t lost = dropped - __atomic_exchange_n(&dropped_before, dropped, __ATOMIC_RELAXED);
  for (size_t i = 0; i < count; i++) lost += RecordIsRead(headers[i]);
  device_lost(SOURCE, lost);
}

static int HasAgents(int version, const void** agents, size_t count, void* data) {
  (void)version, (void)data;
  for (size_t i = 0; i < count; i++) {
    const struct rocprofiler_agent* const agent = agents[i];
    if (agent->type == ROCPROFILER_GPU) RocmNamesAddDevice(agent->id);
  }
  return 0;
}

/* ---- the services, as the SDK initialises */

/* 0: there is no kind of that name; their numbers may differ between versions. */
static uint32_t KindOf(int (*name_of)(int, const char**, uint64_t*), const char* wanted) {
  for (int kind = 1; kind < KINDS_MAX; kind++) {
    const char* name = NULL;
    uint64_t length = 0;
    if (name_of(kind, &name, &length) == 0 && name && strcmp(name, wanted) == 0) {
      return (uint32_t)kind;
    }
  }
  return 0;
}

/* NULL, or why not. */
static const char* Find(void* library) {
#define FIND(member, name)                                          \
  do {                                                              \
    *(void**)&sdk.member = dlsym(library, "rocprofiler_" name);     \
    if (!sdk.member) return SOURCE ": it has no rocprofiler_" name; \
  } while (0)
  FIND(create_context, "create_context");
  FIND(start, "start_context");
  FIND(stop, "stop_context");
  FIND(create_buffer, "create_buffer");
  FIND(flush, "flush_buffer");
  FIND(buffer_kind, "configure_buffer_tracing_service");
  FIND(callback_kind, "configure_callback_tracing_service");
  FIND(request, "configure_external_correlation_id_request_service");
  FIND(buffer_kind_name, "query_buffer_tracing_kind_name");
  FIND(callback_kind_name, "query_callback_tracing_kind_name");
  FIND(query_agents, "query_available_agents");
  FIND(timestamp, "get_timestamp");
#undef FIND
  return NULL;
}

static const char* Configure(void) {
  kernel_kind = KindOf(sdk.buffer_kind_name, "KERNEL_DISPATCH");
  copy_kind = KindOf(sdk.buffer_kind_name, "MEMORY_COPY");
  code_kind = KindOf(sdk.callback_kind_name, "CODE_OBJECT");
  if (!kernel_kind || !copy_kind || !code_kind) return SOURCE ": it records no kernels";
  if (sdk.create_context(&names_context) != 0 || sdk.create_context(&context) != 0 ||
      sdk.callback_kind(names_context, (int)code_kind, NULL, 0, HasCode, NULL) != 0 ||
      sdk.create_buffer(context, BUFFER_BYTES, BUFFER_BYTES / 2, ROCPROFILER_LOSSLESS, Has, NULL,
                        &buffer) != 0 ||
      sdk.buffer_kind(context, (int)kernel_kind, NULL, 0, buffer) != 0 ||
      sdk.buffer_kind(context, (int)copy_kind, NULL, 0, buffer) != 0 ||
      sdk.request(context, NULL, 0, Asks, NULL) != 0 ||
      sdk.query_agents(ROCPROFILER_AGENT_VERSION, HasAgents, sizeof(struct rocprofiler_agent),
                       NULL) != 0 ||
      sdk.start(names_context) != 0) {
    return SOURCE ": it refuses to serve";
  }
  return NULL;
}

/* ---- on and off */

/* By which clocks the SDK can stamp: nobody says. */
static void CompareClocks(void) {
  struct device_times before, after;
  uint64_t now = 0;
  device_times_now(&before);
  if (sdk.timestamp(&now) != 0) return;
  device_times_now(&after);
  __atomic_and_fetch(&clocks, device_clocks_of(now, &before, &after), __ATOMIC_RELAXED);
}

static void Open(void) {
  const int theirs = device_is_of_framework();
  const char* why = theirs ? LEFT : absence;
  if (!why) {
    CompareClocks();
    __atomic_store_n(&opened_ns, syncline_clock_ns(), __ATOMIC_RELAXED);
    if (sdk.start(context) != 0) why = SOURCE ": it does not begin to record";
  }
  on = !why;
  device_tracing(why ? why : SOURCE, on       ? SYNCLINE_DEVICE_TRACED
                                     : theirs ? SYNCLINE_DEVICE_LEFT_TO_FRAMEWORK
                                              : SYNCLINE_DEVICE_NOT_TRACED);
}

static int Stopped(void) { return __atomic_load_n(&stopped, __ATOMIC_ACQUIRE); }

static void* Watch(void* unused) {
  (void)unused;
  prctl(PR_SET_NAME, "syncline-rocm");
  uint32_t acted = 0;
  int is_opened = 0;
  for (;;) {
    const volatile uint32_t* gate = syncline_gate;
    const uint32_t value = *gate;
    pthread_mutex_lock(&mutex);
    if (value != acted) {
      if (on && !Stopped()) sdk.stop(context);
      if (on && !Stopped()) sdk.flush(buffer);
      on = is_opened = 0;
      device_follow();
      acted = value;
    }
    if (value != 0 && !is_opened && !waits && !Stopped()) {
      Open();
      is_opened = 1;
    }
    if (on && !Stopped()) CompareClocks();
    if (on && !Stopped()) sdk.flush(buffer);
    if (Stopped()) break;
    const uint64_t sleep_ns = value != 0 && (on || waits) ? FLUSH_NS : 0;
    pthread_mutex_unlock(&mutex);
    SynclineGateWait(gate, value, sleep_ns);
  }
  pthread_mutex_unlock(&mutex);
  return NULL;
}

/* In the child: our thread is not there, and may have held the locks. */
static void IsForked(void) {
  mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  on = 0;
  RocmNamesAreForked();
}

/* In this process; again in a forked child that uses ROCm itself. `may_come`: the runtime has not
 * asked for a tool, and may. */
static void StartWatching(const char* why, int may_come) {
  pthread_mutex_lock(&mutex);
  absence = why;
  waits = may_come;
  if (owner != getpid() && device_start() == 0 && SynclineStartThread(Watch) == 0) {
    owner = getpid();
  }
  pthread_mutex_unlock(&mutex);
}

static int Initialize(void (*end)(void), void* data) {
  (void)end, (void)data;
  StartWatching(Configure(), 0);
  return 0;
}

/* The SDK ends: the rest of what was done, and it is not called any more. */
static void Finalize(void* data) {
  struct timespec until;
  (void)data;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 1;
  if (getpid() != owner) return;
  __atomic_store_n(&stopped, 1, __ATOMIC_RELEASE);
  if (pthread_mutex_timedlock(&mutex, &until) != 0) return;
  if (on) sdk.flush(buffer);
  pthread_mutex_unlock(&mutex);
}

/* What the SDK looks for. NULL: it goes on without us. */
SYNCLINE_EXPORT struct rocprofiler_tool* rocprofiler_configure(uint32_t version, const char* name,
                                                               uint32_t priority, void* client) {
  static struct rocprofiler_tool tool = {sizeof tool, Initialize, Finalize, NULL};
  (void)name, (void)priority, (void)client; /* what `client` is, differs between versions */
  /* Of another tool's: the SDK looks into all that is loaded. Why not is said already. */
  if (!shown) return NULL;
  if (version < ROCPROFILER_OLDEST) {
    StartWatching(SOURCE ": it is older than 0.5 (ROCm 6.3)", 0);
    return NULL;
  }
  return &tool;
}

/* ---- before the program's main */

static int IsSet(const char* name) {
  const char* const value = getenv(name);
  return value && *value;
}

/* It logs to the standard error, from the level on that it finds as it is loaded; and it passes the
 * level on by variables of the library that it logs with. */
static void* LoadQuietly(const char* path) {
  static const char* const kNames[] = {"ROCPROFILER_LOG_LEVEL", "GLOG_minloglevel",
                                       "GLOG_logtostderr",      "GLOG_alsologtostderr",
                                       "GLOG_stderrthreshold",  "GLOG_v"};
  enum { kCount = sizeof kNames / sizeof *kNames };
  int was_set[kCount];
  for (int i = 0; i < kCount; i++) was_set[i] = getenv(kNames[i]) != NULL;
  if (!was_set[0]) setenv(kNames[0], "fatal", 1);
  void* const library = dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
  for (int i = 0; i < kCount; i++) {
    if (!was_set[i] && getenv(kNames[i])) unsetenv(kNames[i]);
  }
  return library;
}

#define NAMED_SDK "ROCPROFILER_REGISTER_LIBRARY"

/* The user wants another one, which ours would keep from being taken. */
static int AnotherIsNamed(const char* path) {
  if (!IsSet(NAMED_SDK)) return 0;
  char* const theirs = realpath(getenv(NAMED_SDK), NULL);
  char* const ours = realpath(path, NULL);
  const int same = theirs && ours && strcmp(theirs, ours) == 0;
  free(theirs);
  free(ours);
  return !same;
}

/* NULL: it cannot be loaded. */
static void* LoadSdk(const char* path) {
  /* Newer ones take a program's queues in hand in another way, by which a packet can be lost when a
   * context is started or stopped while the program launches. */
  setenv("ROCPROFILER_QUEUE_INTERPOSITION", "0", 0);
  /* Other tools of the SDK's are to have their log and their variables. */
  if (IsSet("ROCP_TOOL_LIBRARIES") || IsSet(NAMED_SDK)) {
    return dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
  }
  /* Else the SDK sets ROCPROFILER_REGISTER_LIBRARY, by which programs below this one would have to
   * take it, too. */
  setenv("ROCPROFILER_SET_ROCPROFILER_REGISTER_LIBRARY", "0", 0);
  return LoadQuietly(path);
}

/* ROCm's runtime loads tools of the older kinds only where it finds none of this one. */
static int HasOlderTool(void) {
  return IsSet("HSA_TOOLS_LIB") || dlsym(RTLD_DEFAULT, "HSA_AMD_TOOL_PRIORITY");
}

/* NULL: the SDK is loaded for all to see, and so are we. Else why not. */
static const char* Join(const char* registry) {
  if (HasOlderTool()) return SOURCE ": another tool uses ROCm's runtime (HSA_TOOLS_LIB)";
  if (!registry) return SOURCE ": the program's ROCm has no rocprofiler-register";
  char path[4096];
  const int length = (int)(strrchr(registry, '/') - registry);
  const int written = snprintf(path, sizeof path, "%.*s/librocprofiler-sdk.so", length, registry);
  if (written <= 0 || (size_t)written >= sizeof path) return SOURCE ": its path is too long";
  if (AnotherIsNamed(path)) return SOURCE ": another one is named (" NAMED_SDK ")";
  void* const library = LoadSdk(path);
  if (!library) return SOURCE ": no librocprofiler-sdk.so can be loaded beside the program's ROCm";
  const char* const why = Find(library);
  Dl_info own;
  if (why) return why;
  if (!dladdr((void*)&Join, &own) || !dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL)) {
    return SOURCE ": our own library cannot be shown to it";
  }
  shown = 1;
  return NULL;
}

SYNCLINE_EXPORT syncline_rocm_start_function syncline_rocm_start;
void syncline_rocm_start(const char* registry) {
  const char* const why = device_is_of_framework() ? LEFT : Join(registry);
  pthread_atfork(NULL, NULL, IsForked);
  StartWatching(why, why == NULL);
}

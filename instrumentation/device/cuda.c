// SPDX-License-Identifier: Apache-2.0
/* libsyncline_cuda.so: the CUDA driver loads it as the program initialises it
 * (CUDA_INJECTION64_PATH). It then sleeps on the gate, in a thread of its own. While a recording
 * runs it has CUPTI say which kernels, copies and fills the program launches, and when the device
 * did them.
 *
 * CUPTI serves one tool, and PyTorch asks for it once in the life of a process: where a framework
 * is loaded that has a profiler of its own, nothing is asked of CUPTI at all.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "instrumentation/block/block.h"
#include "instrumentation/block/watch_thread.h"
#include "instrumentation/device/cupti.h"
#include "instrumentation/device/device.h"

#define SOURCE "CUPTI"
#define MS 1000000u
#define FLUSH_NS (20u * MS) /* what is done is recorded so much later, or lost at the end */
#define BUFFER_BYTES (1u << 20)
#define CALLBACKS_MAX 4096u
#define NEWEST_CUDA 19 /* versions that are looked for */
#define OLDEST_CUDA 11
#define TEXT_BYTES 64

/* Guarded by `mutex`, but for what CUPTI calls. */
static struct cupti cupti;
static void* subscriber;
static int registered; /* CUPTI has our clock and buffers: once in the life of a process */
static int on;
static int stopped; /* the process ends */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pid_t owner;

/* ---- what CUPTI calls */

static void Wants(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  *buffer = malloc(BUFFER_BYTES);
  *bytes = *buffer ? BUFFER_BYTES : 0;
  *most_records = 0;
}

static const char* NameOfCopy(uint8_t kind) {
  switch (kind) {
    case 1:
      return "copy host to device";
    case 2:
      return "copy device to host";
    case 8:
      return "copy on the device";
    case 10:
      return "copy to another device";
    default:
      return "copy";
  }
}

/* Of a record. What has no name of its own is written into `text`. */
static const char* NameOf(uint32_t kind, const struct cupti_record* read, char text[TEXT_BYTES]) {
  switch (kind) {
    case CUPTI_KERNEL:
      return read->name;
    case CUPTI_COPY:
      return NameOfCopy(read->copy_kind);
    case CUPTI_PEER_COPY:
      snprintf(text, TEXT_BYTES, "copy GPU %u to GPU %u", read->from, read->to);
      return text;
    default:
      return "fill";
  }
}

static enum syncline_device_kind KindOf(uint32_t kind) {
  if (kind == CUPTI_KERNEL) return SYNCLINE_DEVICE_KERNEL;
  return kind == CUPTI_FILL ? SYNCLINE_DEVICE_FILL : SYNCLINE_DEVICE_COPY;
}

static void Has(void* context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t filled) {
  (void)context;
  (void)stream;
  (void)bytes;
  uint8_t* record = NULL;
  uint64_t untimed = 0;
  while (buffer && cupti.next_record(buffer, filled, &record) == 0) {
    struct cupti_record read;
    if (!CuptiRead(record, &read)) continue;
    if (read.begin_ns == 0 || read.end_ns < read.begin_ns) {
      untimed++;
      continue;
    }
    char device[TEXT_BYTES];
    char queue[TEXT_BYTES];
    char name[TEXT_BYTES];
    snprintf(device, sizeof device, "GPU %u", read.device);
    snprintf(queue, sizeof queue, "stream %u", read.stream);
    const uint32_t kind = CuptiKind(record);
    device_work(&(struct device_work){.device = device,
                                      .queue = queue,
                                      .name = NameOf(kind, &read, name),
                                      .kind = KindOf(kind),
                                      .launch = read.correlation,
                                      .begin_ns = read.begin_ns,
                                      .end_ns = read.end_ns,
                                      .bytes = read.bytes});
  }
  device_lost(SOURCE, untimed);
  free(buffer);
}

/* In the thread that calls the driver. */
static void Calls(void* user, int domain, uint32_t id, const struct cupti_callback_data* data) {
  (void)user;
  (void)id;
  if (domain != CUPTI_DRIVER_API || data->site != CUPTI_ENTER) return;
  device_launch(data->correlation, data->symbol ? data->symbol : data->function);
}

/* ---- finding it */

/* The folder of the program's runtime library. */
static int TakeFolder(struct dl_phdr_info* object, size_t bytes, void* folder) {
  (void)bytes;
  const char* name = strrchr(object->dlpi_name, '/');
  if (!name || strncmp(name, "/libcudart.so", 13) != 0) return 0;
  const size_t length = (size_t)(name - object->dlpi_name);
  if (length >= 4000) return 0;
  memcpy(folder, object->dlpi_name, length);
  ((char*)folder)[length] = 0;
  return 1;
}

static void* OpenLibrary(int newest) {
  static const char* const kBeside[] = {"%s/libcupti.so.%d",
                                        "%s/../extras/CUPTI/lib64/libcupti.so.%d",
                                        "%s/../../cuda_cupti/lib/libcupti.so.%d"};
  char folder[4096] = "";
  dl_iterate_phdr(TakeFolder, folder);
  for (int version = newest; version >= OLDEST_CUDA; version--) {
    char path[8192];
    snprintf(path, sizeof path, "libcupti.so.%d", version);
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; !library && *folder && i < sizeof kBeside / sizeof *kBeside; i++) {
      snprintf(path, sizeof path, kBeside[i], folder, version);
      library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    static const char* const kUsual[] = {"/usr/local/cuda/extras/CUPTI/lib64",
                                         "/usr/local/cuda/lib64"};
    for (size_t i = 0; !library && i < sizeof kUsual / sizeof *kUsual; i++) {
      snprintf(path, sizeof path, "%s/libcupti.so.%d", kUsual[i], version);
      library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    if (library) return library;
  }
  return NULL;
}

/* NULL: all is there. Else what is not. */
static const char* Find(void) {
  if (cupti.dropped) return NULL; /* the last that is found */
  int (*driver_version)(int*) = NULL;
  *(void**)&driver_version = dlsym(RTLD_DEFAULT, "cuDriverGetVersion");
  int version = 0;
  /* No newer one than the driver: it would refuse. */
  const int newest = driver_version && driver_version(&version) == 0 && version >= 1000
                         ? version / 1000
                         : NEWEST_CUDA;
  void* library = OpenLibrary(newest);
  if (!library) return SOURCE ": no libcupti.so is found (LD_LIBRARY_PATH)";
#define FIND(member, name)                                \
  do {                                                    \
    *(void**)&cupti.member = dlsym(library, name);        \
    if (!cupti.member) return SOURCE ": it has no " name; \
  } while (0)
  FIND(subscribe, "cuptiSubscribe");
  FIND(unsubscribe, "cuptiUnsubscribe");
  FIND(enable_callback, "cuptiEnableCallback");
  FIND(callback_name, "cuptiGetCallbackName");
  FIND(enable, "cuptiActivityEnable");
  FIND(disable, "cuptiActivityDisable");
  FIND(register_callbacks, "cuptiActivityRegisterCallbacks");
  FIND(register_clock, "cuptiActivityRegisterTimestampCallback");
  FIND(next_record, "cuptiActivityGetNextRecord");
  FIND(flush, "cuptiActivityFlushAll");
  FIND(dropped, "cuptiActivityGetNumDroppedRecords");
#undef FIND
  return NULL;
}

/* ---- on and off */

static const uint32_t kKinds[] = {CUPTI_KERNEL, CUPTI_COPY, CUPTI_FILL, CUPTI_PEER_COPY};

/* Calls that give a device work, by their names: their numbers differ between versions. */
static void TakeCalls(void) {
  static const char* const kPrefixes[] = {"cuLaunch", "cuMemcpy", "cuMemset", "cuGraphLaunch"};
  static const char kOfHost[] = "cuLaunchHostFunc";
  for (uint32_t id = 1; id < CALLBACKS_MAX; id++) {
    const char* name = NULL;
    if (cupti.callback_name(CUPTI_DRIVER_API, id, &name) != 0 || !name) continue;
    for (size_t i = 0; i < sizeof kPrefixes / sizeof *kPrefixes; i++) {
      if (strncmp(name, kPrefixes[i], strlen(kPrefixes[i])) != 0) continue;
      if (strncmp(name, kOfHost, sizeof kOfHost - 1) == 0) continue;
      cupti.enable_callback(1, subscriber, CUPTI_DRIVER_API, id);
    }
  }
}

/* NULL, or why not. */
static const char* Begin(void) {
  const char* absence = Find();
  if (absence) return absence;
  const int result = cupti.subscribe(&subscriber, Calls, NULL);
  if (result == CUPTI_BUSY) return SOURCE ": another tool uses it";
  if (result != 0) return SOURCE ": it refuses to serve";
  if (!registered) {
    if (cupti.register_clock(syncline_clock_ns) != 0 || cupti.register_callbacks(Wants, Has) != 0) {
      cupti.unsubscribe(subscriber);
      return SOURCE ": it does not take our clock";
    }
    registered = 1;
  }
  TakeCalls();
  for (size_t i = 0; i < sizeof kKinds / sizeof *kKinds; i++) {
    if (cupti.enable(kKinds[i]) == 0) continue;
    while (i > 0) cupti.disable(kKinds[--i]);
    cupti.unsubscribe(subscriber);
    return SOURCE ": it records no kernels";
  }
  return NULL;
}

static void Flush(void) {
  size_t count = 0;
  cupti.flush(0);
  if (cupti.dropped(NULL, 0, &count) == 0) device_lost(SOURCE, count);
}

static void End(void) {
  on = 0;
  for (size_t i = 0; i < sizeof kKinds / sizeof *kKinds; i++) cupti.disable(kKinds[i]);
  cupti.flush(1);
  cupti.unsubscribe(subscriber);
}

/* The gate has opened. */
static void Open(void) {
  const int theirs = device_is_of_framework();
  const char* absence =
      theirs ? SOURCE ": left to the profiler of the program's framework" : Begin();
  on = !absence;
  device_tracing(absence ? absence : SOURCE, on       ? SYNCLINE_DEVICE_TRACED
                                             : theirs ? SYNCLINE_DEVICE_LEFT_TO_FRAMEWORK
                                                      : SYNCLINE_DEVICE_NOT_TRACED);
}

static void* Watch(void* unused) {
  (void)unused;
  prctl(PR_SET_NAME, "syncline-cuda");
  uint32_t acted = 0;
  for (;;) {
    const volatile uint32_t* gate = syncline_gate;
    const uint32_t value = *gate;
    pthread_mutex_lock(&mutex);
    if (stopped) break;
    if (value != acted) {
      if (on) End();
      device_follow();
      if (value != 0) Open();
      acted = value;
    }
    if (on) Flush();
    const uint64_t sleep_ns = on ? FLUSH_NS : 0;
    pthread_mutex_unlock(&mutex);
    SynclineGateWait(gate, value, sleep_ns);
  }
  pthread_mutex_unlock(&mutex);
  return NULL;
}

/* The rest of what was done; and CUPTI, which ends too, is not called any more. */
static void AtExit(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 1;
  if (getpid() != owner || pthread_mutex_timedlock(&mutex, &until) != 0) return;
  stopped = 1;
  if (on) cupti.flush(1);
  pthread_mutex_unlock(&mutex);
}

/* What the driver calls. 1 whatever happens: the program is to go on. */
SYNCLINE_EXPORT int InitializeInjection(void) {
  static int done;
  if (__atomic_exchange_n(&done, 1, __ATOMIC_ACQ_REL) || device_start() != 0) return 1;
  owner = getpid();
  if (SynclineStartThread(Watch) == 0) atexit(AtExit);
  return 1;
}

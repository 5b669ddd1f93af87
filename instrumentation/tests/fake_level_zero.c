// SPDX-License-Identifier: Apache-2.0
/* A driver for Level Zero's loader (ZE_ENABLE_ALT_DRIVERS), by its public interface: there is no
 * GPU. One device with a timer of its own: 19.2 MHz, 40 ppm fast, whose 24 bits in a kernel's
 * stamps turn every 0.9 s. A list of commands, and a queue, do one after
 * the other; how long a kernel takes is in its name ("multiply_0:300": 300 us).
 *
 * It keeps to the interface as a driver may: an event of a pool without timestamps has none, and
 * who destroys an event that is not signalled, asks for one that is destroyed, or for one that the
 * host is not to see, ends the process.
 */
#define _GNU_SOURCE
#include <level_zero/ze_api.h>
#include <level_zero/ze_ddi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FAST 1.00004
#define HZ 19200000
#define KERNEL_BITS 24
#define COPY_US 20

struct event_pool {
  void* dispatch; /* the loader may read the first word of a handle */
  ze_event_pool_flags_t flags;
};
struct event {
  void* dispatch;
  const struct event_pool* pool;
  int alive;
  int is_set;     /* something will signal it, or has */
  uint64_t begin; /* ticks */
  uint64_t end;
};
struct kernel {
  void* dispatch;
  char name[64];
  uint64_t us;
};
struct command {
  uint64_t us;
  struct event* signal;
};
struct list {
  void* dispatch;
  int immediate;
  uint64_t busy_until; /* ticks */
  struct command commands[64];
  size_t count;
};

static void* driver[1];
static void* device[1];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static uint64_t Ticks(void) {
  static uint64_t began_ns;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  if (!began_ns) began_ns = ns;
  const uint64_t turn = 1ull << KERNEL_BITS;
  return turn - HZ / 4 + (uint64_t)((double)(ns - began_ns) * 1e-9 * HZ * FAST);
}

static uint64_t TicksOf(uint64_t us) { return (uint64_t)((double)us * 1e-6 * HZ * FAST); }

static void Check(int is_right, const char* what) {
  if (is_right) return;
  fprintf(stderr, "fake_level_zero: %s\n", what);
  abort();
}

static struct event* Alive(ze_event_handle_t handle) {
  struct event* event = (struct event*)handle;
  Check(event && event->alive, "an event that is not");
  return event;
}

static void Do(struct list* on, const struct command* command) {
  const uint64_t now = Ticks();
  const uint64_t begin = on->busy_until > now ? on->busy_until : now;
  on->busy_until = begin + TicksOf(command->us);
  if (!command->signal) return;
  command->signal->begin = begin;
  command->signal->end = on->busy_until;
  command->signal->is_set = 1;
}

static ze_result_t Append(ze_command_list_handle_t handle, uint64_t us, ze_event_handle_t signal) {
  struct list* list = (struct list*)handle;
  const struct command command = {us, signal ? Alive(signal) : NULL};
  pthread_mutex_lock(&mutex);
  if (list->immediate) {
    Do(list, &command);
  } else {
    Check(list->count < 64, "too many commands");
    list->commands[list->count++] = command;
  }
  pthread_mutex_unlock(&mutex);
  return ZE_RESULT_SUCCESS;
}

static int IsDone(struct event* event) {
  pthread_mutex_lock(&mutex);
  const int is_done = event->is_set && event->end <= Ticks();
  pthread_mutex_unlock(&mutex);
  return is_done;
}

/* ---- the interface */

static ze_result_t Init(ze_init_flags_t flags) {
  (void)flags;
  Ticks();
  return ZE_RESULT_SUCCESS;
}
static ze_result_t DriverGet(uint32_t* count, ze_driver_handle_t* drivers) {
  if (drivers && *count) drivers[0] = (ze_driver_handle_t)driver;
  *count = 1;
  return ZE_RESULT_SUCCESS;
}
static ze_result_t DriverVersion(ze_driver_handle_t handle, ze_api_version_t* version) {
  (void)handle;
  *version = ZE_API_VERSION_1_3;
  return ZE_RESULT_SUCCESS;
}
static ze_result_t DeviceGet(ze_driver_handle_t handle, uint32_t* count,
                             ze_device_handle_t* devices) {
  (void)handle;
  if (devices && *count) devices[0] = (ze_device_handle_t)device;
  *count = 1;
  return ZE_RESULT_SUCCESS;
}
static ze_result_t DeviceProperties(ze_device_handle_t handle, ze_device_properties_t* properties) {
  (void)handle;
  const int in_hz = properties->stype == ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2;
  properties->type = ZE_DEVICE_TYPE_GPU;
  properties->timerResolution = in_hz ? HZ : 1000000000 / HZ;
  properties->timestampValidBits = 36;
  properties->kernelTimestampValidBits = KERNEL_BITS;
  strcpy(properties->name, "Fake GPU");
  return ZE_RESULT_SUCCESS;
}
static ze_result_t DeviceTimes(ze_device_handle_t handle, uint64_t* host, uint64_t* ticks) {
  (void)handle;
  *host = 0;
  *ticks = Ticks() & ((1ull << 36) - 1);
  return ZE_RESULT_SUCCESS;
}
static ze_result_t ContextCreate(ze_driver_handle_t handle, const ze_context_desc_t* description,
                                 ze_context_handle_t* context) {
  (void)handle, (void)description;
  *context = calloc(1, sizeof(void*));
  return ZE_RESULT_SUCCESS;
}
static ze_result_t ContextDestroy(ze_context_handle_t context) {
  free(context);
  return ZE_RESULT_SUCCESS;
}
static ze_result_t QueueCreate(ze_context_handle_t context, ze_device_handle_t handle,
                               const ze_command_queue_desc_t* description,
                               ze_command_queue_handle_t* queue) {
  (void)context, (void)handle, (void)description;
  *queue = calloc(1, sizeof(struct list));
  return ZE_RESULT_SUCCESS;
}
static ze_result_t QueueExecute(ze_command_queue_handle_t queue, uint32_t count,
                                ze_command_list_handle_t* lists, ze_fence_handle_t fence) {
  (void)fence;
  pthread_mutex_lock(&mutex);
  for (uint32_t i = 0; i < count; i++) {
    const struct list* list = (struct list*)lists[i];
    for (size_t j = 0; j < list->count; j++) Do((struct list*)queue, &list->commands[j]);
  }
  pthread_mutex_unlock(&mutex);
  return ZE_RESULT_SUCCESS;
}
static ze_result_t QueueSynchronize(ze_command_queue_handle_t queue, uint64_t timeout) {
  (void)timeout;
  while (((struct list*)queue)->busy_until > Ticks()) nanosleep(&(struct timespec){0, 50000}, NULL);
  return ZE_RESULT_SUCCESS;
}
static ze_result_t ListCreate(ze_context_handle_t context, ze_device_handle_t handle,
                              const ze_command_list_desc_t* description,
                              ze_command_list_handle_t* list) {
  (void)context, (void)handle, (void)description;
  *list = calloc(1, sizeof(struct list));
  return ZE_RESULT_SUCCESS;
}
static ze_result_t ListCreateImmediate(ze_context_handle_t context, ze_device_handle_t handle,
                                       const ze_command_queue_desc_t* description,
                                       ze_command_list_handle_t* list) {
  ListCreate(context, handle, NULL, list);
  (void)description;
  ((struct list*)*list)->immediate = 1;
  return ZE_RESULT_SUCCESS;
}
static ze_result_t ListClose(ze_command_list_handle_t list) {
  (void)list;
  return ZE_RESULT_SUCCESS;
}
static ze_result_t ListReset(ze_command_list_handle_t list) {
  ((struct list*)list)->count = 0;
  return ZE_RESULT_SUCCESS;
}
static ze_result_t ListDestroy(ze_command_list_handle_t list) {
  free(list);
  return ZE_RESULT_SUCCESS;
}
static ze_result_t Launch(ze_command_list_handle_t list, ze_kernel_handle_t kernel,
                          const ze_group_count_t* groups, ze_event_handle_t signal, uint32_t count,
                          ze_event_handle_t* waits) {
  (void)count, (void)waits;
  if (!groups) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  return Append(list, ((struct kernel*)kernel)->us, signal);
}
static ze_result_t Copy(ze_command_list_handle_t list, void* to, const void* from, size_t bytes,
                        ze_event_handle_t signal, uint32_t count, ze_event_handle_t* waits) {
  (void)to, (void)from, (void)bytes, (void)count, (void)waits;
  return Append(list, COPY_US, signal);
}
static ze_result_t FillMemory(ze_command_list_handle_t list, void* to, const void* pattern,
                              size_t pattern_bytes, size_t bytes, ze_event_handle_t signal,
                              uint32_t count, ze_event_handle_t* waits) {
  (void)to, (void)pattern, (void)pattern_bytes, (void)bytes, (void)count, (void)waits;
  return Append(list, COPY_US, signal);
}
static ze_result_t PoolCreate(ze_context_handle_t context, const ze_event_pool_desc_t* description,
                              uint32_t count, ze_device_handle_t* devices,
                              ze_event_pool_handle_t* made) {
  (void)context, (void)count, (void)devices;
  struct event_pool* pool = calloc(1, sizeof *pool);
  pool->flags = description->flags;
  *made = (ze_event_pool_handle_t)pool;
  return ZE_RESULT_SUCCESS;
}
static ze_result_t PoolDestroy(ze_event_pool_handle_t pool) {
  free(pool);
  return ZE_RESULT_SUCCESS;
}
static ze_result_t EventCreate(ze_event_pool_handle_t pool, const ze_event_desc_t* description,
                               ze_event_handle_t* made) {
  (void)description;
  struct event* event = calloc(1, sizeof *event);
  event->pool = (struct event_pool*)pool;
  event->alive = 1;
  *made = (ze_event_handle_t)event;
  return ZE_RESULT_SUCCESS;
}
static ze_result_t EventDestroy(ze_event_handle_t handle) {
  struct event* event = Alive(handle);
  Check(!event->is_set || IsDone(event), "an event ends before it is signalled");
  event->alive = 0; /* kept, so that who asks for it again is found out */
  return ZE_RESULT_SUCCESS;
}
static ze_result_t EventStatus(ze_event_handle_t handle) {
  Check(Alive(handle)->pool->flags & ZE_EVENT_POOL_FLAG_HOST_VISIBLE, "not to be seen by the host");
  return IsDone(Alive(handle)) ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}
static ze_result_t EventReset(ze_event_handle_t handle) {
  Alive(handle)->is_set = 0;
  return ZE_RESULT_SUCCESS;
}
static ze_result_t EventSynchronize(ze_event_handle_t handle, uint64_t timeout) {
  (void)timeout;
  while (!IsDone(Alive(handle))) nanosleep(&(struct timespec){0, 50000}, NULL);
  return ZE_RESULT_SUCCESS;
}
static ze_result_t EventTimes(ze_event_handle_t handle, ze_kernel_timestamp_result_t* times) {
  struct event* event = Alive(handle);
  if (!(event->pool->flags & ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP)) {
    return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  }
  if (!IsDone(event)) return ZE_RESULT_NOT_READY;
  const uint64_t mask = (1ull << KERNEL_BITS) - 1;
  times->global.kernelStart = times->context.kernelStart = event->begin & mask;
  times->global.kernelEnd = times->context.kernelEnd = event->end & mask;
  return ZE_RESULT_SUCCESS;
}
static ze_result_t ModuleCreate(ze_context_handle_t context, ze_device_handle_t handle,
                                const ze_module_desc_t* description, ze_module_handle_t* module,
                                ze_module_build_log_handle_t* log) {
  (void)context, (void)handle, (void)description, (void)log;
  *module = calloc(1, sizeof(void*));
  return ZE_RESULT_SUCCESS;
}
static ze_result_t KernelCreate(ze_module_handle_t module, const ze_kernel_desc_t* description,
                                ze_kernel_handle_t* made) {
  (void)module;
  struct kernel* kernel = calloc(1, sizeof *kernel);
  snprintf(kernel->name, sizeof kernel->name, "%s", description->pKernelName);
  char* us = strchr(kernel->name, ':');
  kernel->us = us ? strtoull(us + 1, NULL, 10) : 1;
  if (us) *us = 0;
  *made = (ze_kernel_handle_t)kernel;
  return ZE_RESULT_SUCCESS;
}
static ze_result_t KernelName(ze_kernel_handle_t handle, size_t* bytes, char* name) {
  const struct kernel* kernel = (struct kernel*)handle;
  const size_t needed = strlen(kernel->name) + 1;
  if (name && *bytes >= needed) memcpy(name, kernel->name, needed);
  *bytes = needed;
  return ZE_RESULT_SUCCESS;
}

/* The loader wants all tables, and calls what is in them. */
#define TABLE(function, type, ...)                                                      \
  ZE_DLLEXPORT ze_result_t ZE_APICALL function(ze_api_version_t version, type* table) { \
    (void)version;                                                                      \
    memset(table, 0, sizeof *table);                                                    \
    __VA_ARGS__                                                                         \
    return ZE_RESULT_SUCCESS;                                                           \
  }
/* clang-format off */
TABLE(zeGetGlobalProcAddrTable, ze_global_dditable_t, table->pfnInit = Init;)
TABLE(zeGetDriverProcAddrTable, ze_driver_dditable_t, table->pfnGet = DriverGet;
      table->pfnGetApiVersion = DriverVersion;)
TABLE(zeGetDeviceProcAddrTable, ze_device_dditable_t, table->pfnGet = DeviceGet;
      table->pfnGetProperties = DeviceProperties; table->pfnGetGlobalTimestamps = DeviceTimes;)
TABLE(zeGetContextProcAddrTable, ze_context_dditable_t, table->pfnCreate = ContextCreate;
      table->pfnDestroy = ContextDestroy;)
TABLE(zeGetCommandQueueProcAddrTable, ze_command_queue_dditable_t, table->pfnCreate = QueueCreate;
      table->pfnExecuteCommandLists = QueueExecute; table->pfnSynchronize = QueueSynchronize;)
TABLE(zeGetCommandListProcAddrTable, ze_command_list_dditable_t, table->pfnCreate = ListCreate;
      table->pfnCreateImmediate = ListCreateImmediate; table->pfnClose = ListClose;
      table->pfnReset = ListReset; table->pfnDestroy = ListDestroy;
      table->pfnAppendLaunchKernel = Launch; table->pfnAppendMemoryCopy = Copy;
      table->pfnAppendMemoryFill = FillMemory;)
TABLE(zeGetEventProcAddrTable, ze_event_dditable_t, table->pfnCreate = EventCreate;
      table->pfnDestroy = EventDestroy; table->pfnHostReset = EventReset;
      table->pfnHostSynchronize = EventSynchronize; table->pfnQueryStatus = EventStatus;
      table->pfnQueryKernelTimestamp = EventTimes;)
TABLE(zeGetEventPoolProcAddrTable, ze_event_pool_dditable_t, table->pfnCreate = PoolCreate;
      table->pfnDestroy = PoolDestroy;)
TABLE(zeGetKernelProcAddrTable, ze_kernel_dditable_t, table->pfnCreate = KernelCreate;
      table->pfnGetName = KernelName;)
TABLE(zeGetModuleProcAddrTable, ze_module_dditable_t, table->pfnCreate = ModuleCreate;)
/* Of other types than these, which only their names matter of. */
#define EMPTY(function)                                                          \
  ZE_DLLEXPORT int Empty_##function(int version, void* table) __asm__(#function); \
  int Empty_##function(int version, void* table) { return (void)version, (void)table, 0; }
EMPTY(zeGetFenceProcAddrTable) EMPTY(zeGetImageProcAddrTable) EMPTY(zeGetMemProcAddrTable)
EMPTY(zeGetModuleBuildLogProcAddrTable) EMPTY(zeGetPhysicalMemProcAddrTable)
EMPTY(zeGetSamplerProcAddrTable) EMPTY(zeGetVirtualMemProcAddrTable)
EMPTY(zeGetDeviceExpProcAddrTable) EMPTY(zeGetEventExpProcAddrTable)
EMPTY(zeGetFabricEdgeExpProcAddrTable) EMPTY(zeGetFabricVertexExpProcAddrTable)
EMPTY(zeGetImageExpProcAddrTable) EMPTY(zeGetKernelExpProcAddrTable)
EMPTY(zesGetDeviceProcAddrTable) EMPTY(zesGetDiagnosticsProcAddrTable)
EMPTY(zesGetDriverProcAddrTable) EMPTY(zesGetEngineProcAddrTable)
EMPTY(zesGetFabricPortProcAddrTable) EMPTY(zesGetFanProcAddrTable)
EMPTY(zesGetFirmwareProcAddrTable) EMPTY(zesGetFrequencyProcAddrTable)
EMPTY(zesGetLedProcAddrTable) EMPTY(zesGetMemoryProcAddrTable)
EMPTY(zesGetPerformanceFactorProcAddrTable) EMPTY(zesGetPowerProcAddrTable)
EMPTY(zesGetPsuProcAddrTable) EMPTY(zesGetRasProcAddrTable) EMPTY(zesGetSchedulerProcAddrTable)
EMPTY(zesGetStandbyProcAddrTable) EMPTY(zesGetTemperatureProcAddrTable)
EMPTY(zetGetCommandListProcAddrTable) EMPTY(zetGetContextProcAddrTable)
EMPTY(zetGetDebugProcAddrTable) EMPTY(zetGetDeviceProcAddrTable) EMPTY(zetGetKernelProcAddrTable)
EMPTY(zetGetMetricGroupExpProcAddrTable) EMPTY(zetGetMetricGroupProcAddrTable)
EMPTY(zetGetMetricProcAddrTable) EMPTY(zetGetMetricQueryPoolProcAddrTable)
EMPTY(zetGetMetricQueryProcAddrTable) EMPTY(zetGetMetricStreamerProcAddrTable)
EMPTY(zetGetModuleProcAddrTable) EMPTY(zetGetTracerExpProcAddrTable)

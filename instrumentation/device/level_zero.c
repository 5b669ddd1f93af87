// SPDX-License-Identifier: Apache-2.0
/* libsyncline_level_zero.so: preloaded, for Level Zero's loader takes in no tracer by itself. It
 * hears that the program initialises Level Zero, and from then on the program's calls, by the
 * loader's tracing layer (ZE_ENABLE_TRACING_LAYER). Pools of events are made with timestamps;
 * while a recording runs a command that signals no event signals one of ours.
 *
 * A process with a framework that has a profiler of its own is left to that.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <level_zero/layers/zel_tracing_api.h>
#include <level_zero/layers/zel_tracing_register_cb.h>
#include <level_zero/ze_api.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "instrumentation/block/block.h"
#include "instrumentation/block/watch_thread.h"
#include "instrumentation/device/level_zero.h"

#define LOADER "libze_loader.so.1"
#define READ_NS 20000000u /* what is done is recorded so much later, or lost at the end */

static const char* absence; /* why nothing is heard */

/* ---- what the tracing layer calls: before (Begins) and behind (Ends) a call of the program's */

#define HEARD(function, params) \
  static void ZE_APICALL function(params* p, ze_result_t result, void* user, void** own)
#define UNUSED (void)result, (void)user, (void)own

static uint64_t BytesOf(const ze_copy_region_t* region) {
  if (!region) return 0;
  return (uint64_t)region->width * region->height * (region->depth ? region->depth : 1);
}

#define APPEND(function, type, kind, name, kernel, bytes)                                   \
  HEARD(function##Begins, ze_command_list_append_##type##_params_t) {                       \
    (void)result, (void)user;                                                               \
    *own = LevelZeroAppends(*p->phCommandList, SYNCLINE_DEVICE_##kind, name, kernel, bytes, \
                            p->phSignalEvent);                                              \
  }                                                                                         \
  HEARD(function##Ends, ze_command_list_append_##type##_params_t) {                         \
    (void)user;                                                                             \
    LevelZeroAppended(*p->phCommandList, *own, result == ZE_RESULT_SUCCESS);                \
  }
APPEND(LaunchKernel, launch_kernel, KERNEL, NULL, *p->phKernel, 0)
APPEND(LaunchCooperativeKernel, launch_cooperative_kernel, KERNEL, NULL, *p->phKernel, 0)
APPEND(LaunchKernelIndirect, launch_kernel_indirect, KERNEL, NULL, *p->phKernel, 0)
APPEND(LaunchMultipleKernelsIndirect, launch_multiple_kernels_indirect, KERNEL, "several kernels",
       NULL, 0)
APPEND(MemoryCopy, memory_copy, COPY, "copy", NULL, *p->psize)
APPEND(MemoryCopyRegion, memory_copy_region, COPY, "copy", NULL, BytesOf(*p->psrcRegion))
APPEND(MemoryCopyFromContext, memory_copy_from_context, COPY, "copy", NULL, *p->psize)
APPEND(MemoryFill, memory_fill, FILL, "fill", NULL, *p->psize)
APPEND(ImageCopy, image_copy, COPY, "copy image", NULL, 0)
APPEND(ImageCopyRegion, image_copy_region, COPY, "copy image", NULL, 0)
APPEND(ImageCopyToMemory, image_copy_to_memory, COPY, "read image", NULL, 0)
APPEND(ImageCopyFromMemory, image_copy_from_memory, COPY, "write image", NULL, 0)

/* What signals an event besides, or resets it in the device's order. */
#define SIGNALS(function, params, event)                                \
  HEARD(function##Begins, ze_command_list_append_##params##_params_t) { \
    UNUSED;                                                             \
    LevelZeroSignalsToo(*p->event);                                     \
  }
SIGNALS(SignalEvent, signal_event, phEvent)
SIGNALS(EventReset, event_reset, phEvent)
SIGNALS(Barrier, barrier, phSignalEvent)
SIGNALS(MemoryRangesBarrier, memory_ranges_barrier, phSignalEvent)
SIGNALS(WriteGlobalTimestamp, write_global_timestamp, phSignalEvent)
SIGNALS(QueryKernelTimestamps, query_kernel_timestamps, phSignalEvent)
HEARD(HostSignals, ze_event_host_signal_params_t) {
  UNUSED;
  LevelZeroSignalsToo(*p->phEvent);
}

HEARD(ExecuteBegins, ze_command_queue_execute_command_lists_params_t) {
  UNUSED;
  LevelZeroExecutes(*p->phCommandQueue, *p->pnumCommandLists, *p->pphCommandLists);
}
HEARD(ExecuteEnds, ze_command_queue_execute_command_lists_params_t) {
  UNUSED;
  LevelZeroExecuted(*p->pnumCommandLists, *p->pphCommandLists, result == ZE_RESULT_SUCCESS);
}
HEARD(QueueIsMade, ze_command_queue_create_params_t) {
  UNUSED;
  if (result == ZE_RESULT_SUCCESS) LevelZeroQueueIsMade(**p->pphCommandQueue);
}
HEARD(QueueEnds, ze_command_queue_destroy_params_t) {
  UNUSED;
  LevelZeroQueueEnds(*p->phCommandQueue);
}
HEARD(ListIsMade, ze_command_list_create_params_t) {
  UNUSED;
  if (result != ZE_RESULT_SUCCESS) return;
  LevelZeroListIsMade(**p->pphCommandList, *p->phContext, *p->phDevice, 0);
}
HEARD(ImmediateListIsMade, ze_command_list_create_immediate_params_t) {
  UNUSED;
  if (result != ZE_RESULT_SUCCESS) return;
  LevelZeroListIsMade(**p->pphCommandList, *p->phContext, *p->phDevice, 1);
}
HEARD(ListIsReset, ze_command_list_reset_params_t) {
  UNUSED;
  LevelZeroListIsEmptied(*p->phCommandList, 0);
}
HEARD(ListEnds, ze_command_list_destroy_params_t) {
  UNUSED;
  LevelZeroListIsEmptied(*p->phCommandList, 1);
}
HEARD(EventEnds, ze_event_destroy_params_t) {
  UNUSED;
  LevelZeroEventEnds(*p->phEvent, 1);
}
HEARD(EventIsReset, ze_event_host_reset_params_t) {
  UNUSED;
  LevelZeroEventEnds(*p->phEvent, 0);
}
HEARD(ContextEnds, ze_context_destroy_params_t) {
  UNUSED;
  LevelZeroContextEnds(*p->phContext);
}
/* In newer versions of the interface: events with times of the host's clock as well. */
#define MAPPED_TIMESTAMP (1u << 3)

/* Its events are to be stamped, and read here. A pool that other processes open, or whose events an
 * extension makes another kind of (counters), is left as it is. */
HEARD(PoolIsToBeMade, ze_event_pool_create_params_t) {
  (void)result, (void)user;
  const int is_left =
      !*p->pdesc || (*p->pdesc)->pNext || ((*p->pdesc)->flags & ZE_EVENT_POOL_FLAG_IPC);
  ze_event_pool_desc_t* with = is_left ? NULL : malloc(sizeof *with);
  if (with) {
    *with = **p->pdesc;
    with->flags |= ZE_EVENT_POOL_FLAG_HOST_VISIBLE;
    if (!(with->flags & MAPPED_TIMESTAMP)) with->flags |= ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP;
    *p->pdesc = with;
  }
  *own = with;
}
HEARD(PoolIsMade, ze_event_pool_create_params_t) {
  (void)user;
  if (!*own && result == ZE_RESULT_SUCCESS) LevelZeroLeavesPool(**p->pphEventPool, 1);
  free(*own);
}
HEARD(PoolIsOpened, ze_event_pool_open_ipc_handle_params_t) {
  UNUSED;
  if (result == ZE_RESULT_SUCCESS) LevelZeroLeavesPool(**p->pphEventPool, 1);
}
HEARD(PoolEnds, ze_event_pool_destroy_params_t) {
  UNUSED;
  LevelZeroLeavesPool(*p->phEventPool, 0);
}
HEARD(PoolIsClosed, ze_event_pool_close_ipc_handle_params_t) {
  UNUSED;
  LevelZeroLeavesPool(*p->phEventPool, 0);
}
HEARD(EventIsMade, ze_event_create_params_t) {
  UNUSED;
  if (result == ZE_RESULT_SUCCESS) LevelZeroEventIsMade(*p->phEventPool, **p->pphEvent);
}

/* ---- the loader's functions, by their names: which there are differs between its versions */

static void* loader;

static void* Find(const char* name) { return dlsym(loader, name); }

static int FindCalls(void) {
  struct level_zero_calls calls;
  struct {
    void** place;
    const char* name;
  } const wanted[] = {
      {(void**)(void*)&calls.kernel_name, "zeKernelGetName"},
      {(void**)(void*)&calls.pool_create, "zeEventPoolCreate"},
      {(void**)(void*)&calls.pool_destroy, "zeEventPoolDestroy"},
      {(void**)(void*)&calls.event_create, "zeEventCreate"},
      {(void**)(void*)&calls.event_destroy, "zeEventDestroy"},
      {(void**)(void*)&calls.event_reset, "zeEventHostReset"},
      {(void**)(void*)&calls.event_status, "zeEventQueryStatus"},
      {(void**)(void*)&calls.event_times, "zeEventQueryKernelTimestamp"},
      {(void**)(void*)&calls.device_properties, "zeDeviceGetProperties"},
      {(void**)(void*)&calls.device_times, "zeDeviceGetGlobalTimestamps"},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    *wanted[i].place = Find(wanted[i].name);
    if (!*wanted[i].place) return -1;
  }
  LevelZeroUses(&calls);
  return 0;
}

/* 1: it is registered. The argument is a pointer to some function. */
static int Register(zel_tracer_handle_t tracer, const char* name, zel_tracer_reg_t when,
                    void (*callback)(void)) {
  ze_result_t (*call)(zel_tracer_handle_t, zel_tracer_reg_t, void (*)(void));
  *(void**)&call = Find(name);
  return call && call(tracer, when, callback) == ZE_RESULT_SUCCESS;
}

/* How many of what is to be heard cannot be. */
static int RegisterAll(zel_tracer_handle_t tracer) {
  int missing = 0;
#define BEFORE(call, callback)                                                              \
  missing += !Register(tracer, "zelTracer" #call "RegisterCallback", ZEL_REGISTER_PROLOGUE, \
                       (void (*)(void))(callback))
#define BEHIND(call, callback)                                                              \
  missing += !Register(tracer, "zelTracer" #call "RegisterCallback", ZEL_REGISTER_EPILOGUE, \
                       (void (*)(void))(callback))
#define BOTH(function)                                   \
  BEFORE(CommandListAppend##function, function##Begins); \
  BEHIND(CommandListAppend##function, function##Ends)
  BOTH(LaunchKernel);
  BOTH(LaunchCooperativeKernel);
  BOTH(LaunchKernelIndirect);
  BOTH(LaunchMultipleKernelsIndirect);
  BOTH(MemoryCopy);
  BOTH(MemoryCopyRegion);
  BOTH(MemoryCopyFromContext);
  BOTH(MemoryFill);
  BOTH(ImageCopy);
  BOTH(ImageCopyRegion);
  BOTH(ImageCopyToMemory);
  BOTH(ImageCopyFromMemory);
  BEFORE(CommandListAppendSignalEvent, SignalEventBegins);
  BEFORE(CommandListAppendEventReset, EventResetBegins);
  BEFORE(CommandListAppendBarrier, BarrierBegins);
  BEFORE(CommandListAppendMemoryRangesBarrier, MemoryRangesBarrierBegins);
  BEFORE(CommandListAppendWriteGlobalTimestamp, WriteGlobalTimestampBegins);
  BEFORE(CommandListAppendQueryKernelTimestamps, QueryKernelTimestampsBegins);
  BEFORE(EventHostSignal, HostSignals);
  BEFORE(CommandQueueExecuteCommandLists, ExecuteBegins);
  BEHIND(CommandQueueExecuteCommandLists, ExecuteEnds);
  BEHIND(CommandQueueCreate, QueueIsMade);
  BEFORE(CommandQueueDestroy, QueueEnds);
  BEHIND(CommandListCreate, ListIsMade);
  BEHIND(CommandListCreateImmediate, ImmediateListIsMade);
  BEFORE(CommandListReset, ListIsReset);
  BEFORE(CommandListDestroy, ListEnds);
  BEFORE(EventDestroy, EventEnds);
  BEFORE(EventHostReset, EventIsReset);
  BEFORE(ContextDestroy, ContextEnds);
  BEFORE(EventPoolCreate, PoolIsToBeMade);
  BEHIND(EventPoolCreate, PoolIsMade);
  BEHIND(EventPoolOpenIpcHandle, PoolIsOpened);
  BEFORE(EventPoolDestroy, PoolEnds);
  BEFORE(EventPoolCloseIpcHandle, PoolIsClosed);
  BEHIND(EventCreate, EventIsMade);
#undef BOTH
#undef BEHIND
#undef BEFORE
  return missing;
}

/* NULL, or why nothing will be heard. */
static const char* Hear(void) {
  loader = dlopen(LOADER, RTLD_LAZY | RTLD_NOLOAD);
  if (!loader) return LEVEL_ZERO ": its loader is not " LOADER;
  ze_result_t (*create)(const zel_tracer_desc_t*, zel_tracer_handle_t*);
  ze_result_t (*enable)(zel_tracer_handle_t, ze_bool_t);
  *(void**)&create = Find("zelTracerCreate");
  *(void**)&enable = Find("zelTracerSetEnabled");
  if (!create || !enable || FindCalls() != 0) return LEVEL_ZERO ": its loader has no tracing";
  static int user; /* there must be something */
  const zel_tracer_desc_t description = {ZEL_STRUCTURE_TYPE_TRACER_EXP_DESC, NULL, &user};
  zel_tracer_handle_t tracer = NULL;
  if (create(&description, &tracer) != ZE_RESULT_SUCCESS) {
    return LEVEL_ZERO ": its loader's tracing layer is off (ZE_ENABLE_TRACING_LAYER)";
  }
  if (RegisterAll(tracer) != 0 || enable(tracer, 1) != ZE_RESULT_SUCCESS) {
    return LEVEL_ZERO ": its loader's tracing layer is too old";
  }
  return NULL;
}

/* ---- on and off */

static void Follow(uint32_t gate) {
  LevelZeroRecords(0);
  device_follow();
  if (gate == 0) return;
  const int theirs = device_is_of_framework();
  LevelZeroRecords(!theirs && !absence);
  device_tracing(theirs    ? LEVEL_ZERO ": left to the profiler of the program's framework"
                 : absence ? absence
                           : LEVEL_ZERO,
                 theirs    ? SYNCLINE_DEVICE_LEFT_TO_FRAMEWORK
                 : absence ? SYNCLINE_DEVICE_NOT_TRACED
                           : SYNCLINE_DEVICE_TRACED);
}

static void* Watch(void* unused) {
  (void)unused;
  prctl(PR_SET_NAME, "syncline-ze");
  uint32_t acted = 0;
  for (;;) {
    const volatile uint32_t* gate = syncline_gate;
    const uint32_t value = *gate;
    if (value != acted) Follow(acted = value);
    SynclineGateWait(gate, value, LevelZeroRead() > 0 || acted ? READ_NS : 0);
  }
  return NULL;
}

static void Start(void) {
  if (device_start() != 0) return;
  absence = Hear();
  if (absence == NULL) {
    pthread_atfork(NULL, NULL, LevelZeroIsForked);
    atexit(LevelZeroEnds);
  }
  SynclineStartThread(Watch);
}

/* Nobody goes on before it is heard. */
static void StartOnce(void) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static int is_started;
  pthread_mutex_lock(&mutex);
  if (!is_started) Start();
  is_started = 1;
  pthread_mutex_unlock(&mutex);
}

/* ---- what the program calls in the loader's place */

static void* Below(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found) return found;
  void* const library = dlopen(LOADER, RTLD_LAZY | RTLD_NOLOAD); /* loaded for somebody alone */
  return library ? dlsym(library, name) : NULL;
}

SYNCLINE_EXPORT ze_result_t ZE_APICALL zeInit(ze_init_flags_t flags) {
  ze_result_t (*next)(ze_init_flags_t);
  *(void**)&next = Below("zeInit");
  if (!next) return ZE_RESULT_ERROR_UNINITIALIZED;
  const ze_result_t result = next(flags);
  if (result == ZE_RESULT_SUCCESS) StartOnce();
  return result;
}

/* From version 1.10 of the interface on; ours is built with an older one. */
SYNCLINE_EXPORT ze_result_t InitDrivers(uint32_t* count, ze_driver_handle_t* drivers,
                                        void* description) __asm__("zeInitDrivers");
ze_result_t InitDrivers(uint32_t* count, ze_driver_handle_t* drivers, void* description) {
  ze_result_t (*next)(uint32_t*, ze_driver_handle_t*, void*);
  *(void**)&next = Below("zeInitDrivers");
  if (!next) return ZE_RESULT_ERROR_UNINITIALIZED;
  const ze_result_t result = next(count, drivers, description);
  if (result == ZE_RESULT_SUCCESS) StartOnce();
  return result;
}

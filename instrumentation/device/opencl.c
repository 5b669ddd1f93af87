// SPDX-License-Identifier: Apache-2.0
/* libsyncline_opencl.so: a layer of OpenCL's loader. Queues are made with profiling, and while a
 * recording runs every command that takes a device's time gets an event whose end tells when the
 * device worked on it. Otherwise a call goes through with a look at the gate.
 *
 * What the program sees: CL_QUEUE_PROFILING_ENABLE among its queues' properties. Its own events,
 * results and errors are the driver's.
 */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl_layer.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "instrumentation/block/block.h"
#include "instrumentation/device/device.h"
#include "instrumentation/device/device_clock.h"

#define ENTRIES(table) (sizeof(table) / sizeof(void*))
#define LAYER_NAME "syncline"
#define SOURCE "OpenCL"
#define QUEUES 1024 /* queues beyond them share a lane */
#define DEVICES 64
#define TEXT_BYTES 64
#define DEVICE_NAME_BYTES 256
#define LAUNCHES_OF_OPENCL (1ull << 32) /* CUDA's numbers have 32 bits */

static const struct _cl_icd_dispatch* next; /* what is below us */
static struct _cl_icd_dispatch own;

/* ---- devices and queues. A place is taken once and never given back. */

static struct device {
  cl_device_id id;
  uint32_t not_clocks; /* of device_clock.h: those by which it cannot stamp */
  uint32_t untrusted;  /* it stamped by none of them */
  char name[TEXT_BYTES];
} devices[DEVICES];

static struct queue {
  cl_command_queue id;
  uint32_t number;
  uint32_t unprofiled; /* the driver makes none with profiling */
  struct device* device;
} queues[QUEUES];
static uint32_t last_queue;

static struct device* FindDevice(cl_device_id id) {
  for (int i = 0; i < DEVICES; i++) {
    if (__atomic_load_n(&devices[i].id, __ATOMIC_ACQUIRE) == id) return &devices[i];
  }
  return NULL;
}

/* As a queue is made for it. NULL: there are too many. */
static struct device* DeviceOf(cl_device_id id) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static int count;
  struct device* device = FindDevice(id);
  if (device) return device;
  char name[DEVICE_NAME_BYTES] = "";
  next->clGetDeviceInfo(id, CL_DEVICE_NAME, sizeof name - 1, name, NULL);
  pthread_mutex_lock(&mutex);
  device = FindDevice(id);
  if (!device && count < DEVICES) {
    device = &devices[count];
    snprintf(device->name, sizeof device->name, SOURCE " %d%s%.24s", count, *name ? " " : "", name);
    __atomic_store_n(&device->id, id, __ATOMIC_RELEASE); /* last: others look for it */
    count++;
  }
  pthread_mutex_unlock(&mutex);
  return device;
}

static struct queue* FindQueue(cl_command_queue id, int make) {
  size_t at = ((uintptr_t)id >> 4) * 0x9E3779B97F4A7C15ull >> 54;
  for (int tries = 0; tries < QUEUES; tries++, at = (at + 1) % QUEUES) {
    cl_command_queue found = __atomic_load_n(&queues[at].id, __ATOMIC_ACQUIRE);
    if (!found) {
      if (!make) return NULL;
      if (__atomic_compare_exchange_n(&queues[at].id, &found, id, 0, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE)) {
        return &queues[at];
      }
    }
    if (found == id) return &queues[at];
  }
  return NULL;
}

static void QueueIsMade(cl_command_queue id, cl_device_id device, int profiled) {
  device_start();
  struct queue* queue = id ? FindQueue(id, 1) : NULL;
  if (!queue) return;
  queue->device = DeviceOf(device); /* one before it may have had its address */
  queue->unprofiled = !profiled;
  queue->number = __atomic_add_fetch(&last_queue, 1, __ATOMIC_RELAXED);
}

/* What is known of a queue; one that has no place, or was made in a way that is not known here, has
 * its device alone. */
static struct queue QueueOf(cl_command_queue id) {
  const struct queue* known = FindQueue(id, 0);
  if (known) return *known;
  struct queue other = {.id = id};
  cl_device_id device = NULL;
  if (next->clGetCommandQueueInfo(id, CL_QUEUE_DEVICE, sizeof device, &device, NULL) ==
      CL_SUCCESS) {
    other.device = DeviceOf(device);
  }
  return other;
}

static cl_command_queue CL_API_CALL CreateQueue(cl_context context, cl_device_id device,
                                                cl_command_queue_properties properties,
                                                cl_int* error) {
  cl_command_queue made =
      next->clCreateCommandQueue(context, device, properties | CL_QUEUE_PROFILING_ENABLE, error);
  const int profiled = made || properties & CL_QUEUE_PROFILING_ENABLE;
  if (!profiled) made = next->clCreateCommandQueue(context, device, properties, error);
  QueueIsMade(made, device, profiled);
  return made;
}

static cl_command_queue CL_API_CALL CreateQueueWith(cl_context context, cl_device_id device,
                                                    const cl_queue_properties* properties,
                                                    cl_int* error) {
  enum { kMost = 32 };
  cl_queue_properties with[2 * kMost + 3];
  size_t count = 0;
  int seen = 0;
  while (properties && properties[count] && count < (size_t)(2 * kMost)) {
    with[count] = properties[count];
    with[count + 1] = properties[count + 1];
    if (properties[count] == CL_QUEUE_PROPERTIES) {
      with[count + 1] |= CL_QUEUE_PROFILING_ENABLE;
      seen = 1;
    }
    count += 2;
  }
  const int whole = !properties || !properties[count]; /* all of it is in `with` */
  if (!seen) {
    with[count++] = CL_QUEUE_PROPERTIES;
    with[count++] = CL_QUEUE_PROFILING_ENABLE;
  }
  with[count] = 0;
  cl_command_queue made = NULL;
  if (whole) made = next->clCreateCommandQueueWithProperties(context, device, with, error);
  const int profiled = made != NULL;
  if (!profiled) {
    made = next->clCreateCommandQueueWithProperties(context, device, properties, error);
  }
  QueueIsMade(made, device, profiled);
  return made;
}

/* ---- commands */

struct command {
  uint64_t launch;
  struct device* device;
  uint32_t queue_number;
  enum syncline_device_kind kind;
  uint64_t bytes;
  struct device_times before;
  struct device_times after;
  char name[];
};

/* A call that takes longer can be around stamps of a clock that is off by as much. */
#define SHORT_CALL_NS 100000u

/* The clocks by which the command's stamps can be true: it was put into its queue during the call,
 * and is over. 0: there is none, and the device is not believed any more if the call was short. */
static uint32_t ClocksOf(struct command* command, uint64_t queued, uint64_t end) {
  struct device* device = command->device;
  struct device_times now;
  device_times_now(&now);
  uint32_t clocks = device_clocks_of(queued, &command->before, &command->after) &
                    device_clocks_of(end, &command->before, &now);
  clocks &= ~__atomic_load_n(&device->not_clocks, __ATOMIC_RELAXED);
  if (clocks) {
    __atomic_or_fetch(&device->not_clocks, ~clocks & DEVICE_ALL_CLOCKS, __ATOMIC_RELAXED);
  } else if (command->after.ns[0] - command->before.ns[0] < SHORT_CALL_NS) {
    __atomic_store_n(&device->untrusted, 1, __ATOMIC_RELAXED);
  }
  return __atomic_load_n(&device->untrusted, __ATOMIC_RELAXED) ? 0 : clocks;
}

static void CL_CALLBACK Done(cl_event event, cl_int status, void* data) {
  const uint64_t entered = syncline_cost_ticks();
  struct command* command = data;
  struct device* device = command->device;
  cl_ulong queued = 0;
  cl_ulong begin = 0;
  cl_ulong end = 0;
  const int known = status >= 0 &&
                    next->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED, sizeof queued,
                                                  &queued, NULL) == CL_SUCCESS &&
                    next->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof begin,
                                                  &begin, NULL) == CL_SUCCESS &&
                    next->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end,
                                                  NULL) == CL_SUCCESS;
  const uint32_t clocks =
      known && begin >= queued && end >= begin ? ClocksOf(command, queued, end) : 0;
  uint64_t spent = syncline_cost_ticks() - entered;
  if (status < 0) {
    device_refused(command->launch);
  } else if (!clocks) {
    device_lost(device->name, 1);
  } else {
    char text[TEXT_BYTES];
    if (command->queue_number) {
      snprintf(text, sizeof text, "queue %u", command->queue_number);
    } else {
      snprintf(text, sizeof text, "further queues");
    }
    const struct device_placed at = device_clock_place(clocks, begin);
    device_work(&(struct device_work){.device = device->name,
                                      .queue = text,
                                      .name = command->name,
                                      .kind = command->kind,
                                      .launch = command->launch,
                                      .begin_ns = at.ns,
                                      .end_ns = at.ns + (end - begin),
                                      .bound_ns = at.bound_ns,
                                      .bytes = command->bytes});
  }
  const uint64_t released = syncline_cost_ticks();
  next->clReleaseEvent(event);
  free(command);
  spent += syncline_cost_ticks() - released;
  device_spent(spent);
}

/* NULL: it is not recorded, and the driver gets it as it is. `name`: NULL of a kernel. */
static struct command* Begins(cl_command_queue queue_id, enum syncline_device_kind kind,
                              const char* name, cl_kernel kernel, uint64_t bytes) {
  static uint64_t last_launch = LAUNCHES_OF_OPENCL;
  if (!device_is_asked() || !next->clSetEventCallback) return NULL;
  const uint64_t entered = syncline_cost_ticks();
  const struct queue queue = QueueOf(queue_id);
  if (!queue.device || queue.unprofiled) {
    device_lost(queue.device ? queue.device->name : SOURCE ": too many devices", 1);
    return NULL;
  }
  size_t name_bytes = name ? strlen(name) + 1 : 1;
  if (kernel &&
      (next->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, 0, NULL, &name_bytes) != CL_SUCCESS ||
       name_bytes == 0)) {
    name_bytes = 1;
  }
  struct command* command = calloc(1, sizeof *command + name_bytes);
  if (!command) return NULL;
  if (name) memcpy(command->name, name, name_bytes);
  if (kernel && name_bytes > 1) {
    next->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, name_bytes, command->name, NULL);
  }
  command->queue_number = queue.number;
  command->device = queue.device;
  command->kind = kind;
  command->bytes = bytes;
  command->launch = __atomic_add_fetch(&last_launch, 1, __ATOMIC_RELAXED);
  uint64_t spent = syncline_cost_ticks() - entered;
  if (!device_launch(command->launch, command->name)) {
    free(command);
    return NULL;
  }
  const uint64_t again = syncline_cost_ticks();
  device_times_now(&command->before);
  spent += syncline_cost_ticks() - again;
  device_spent(spent);
  return command;
}

/* Behind the call, which gave `event` if it went well; `wanted`: where the program wants it. */
static void Ends(struct command* command, int well, cl_event event, cl_event* wanted) {
  struct device* device = command->device;
  const uint64_t entered = syncline_cost_ticks();
  device_times_now(&command->after);
  if (!well || !event) {
    device_refused(command->launch); /* the program is told */
    free(command);
    return;
  }
  if (wanted) {
    next->clRetainEvent(event);
    *wanted = event;
  }
  /* From here on the command may be gone. */
  const int waits = next->clSetEventCallback(event, CL_COMPLETE, Done, command) == CL_SUCCESS;
  if (!waits) {
    device_lost(device->name, 1);
    next->clReleaseEvent(event);
    free(command);
  }
  device_spent(syncline_cost_ticks() - entered);
}

/* A function of the interface: its name, and its arguments before the event, as declared and as
 * handed on. */
#define COMMAND(function, kind, name, kernel, bytes, parameters, arguments)               \
  static cl_int CL_API_CALL Traced##function(cl_command_queue queue,                      \
                                             SPREAD parameters cl_event* event) {         \
    struct command* command = Begins(queue, SYNCLINE_DEVICE_##kind, name, kernel, bytes); \
    if (!command) return next->cl##function(queue, SPREAD arguments event);               \
    cl_event made = NULL;                                                                 \
    const cl_int result = next->cl##function(queue, SPREAD arguments & made);             \
    Ends(command, result == CL_SUCCESS, made, event);                                     \
    return result;                                                                        \
  }
#define SPREAD(...) __VA_ARGS__

#define WAITS cl_uint count, const cl_event *list,
#define WAIT count, list,

/* Of a region of a buffer. */
static uint64_t BytesOf(const size_t* region) {
  return region ? (uint64_t)region[0] * region[1] * region[2] : 0;
}

/* clang-format off */
COMMAND(EnqueueNDRangeKernel, KERNEL, NULL, kernel, 0,
        (cl_kernel kernel, cl_uint dimensions, const size_t* offset, const size_t* global,
         const size_t* local, WAITS),
        (kernel, dimensions, offset, global, local, WAIT))
COMMAND(EnqueueTask, KERNEL, NULL, kernel, 0, (cl_kernel kernel, WAITS), (kernel, WAIT))
COMMAND(EnqueueNativeKernel, KERNEL, "native kernel", NULL, 0,
        (void(CL_CALLBACK* call)(void*), void* data, size_t bytes, cl_uint objects,
         const cl_mem* memory, const void** at, WAITS),
        (call, data, bytes, objects, memory, at, WAIT))
COMMAND(EnqueueReadBuffer, COPY, "read buffer", NULL, bytes,
        (cl_mem buffer, cl_bool blocks, size_t offset, size_t bytes, void* to, WAITS),
        (buffer, blocks, offset, bytes, to, WAIT))
COMMAND(EnqueueWriteBuffer, COPY, "write buffer", NULL, bytes,
        (cl_mem buffer, cl_bool blocks, size_t offset, size_t bytes, const void* from, WAITS),
        (buffer, blocks, offset, bytes, from, WAIT))
COMMAND(EnqueueCopyBuffer, COPY, "copy buffer", NULL, bytes,
        (cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t bytes, WAITS),
        (from, to, from_offset, to_offset, bytes, WAIT))
COMMAND(EnqueueFillBuffer, FILL, "fill buffer", NULL, bytes,
        (cl_mem buffer, const void* pattern, size_t pattern_bytes, size_t offset, size_t bytes,
         WAITS),
        (buffer, pattern, pattern_bytes, offset, bytes, WAIT))
COMMAND(EnqueueReadBufferRect, COPY, "read buffer", NULL, BytesOf(region),
        (cl_mem buffer, cl_bool blocks, const size_t* origin, const size_t* host_origin,
         const size_t* region, size_t row, size_t slice, size_t host_row, size_t host_slice,
         void* to, WAITS),
        (buffer, blocks, origin, host_origin, region, row, slice, host_row, host_slice, to, WAIT))
COMMAND(EnqueueWriteBufferRect, COPY, "write buffer", NULL, BytesOf(region),
        (cl_mem buffer, cl_bool blocks, const size_t* origin, const size_t* host_origin,
         const size_t* region, size_t row, size_t slice, size_t host_row, size_t host_slice,
         const void* from, WAITS),
        (buffer, blocks, origin, host_origin, region, row, slice, host_row, host_slice, from,
         WAIT))
COMMAND(EnqueueCopyBufferRect, COPY, "copy buffer", NULL, BytesOf(region),
        (cl_mem from, cl_mem to, const size_t* from_origin, const size_t* to_origin,
         const size_t* region, size_t from_row, size_t from_slice, size_t to_row, size_t to_slice,
         WAITS),
        (from, to, from_origin, to_origin, region, from_row, from_slice, to_row, to_slice, WAIT))
COMMAND(EnqueueReadImage, COPY, "read image", NULL, 0,
        (cl_mem image, cl_bool blocks, const size_t* origin, const size_t* region, size_t row,
         size_t slice, void* to, WAITS),
        (image, blocks, origin, region, row, slice, to, WAIT))
COMMAND(EnqueueWriteImage, COPY, "write image", NULL, 0,
        (cl_mem image, cl_bool blocks, const size_t* origin, const size_t* region, size_t row,
         size_t slice, const void* from, WAITS),
        (image, blocks, origin, region, row, slice, from, WAIT))
COMMAND(EnqueueCopyImage, COPY, "copy image", NULL, 0,
        (cl_mem from, cl_mem to, const size_t* from_origin, const size_t* to_origin,
         const size_t* region, WAITS),
        (from, to, from_origin, to_origin, region, WAIT))
COMMAND(EnqueueCopyImageToBuffer, COPY, "copy image to buffer", NULL, 0,
        (cl_mem from, cl_mem to, const size_t* origin, const size_t* region, size_t offset, WAITS),
        (from, to, origin, region, offset, WAIT))
COMMAND(EnqueueCopyBufferToImage, COPY, "copy buffer to image", NULL, 0,
        (cl_mem from, cl_mem to, size_t offset, const size_t* origin, const size_t* region, WAITS),
        (from, to, offset, origin, region, WAIT))
COMMAND(EnqueueFillImage, FILL, "fill image", NULL, 0,
        (cl_mem image, const void* color, const size_t* origin, const size_t* region, WAITS),
        (image, color, origin, region, WAIT))
COMMAND(EnqueueUnmapMemObject, COPY, "unmap", NULL, 0, (cl_mem memory, void* at, WAITS),
        (memory, at, WAIT))
COMMAND(EnqueueMigrateMemObjects, COPY, "migrate", NULL, 0,
        (cl_uint objects, const cl_mem* memory, cl_mem_migration_flags flags, WAITS),
        (objects, memory, flags, WAIT))
COMMAND(EnqueueSVMMemcpy, COPY, "copy shared memory", NULL, bytes,
        (cl_bool blocks, void* to, const void* from, size_t bytes, WAITS),
        (blocks, to, from, bytes, WAIT))
COMMAND(EnqueueSVMMemFill, FILL, "fill shared memory", NULL, bytes,
        (void* at, const void* pattern, size_t pattern_bytes, size_t bytes, WAITS),
        (at, pattern, pattern_bytes, bytes, WAIT))
/* clang-format on */

static void* CL_API_CALL TracedEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer,
                                                cl_bool blocks, cl_map_flags flags, size_t offset,
                                                size_t bytes, cl_uint count, const cl_event* list,
                                                cl_event* event, cl_int* error) {
  struct command* command = Begins(queue, SYNCLINE_DEVICE_COPY, "map buffer", NULL, bytes);
  cl_event made = NULL;
  void* const at = next->clEnqueueMapBuffer(queue, buffer, blocks, flags, offset, bytes, count,
                                            list, command ? &made : event, error);
  if (command) Ends(command, at != NULL, made, event);
  return at;
}

static void* CL_API_CALL TracedEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocks,
                                               cl_map_flags flags, const size_t* origin,
                                               const size_t* region, size_t* row, size_t* slice,
                                               cl_uint count, const cl_event* list, cl_event* event,
                                               cl_int* error) {
  struct command* command = Begins(queue, SYNCLINE_DEVICE_COPY, "map image", NULL, 0);
  cl_event made = NULL;
  void* const at = next->clEnqueueMapImage(queue, image, blocks, flags, origin, region, row, slice,
                                           count, list, command ? &made : event, error);
  if (command) Ends(command, at != NULL, made, event);
  return at;
}

/* ---- the layer. Khronos' loader asks for the last two, Debian's for clInitLayer. */

static void Fill(void) {
  own.clCreateCommandQueue = CreateQueue;
  own.clCreateCommandQueueWithProperties = CreateQueueWith;
#define TAKE(function) own.cl##function = Traced##function
  TAKE(EnqueueNDRangeKernel);
  TAKE(EnqueueTask);
  TAKE(EnqueueNativeKernel);
  TAKE(EnqueueReadBuffer);
  TAKE(EnqueueWriteBuffer);
  TAKE(EnqueueCopyBuffer);
  TAKE(EnqueueFillBuffer);
  TAKE(EnqueueReadBufferRect);
  TAKE(EnqueueWriteBufferRect);
  TAKE(EnqueueCopyBufferRect);
  TAKE(EnqueueReadImage);
  TAKE(EnqueueWriteImage);
  TAKE(EnqueueCopyImage);
  TAKE(EnqueueCopyImageToBuffer);
  TAKE(EnqueueCopyBufferToImage);
  TAKE(EnqueueFillImage);
  TAKE(EnqueueUnmapMemObject);
  TAKE(EnqueueMigrateMemObjects);
  TAKE(EnqueueSVMMemcpy);
  TAKE(EnqueueSVMMemFill);
  TAKE(EnqueueMapBuffer);
  TAKE(EnqueueMapImage);
#undef TAKE
}

SYNCLINE_EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t bytes, void* value,
                                                  size_t* bytes_needed) {
  static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  const void* from = name == CL_LAYER_API_VERSION ? (const void*)&version : LAYER_NAME;
  const size_t needed = name == CL_LAYER_API_VERSION ? sizeof version : sizeof LAYER_NAME;
  if (name != CL_LAYER_API_VERSION && name != CL_LAYER_NAME) return CL_INVALID_VALUE;
  if (value && bytes < needed) return CL_INVALID_VALUE;
  if (value) memcpy(value, from, needed);
  if (bytes_needed) *bytes_needed = needed;
  return CL_SUCCESS;
}

SYNCLINE_EXPORT cl_int CL_API_CALL clInitLayer(cl_uint count, const struct _cl_icd_dispatch* target,
                                               cl_uint* own_count,
                                               const struct _cl_icd_dispatch** own_table) {
  if (!target || !own_count || !own_table) return CL_INVALID_VALUE;
  if (next) return CL_INVALID_OPERATION; /* named twice, or by two loaders: one is below us */
  static struct _cl_icd_dispatch below;
  const cl_uint both = count < ENTRIES(own) ? count : (cl_uint)ENTRIES(own);
  memcpy(&below, target, both * sizeof(void*));
  memcpy(&own, target, both * sizeof(void*));
  Fill();
  next = &below;
  *own_count = both;
  *own_table = &own;
  return CL_SUCCESS;
}

SYNCLINE_EXPORT cl_int CL_API_CALL
clInitLayerWithProperties(cl_uint count, const struct _cl_icd_dispatch* target, cl_uint* own_count,
                          const struct _cl_icd_dispatch** own_table, const cl_ulong* properties) {
  (void)properties;
  return clInitLayer(count, target, own_count, own_table);
}

SYNCLINE_EXPORT cl_int CL_API_CALL clDeinitLayer(void) { return CL_SUCCESS; }

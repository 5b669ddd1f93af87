// SPDX-License-Identifier: Apache-2.0
/* What the tracers of devices share: a call that asks a device for work, and the work when it is
 * done, as events.
 *
 * opencl.c  libsyncline_opencl.so, a layer of OpenCL's loader (OPENCL_LAYERS)
 * cuda.c    libsyncline_cuda.so, which the CUDA driver loads (CUDA_INJECTION64_PATH)
 * level_zero.c  libsyncline_level_zero.so, which is preloaded (LD_PRELOAD)
 * rocm_tool.c  libsyncline_rocm_tool.so, a tool of rocprofiler-sdk; rocm.c, which is preloaded,
 *           brings it in
 * nccl.c    libsyncline_nccl.so, a profiler plugin of NCCL and RCCL (NCCL_PROFILER_PLUGIN)
 *
 * Threads: any. Not for signal handlers: neither of these libraries is called in one.
 */
#ifndef SYNCLINE_INSTRUMENTATION_DEVICE_DEVICE_H_
#define SYNCLINE_INSTRUMENTATION_DEVICE_DEVICE_H_

#include <stddef.h>
#include <stdint.h>

#include "instrumentation/device/provider.h"

#define DEVICE_HIDDEN __attribute__((visibility("hidden")))

/* The process uses a device: from here on it has a control block. Once, and again in a forked
 * child. 0, or -1 when it cannot be traced. */
DEVICE_HIDDEN int device_start(void);

/* 0 while nothing is recorded and this thread knows it: nothing of what follows need be called. */
DEVICE_HIDDEN int device_is_asked(void);

/* This thread asks the device for something now, which `launch` tells from everything else that the
 * process asks for. 1: the event was written. */
DEVICE_HIDDEN int device_launch(uint64_t launch, const char* name);

/* What the device did. Texts may be NULL. */
struct device_work {
  const char* device;
  const char* queue;
  const char* name;
  enum syncline_device_kind kind;
  uint64_t launch;
  uint64_t begin_ns; /* these two: the trace clock */
  uint64_t end_ns;
  uint64_t bound_ns;
  uint64_t bytes;
};
DEVICE_HIDDEN void device_work(const struct device_work* work);

/* This thread asks for a collective, or a transfer between two ranks, which `call` tells from all
 * others of the process. 1: the event was written. */
DEVICE_HIDDEN int device_collective_call(uint64_t call, const char* name);

/* What the device did for it. Texts may be NULL. */
struct device_collective {
  uint64_t call;
  uint64_t communicator; /* the same on all of its ranks */
  uint32_t ranks;
  uint32_t rank;
  const char* name;
  const char* how;
  uint64_t number; /* UINT64_MAX: it has none */
  uint32_t peer;   /* the root, or the other side of a transfer; UINT32_MAX: there is none */
  uint64_t bytes;
  uint64_t since_ns; /* the trace clock: it did not begin before; 0: that is not known */
  uint64_t begin;    /* these two: the device's clock, ns */
  uint64_t end;
  int64_t ahead_ns;    /* by how much the trace clock is ahead of the device's, at most */
  uint64_t watched_ns; /* from when its first stamp was there to when its last one was */
};
DEVICE_HIDDEN void device_collective(const struct device_collective* collective);

/* The call got nothing from the device: it was refused, or what it asked for ended in an error. */
DEVICE_HIDDEN void device_refused(uint64_t launch);
/* So much of syncline_cost_ticks() went by in our code, beside what the calls above count. */
DEVICE_HIDDEN void device_spent(uint64_t ticks);

/* From now on `source` records what devices do, or does not in this recording: then it says why. */
DEVICE_HIDDEN void device_tracing(const char* source, enum syncline_device_tracing state);
/* The gate has changed: says so for this process, as every other call would. */
DEVICE_HIDDEN void device_follow(void);
/* A framework is loaded that has a profiler of its own: the device is left to that. */
DEVICE_HIDDEN int device_is_of_framework(void);
/* So many pieces of work were done of which nothing more is known. */
DEVICE_HIDDEN void device_lost(const char* source, uint64_t count);

#endif /* SYNCLINE_INSTRUMENTATION_DEVICE_DEVICE_H_ */

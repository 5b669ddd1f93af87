// SPDX-License-Identifier: Apache-2.0
/* libsyncline_device_provider.so: the events of the provider `syncline_device`. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "instrumentation/device/provider.h"

#include "instrumentation/device/tracepoints.h"

#define EMIT(event, ...)                                                 \
  do {                                                                   \
    if (!lttng_ust_tracepoint_enabled(syncline_device, event)) return 0; \
    lttng_ust_do_tracepoint(syncline_device, event, __VA_ARGS__);        \
    return 1;                                                            \
  } while (0)

static int Launch(uint32_t thread, uint64_t launch, uint32_t name) {
  EMIT(launch, thread, launch, name);
}
static int Work(uint32_t thread, const struct syncline_device_work* work) {
  EMIT(work, thread, work);
}
static int CollectiveCall(uint32_t thread, uint64_t launch, uint32_t name) {
  EMIT(collective_call, thread, launch, name);
}
static int Collective(uint32_t thread, const struct syncline_device_collective* collective) {
  EMIT(collective, thread, collective);
}
static int Tracing(uint32_t thread, uint32_t source, uint8_t state) {
  EMIT(tracing, thread, source, state);
}
static int Lost(uint32_t thread, uint32_t source, uint64_t count) {
  EMIT(lost, thread, source, count);
}

__attribute__((visibility("default"))) const struct syncline_device_emit syncline_device_emit = {
    .launch = Launch,
    .work = Work,
    .collective_call = CollectiveCall,
    .collective = Collective,
    .tracing = Tracing,
    .lost = Lost,
};

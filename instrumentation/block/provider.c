// SPDX-License-Identifier: Apache-2.0
/* libsyncline_provider.so: the events of the provider `syncline` and what else is asked of
 * LTTng-UST. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "instrumentation/block/provider.h"

#include <lttng/ust-clock.h>
#include <lttng/ust-fork.h>
#include <lttng/ust-thread.h>

#include "instrumentation/block/monotonic.h"
#include "instrumentation/block/tracepoints.h"

/* Arguments are evaluated only when a session wants the event. */
#define EMIT(event, ...)                                          \
  do {                                                            \
    if (!lttng_ust_tracepoint_enabled(syncline, event)) return 0; \
    lttng_ust_do_tracepoint(syncline, event, __VA_ARGS__);        \
    return 1;                                                     \
  } while (0)

static int On(uint32_t generation, uint32_t process, int32_t pid, uint64_t pidns,
              uint64_t start_ticks) {
  int taken = 0;
  if (!lttng_ust_tracepoint_enabled(syncline, on)) return 0;
  lttng_ust_do_tracepoint(syncline, on, generation, process, pid, pidns, start_ticks, &taken);
  return taken;
}
static int Off(uint32_t generation, uint32_t process, uint64_t events, uint64_t lost,
               uint64_t cost_ns) {
  EMIT(off, generation, process, events, lost, cost_ns);
}
static int Pause(uint32_t thread) { EMIT(pause, thread); }
static int Resume(uint32_t thread) { EMIT(resume, thread); }
static int Thread(uint32_t thread, uint32_t process, int32_t tid, const char* name) {
  EMIT(thread, thread, process, tid, name);
}
static int Name(uint32_t process, uint32_t id, uint8_t kind, const char* text) {
  EMIT(name, process, id, kind, text);
}

/* LTTng's own clock: a plugin may have replaced CLOCK_MONOTONIC. LTTng-UST loads it as it is loaded
 * itself, which is before us. */
static lttng_ust_clock_read64_function read_clock = syncline_monotonic_ns;
__attribute__((constructor)) static void FindClock(void) {
  lttng_ust_clock_read64_function read64 = 0;
  if (lttng_ust_trace_clock_get_read64_cb(&read64) == 0 && read64) read_clock = read64;
}
static uint64_t ClockNs(void) { return read_clock(); }

__attribute__((visibility("default"))) const struct syncline_emit syncline_emit = {
    On,
    Off,
    Pause,
    Resume,
    Thread,
    Name,
    ClockNs,
    lttng_ust_init_thread,
    lttng_ust_before_fork,
    lttng_ust_after_fork_parent,
    lttng_ust_after_fork_child,
};

__attribute__((visibility("default"))) int syncline_emit_canary(uint64_t nonce) {
  EMIT(canary, nonce);
}

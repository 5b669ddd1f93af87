// SPDX-License-Identifier: Apache-2.0
/* What a task pair writes, as plain LTTng-UST events: the benchmark's yardstick. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER syncline_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "instrumentation/bench/raw_tracepoints.h"

#if !defined(SYNCLINE_INSTRUMENTATION_BENCH_RAW_TRACEPOINTS_H_) || \
    defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SYNCLINE_INSTRUMENTATION_BENCH_RAW_TRACEPOINTS_H_

#include <lttng/tracepoint.h>
#include <stdint.h>

#define SYNCLINE_BENCH_EVENT(event)                                                               \
  LTTNG_UST_TRACEPOINT_EVENT(                                                                     \
      syncline_bench, event,                                                                      \
      LTTNG_UST_TP_ARGS(uint32_t, thread_arg, uint32_t, domain_arg, uint32_t, name_arg, uint16_t, \
                        depth_arg, uint16_t, number_arg),                                         \
      LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, thread, thread_arg)                   \
                              lttng_ust_field_integer(uint32_t, domain, domain_arg)               \
                                  lttng_ust_field_integer(uint32_t, name, name_arg)               \
                                      lttng_ust_field_integer(uint16_t, depth, depth_arg)         \
                                          lttng_ust_field_integer(uint16_t, number, number_arg)))

SYNCLINE_BENCH_EVENT(begin)
SYNCLINE_BENCH_EVENT(end)

#endif

#include <lttng/tracepoint-event.h>

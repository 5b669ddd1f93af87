// SPDX-License-Identifier: Apache-2.0
/* What a recorded send writes, as a plain LTTng-UST event: the benchmark's yardstick. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER syncline_bench_net

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "instrumentation/bench/raw_transfer.h"

#if !defined(SYNCLINE_INSTRUMENTATION_BENCH_RAW_TRANSFER_H_) || \
    defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SYNCLINE_INSTRUMENTATION_BENCH_RAW_TRANSFER_H_

#include <lttng/tracepoint.h>
#include <stdint.h>

/* Fields are macros without a comma between them, of which clang-format makes one line. */
/* clang-format off */

LTTNG_UST_TRACEPOINT_EVENT(syncline_bench_net, send,
    LTTNG_UST_TP_ARGS(uint32_t, thread_arg, uint64_t, connection_arg, uint64_t, begin_arg,
                      uint64_t, bytes_arg, uint64_t, since_arg),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, thread, thread_arg)
        lttng_ust_field_integer(uint64_t, connection, connection_arg)
        lttng_ust_field_integer(uint64_t, begin, begin_arg)
        lttng_ust_field_integer(uint64_t, bytes, bytes_arg)
        lttng_ust_field_integer(uint64_t, since, since_arg)))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>

// SPDX-License-Identifier: Apache-2.0
/* LTTng-UST events of the provider `syncline`. Their meaning is a recording format:
 * docs/event-schema.md.
 * LTTng includes this file several times; hence the unusual guard. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER syncline

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "instrumentation/block/tracepoints.h"

#if !defined(SYNCLINE_INSTRUMENTATION_BLOCK_TRACEPOINTS_H_) || \
    defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SYNCLINE_INSTRUMENTATION_BLOCK_TRACEPOINTS_H_

#include <lttng/tracepoint.h>
#include <stdint.h>

/* Fields are macros without a comma between them, of which clang-format makes one line. */
/* clang-format off */

/* A field is read when a session is active and has found room for the event: `taken` learns of it.
 * Nothing else tells: an enabled event is dropped in silence until its session is active. */
LTTNG_UST_TRACEPOINT_EVENT(syncline, on,
    LTTNG_UST_TP_ARGS(uint32_t, generation_arg, uint32_t, process_arg, int32_t, pid_arg,
                      uint64_t, pidns_arg, uint64_t, start_ticks_arg, int*, taken),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, generation, (*taken = 1, generation_arg))
        lttng_ust_field_integer(uint32_t, process, process_arg)
        lttng_ust_field_integer(int32_t, pid, pid_arg)
        lttng_ust_field_integer(uint64_t, pidns, pidns_arg)
        lttng_ust_field_integer(uint64_t, start_ticks, start_ticks_arg)))

LTTNG_UST_TRACEPOINT_EVENT(syncline, off,
    LTTNG_UST_TP_ARGS(uint32_t, generation_arg, uint32_t, process_arg, uint64_t, events_arg,
                      uint64_t, lost_arg, uint64_t, cost_ns_arg),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, generation, generation_arg)
        lttng_ust_field_integer(uint32_t, process, process_arg)
        lttng_ust_field_integer(uint64_t, events, events_arg)
        lttng_ust_field_integer(uint64_t, lost, lost_arg)
        lttng_ust_field_integer(uint64_t, cost_ns, cost_ns_arg)))

LTTNG_UST_TRACEPOINT_EVENT(syncline, pause, LTTNG_UST_TP_ARGS(uint32_t, thread_arg),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, thread, thread_arg)))

LTTNG_UST_TRACEPOINT_EVENT(syncline, resume, LTTNG_UST_TP_ARGS(uint32_t, thread_arg),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, thread, thread_arg)))

LTTNG_UST_TRACEPOINT_EVENT(syncline, thread,
    LTTNG_UST_TP_ARGS(uint32_t, thread_arg, uint32_t, process_arg, int32_t, tid_arg,
                      const char*, name_arg),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, thread, thread_arg)
        lttng_ust_field_integer(uint32_t, process, process_arg)
        lttng_ust_field_integer(int32_t, tid, tid_arg)
        lttng_ust_field_string(name, name_arg)))

LTTNG_UST_TRACEPOINT_EVENT(syncline, name,
    LTTNG_UST_TP_ARGS(uint32_t, process_arg, uint32_t, id_arg, uint8_t, kind_arg,
                      const char*, text_arg),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, process, process_arg)
        lttng_ust_field_integer(uint32_t, id, id_arg)
        lttng_ust_field_integer(uint8_t, kind, kind_arg)
        lttng_ust_field_string(text, text_arg)))

LTTNG_UST_TRACEPOINT_EVENT(syncline, canary, LTTNG_UST_TP_ARGS(uint64_t, nonce_arg),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, nonce, nonce_arg)))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>

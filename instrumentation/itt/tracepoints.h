// SPDX-License-Identifier: Apache-2.0
/* LTTng-UST events of the provider `syncline_itt`. Their meaning is a recording format:
 * docs/event-schema.md. LTTng includes this file several times; hence the unusual guard. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER syncline_itt

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "instrumentation/itt/tracepoints.h"

#if !defined(SYNCLINE_INSTRUMENTATION_ITT_TRACEPOINTS_H_) || \
    defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SYNCLINE_INSTRUMENTATION_ITT_TRACEPOINTS_H_

#include <lttng/tracepoint.h>
#include <stdint.h>

#include "instrumentation/itt/provider.h"

/* Fields are macros without a comma between them, of which clang-format makes one line. */
/* clang-format off */

/* Parts that events share. An argument list holds ten at most, hence the pointers. */
#ifndef SYNCLINE_AT
#define SYNCLINE_AT const struct syncline_itt_where*, at
#define SYNCLINE_ID(name) const struct itt_id*, name
#define SYNCLINE_FIELD_THREAD lttng_ust_field_integer(uint32_t, thread, at->thread)
#define SYNCLINE_FIELD_DOMAIN lttng_ust_field_integer(uint32_t, domain, at->domain)
#define SYNCLINE_FIELD_NAME lttng_ust_field_integer(uint32_t, name, at->name)
#define SYNCLINE_FIELD_KEY lttng_ust_field_integer(uint32_t, key, at->name)
#define SYNCLINE_FIELD_DEPTH lttng_ust_field_integer(uint16_t, depth, at->depth)
#define SYNCLINE_FIELD_NUMBER lttng_ust_field_integer(uint16_t, number, at->number)
#define SYNCLINE_FIELDS_D(id)                      \
  lttng_ust_field_integer(uint64_t, d1, (id)->d1)  \
  lttng_ust_field_integer(uint64_t, d2, (id)->d2)  \
  lttng_ust_field_integer(uint64_t, d3, (id)->d3)
#define SYNCLINE_FIELDS_P(id)                      \
  lttng_ust_field_integer(uint64_t, p1, (id)->d1)  \
  lttng_ust_field_integer(uint64_t, p2, (id)->d2)  \
  lttng_ust_field_integer(uint64_t, p3, (id)->d3)
#define SYNCLINE_FIELDS_E(id)                      \
  lttng_ust_field_integer(uint64_t, e1, (id)->d1)  \
  lttng_ust_field_integer(uint64_t, e2, (id)->d2)  \
  lttng_ust_field_integer(uint64_t, e3, (id)->d3)
#define SYNCLINE_FIELDS_TASK \
  SYNCLINE_FIELD_THREAD SYNCLINE_FIELD_DOMAIN SYNCLINE_FIELD_NAME SYNCLINE_FIELD_DEPTH \
  SYNCLINE_FIELD_NUMBER
#define SYNCLINE_FIELDS_TASK_PLAIN                        \
  lttng_ust_field_integer(uint32_t, thread, thread_arg)   \
  lttng_ust_field_integer(uint32_t, domain, domain_arg)   \
  lttng_ust_field_integer(uint32_t, name, name_arg)       \
  lttng_ust_field_integer(uint16_t, depth, depth_arg)     \
  lttng_ust_field_integer(uint16_t, number, number_arg)
#define SYNCLINE_FIELDS_METADATA \
  SYNCLINE_FIELD_THREAD SYNCLINE_FIELD_DOMAIN SYNCLINE_FIELD_KEY SYNCLINE_FIELD_DEPTH
#endif

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, task_begin,
    LTTNG_UST_TP_ARGS(uint32_t, thread_arg, uint32_t, domain_arg, uint32_t, name_arg,
                      uint16_t, depth_arg, uint16_t, number_arg),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELDS_TASK_PLAIN))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, task_begin_id,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, SYNCLINE_ID(id), SYNCLINE_ID(parent)),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELDS_TASK SYNCLINE_FIELDS_D(id) SYNCLINE_FIELDS_P(parent)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, task_begin_fn,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, uint64_t, function, SYNCLINE_ID(id), SYNCLINE_ID(parent)),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELDS_TASK lttng_ust_field_integer_hex(uint64_t, fn, function)
                        SYNCLINE_FIELDS_D(id) SYNCLINE_FIELDS_P(parent)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, task_begin_text,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, const char*, text),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELD_THREAD SYNCLINE_FIELD_DOMAIN SYNCLINE_FIELD_DEPTH
                        SYNCLINE_FIELD_NUMBER lttng_ust_field_string(name, text)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, task_end,
    LTTNG_UST_TP_ARGS(uint32_t, thread_arg, uint32_t, domain_arg, uint32_t, name_arg,
                      uint16_t, depth_arg, uint16_t, number_arg),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELDS_TASK_PLAIN))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, task_begin_overlapped,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, SYNCLINE_ID(id), SYNCLINE_ID(parent)),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELD_THREAD SYNCLINE_FIELD_DOMAIN SYNCLINE_FIELD_NAME
                        SYNCLINE_FIELDS_D(id) SYNCLINE_FIELDS_P(parent)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, task_end_overlapped,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, SYNCLINE_ID(id)),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELD_THREAD SYNCLINE_FIELD_DOMAIN SYNCLINE_FIELD_NAME
                        SYNCLINE_FIELDS_D(id)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, metadata_i64,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, SYNCLINE_ID(id), const int64_t*, numbers, size_t, count),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELDS_METADATA SYNCLINE_FIELDS_D(id)
                        lttng_ust_field_sequence(int64_t, values, numbers, size_t, count)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, metadata_u64,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, SYNCLINE_ID(id), const uint64_t*, numbers, size_t, count),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELDS_METADATA SYNCLINE_FIELDS_D(id)
                        lttng_ust_field_sequence(uint64_t, values, numbers, size_t, count)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, metadata_f64,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, SYNCLINE_ID(id), const uint64_t*, numbers, size_t, count),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELDS_METADATA SYNCLINE_FIELDS_D(id)
                        lttng_ust_field_sequence(uint64_t, values, numbers, size_t, count)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, metadata_text,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, SYNCLINE_ID(id), const char*, string),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELDS_METADATA SYNCLINE_FIELDS_D(id)
                        lttng_ust_field_string(text, string)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, metadata_name,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, SYNCLINE_ID(id), uint32_t, text_id),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELDS_METADATA SYNCLINE_FIELDS_D(id)
                        lttng_ust_field_integer(uint32_t, text, text_id)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, marker,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, uint8_t, scope_arg, SYNCLINE_ID(id)),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELD_THREAD SYNCLINE_FIELD_DOMAIN SYNCLINE_FIELD_NAME
                        lttng_ust_field_integer(uint8_t, scope, scope_arg) SYNCLINE_FIELDS_D(id)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, frame_begin,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, SYNCLINE_ID(id)),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELD_THREAD SYNCLINE_FIELD_DOMAIN SYNCLINE_FIELDS_D(id)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, frame_end,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, SYNCLINE_ID(id)),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELD_THREAD SYNCLINE_FIELD_DOMAIN SYNCLINE_FIELDS_D(id)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, frame_submit,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, SYNCLINE_ID(id), uint64_t, begin_arg, uint64_t, end_arg),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELD_THREAD SYNCLINE_FIELD_DOMAIN SYNCLINE_FIELDS_D(id)
                        lttng_ust_field_integer(uint64_t, begin, begin_arg)
                        lttng_ust_field_integer(uint64_t, end, end_arg)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, counter_i64,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, int64_t, number),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELD_THREAD SYNCLINE_FIELD_DOMAIN SYNCLINE_FIELD_NAME
                        lttng_ust_field_integer(int64_t, value, number)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, counter_u64,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, uint64_t, number),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELD_THREAD SYNCLINE_FIELD_DOMAIN SYNCLINE_FIELD_NAME
                        lttng_ust_field_integer(uint64_t, value, number)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, counter_f64,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, double, number),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELD_THREAD SYNCLINE_FIELD_DOMAIN SYNCLINE_FIELD_NAME
                        lttng_ust_field_float(double, value, number)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, counter_metadata,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, uint8_t, kind_arg, uint32_t, text_id, uint64_t, number),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELD_THREAD SYNCLINE_FIELD_DOMAIN SYNCLINE_FIELD_NAME
                        lttng_ust_field_integer(uint8_t, kind, kind_arg)
                        lttng_ust_field_integer(uint32_t, text, text_id)
                        lttng_ust_field_integer(uint64_t, value, number)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, event_start, LTTNG_UST_TP_ARGS(SYNCLINE_AT),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELD_THREAD SYNCLINE_FIELD_NAME))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, event_end, LTTNG_UST_TP_ARGS(SYNCLINE_AT),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELD_THREAD SYNCLINE_FIELD_NAME))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, relation,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, uint8_t, kind_arg, SYNCLINE_ID(d), SYNCLINE_ID(e)),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELD_THREAD SYNCLINE_FIELD_DOMAIN
                        lttng_ust_field_integer(uint8_t, kind, kind_arg)
                        SYNCLINE_FIELDS_D(d) SYNCLINE_FIELDS_E(e)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_itt, sync,
    LTTNG_UST_TP_ARGS(SYNCLINE_AT, uint8_t, kind_arg, uint64_t, object_arg),
    LTTNG_UST_TP_FIELDS(SYNCLINE_FIELD_THREAD
                        lttng_ust_field_integer(uint8_t, kind, kind_arg)
                        lttng_ust_field_integer_hex(uint64_t, object, object_arg)
                        SYNCLINE_FIELD_NAME))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>

// SPDX-License-Identifier: Apache-2.0
/* LTTng-UST events of the provider `syncline_device`. Their meaning is a recording format:
 * docs/event-schema.md. LTTng includes this file several times; hence the unusual guard. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER syncline_device

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "instrumentation/device/tracepoints.h"

#if !defined(SYNCLINE_INSTRUMENTATION_DEVICE_TRACEPOINTS_H_) || \
    defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SYNCLINE_INSTRUMENTATION_DEVICE_TRACEPOINTS_H_

#include <lttng/tracepoint.h>
#include <stdint.h>

#include "instrumentation/device/provider.h"

/* Fields are macros without a comma between them, of which clang-format makes one line. */
/* clang-format off */

LTTNG_UST_TRACEPOINT_EVENT(syncline_device, launch,
    LTTNG_UST_TP_ARGS(uint32_t, thread_arg, uint64_t, launch_arg, uint32_t, name_arg),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, thread, thread_arg)
        lttng_ust_field_integer(uint64_t, launch, launch_arg)
        lttng_ust_field_integer(uint32_t, name, name_arg)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_device, work,
    LTTNG_UST_TP_ARGS(uint32_t, thread_arg, const struct syncline_device_work*, at),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, thread, thread_arg)
        lttng_ust_field_integer(uint32_t, device, at->device)
        lttng_ust_field_integer(uint32_t, queue, at->queue)
        lttng_ust_field_integer(uint32_t, name, at->name)
        lttng_ust_field_integer(uint8_t, kind, at->kind)
        lttng_ust_field_integer(uint64_t, launch, at->launch)
        lttng_ust_field_integer(uint64_t, begin, at->begin)
        lttng_ust_field_integer(uint64_t, end, at->end)
        lttng_ust_field_integer(uint64_t, bound, at->bound)
        lttng_ust_field_integer(uint64_t, bytes, at->bytes)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_device, collective_call,
    LTTNG_UST_TP_ARGS(uint32_t, thread_arg, uint64_t, launch_arg, uint32_t, name_arg),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, thread, thread_arg)
        lttng_ust_field_integer(uint64_t, launch, launch_arg)
        lttng_ust_field_integer(uint32_t, name, name_arg)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_device, collective,
    LTTNG_UST_TP_ARGS(uint32_t, thread_arg, const struct syncline_device_collective*, at),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, thread, thread_arg)
        lttng_ust_field_integer(uint64_t, launch, at->launch)
        lttng_ust_field_integer(uint64_t, communicator, at->communicator)
        lttng_ust_field_integer(uint32_t, size, at->size)
        lttng_ust_field_integer(uint32_t, rank, at->rank)
        lttng_ust_field_integer(uint32_t, name, at->name)
        lttng_ust_field_integer(uint32_t, description, at->description)
        lttng_ust_field_integer(uint64_t, sequence, at->sequence)
        lttng_ust_field_integer(uint32_t, peer, at->peer)
        lttng_ust_field_integer(uint64_t, bytes, at->bytes)
        lttng_ust_field_integer(uint64_t, since, at->since)
        lttng_ust_field_integer(uint64_t, begin, at->begin)
        lttng_ust_field_integer(uint64_t, end, at->end)
        lttng_ust_field_integer(int64_t, ahead, at->ahead)
        lttng_ust_field_integer(uint64_t, waited, at->waited)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_device, tracing,
    LTTNG_UST_TP_ARGS(uint32_t, thread_arg, uint32_t, source_arg, uint8_t, state_arg),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, thread, thread_arg)
        lttng_ust_field_integer(uint32_t, source, source_arg)
        lttng_ust_field_integer(uint8_t, state, state_arg)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_device, lost,
    LTTNG_UST_TP_ARGS(uint32_t, thread_arg, uint32_t, source_arg, uint64_t, count_arg),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, thread, thread_arg)
        lttng_ust_field_integer(uint32_t, source, source_arg)
        lttng_ust_field_integer(uint64_t, count, count_arg)))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>

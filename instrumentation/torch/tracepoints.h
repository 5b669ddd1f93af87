// SPDX-License-Identifier: Apache-2.0
/* LTTng-UST events of the provider `syncline_torch`. Their meaning is a recording format:
 * docs/event-schema.md. LTTng includes this file several times; hence the unusual guard. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER syncline_torch

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "instrumentation/torch/tracepoints.h"

#if !defined(SYNCLINE_INSTRUMENTATION_TORCH_TRACEPOINTS_H_) || \
    defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SYNCLINE_INSTRUMENTATION_TORCH_TRACEPOINTS_H_

#include <lttng/tracepoint.h>
#include <stdint.h>

#include "instrumentation/torch/provider.h"

/* Fields are macros without a comma between them, of which clang-format makes one line. */
/* clang-format off */

LTTNG_UST_TRACEPOINT_EVENT(syncline_torch, operators,
    LTTNG_UST_TP_ARGS(uint32_t, thread_arg, uint8_t, on_arg),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, thread, thread_arg)
        lttng_ust_field_integer(uint8_t, on, on_arg)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_torch, group,
    LTTNG_UST_TP_ARGS(uint32_t, thread_arg, const struct syncline_torch_group*, g),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, thread, thread_arg)
        lttng_ust_field_integer(uint32_t, group, g->group)
        lttng_ust_field_integer(uint32_t, description, g->description)
        lttng_ust_field_integer(uint32_t, ranks, g->ranks)
        lttng_ust_field_integer(int32_t, rank, g->rank)
        lttng_ust_field_integer(uint32_t, size, g->size)
        lttng_ust_field_integer(uint64_t, sequence, g->sequence)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_torch, collective,
    LTTNG_UST_TP_ARGS(uint32_t, thread_arg, uint32_t, group_arg, uint32_t, name_arg,
                      uint64_t, sequence_arg, uint64_t, bytes_arg),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, thread, thread_arg)
        lttng_ust_field_integer(uint32_t, group, group_arg)
        lttng_ust_field_integer(uint32_t, name, name_arg)
        lttng_ust_field_integer(uint64_t, sequence, sequence_arg)
        lttng_ust_field_integer(uint64_t, bytes, bytes_arg)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_torch, root,
    LTTNG_UST_TP_ARGS(uint32_t, thread_arg, uint32_t, group_arg, int32_t, root_arg),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, thread, thread_arg)
        lttng_ust_field_integer(uint32_t, group, group_arg)
        lttng_ust_field_integer(int32_t, root, root_arg)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_torch, transfer_begin,
    LTTNG_UST_TP_ARGS(uint32_t, thread_arg, const struct syncline_torch_transfer*, t),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, thread, thread_arg)
        lttng_ust_field_integer(uint64_t, d1, t->id)
        lttng_ust_field_integer(uint32_t, group, t->group)
        lttng_ust_field_integer(uint32_t, name, t->name)
        lttng_ust_field_integer(int32_t, peer, t->peer)
        lttng_ust_field_integer(int32_t, tag, t->tag)
        lttng_ust_field_integer(uint64_t, bytes, t->bytes)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_torch, transfer_end,
    LTTNG_UST_TP_ARGS(uint32_t, thread_arg, uint64_t, id_arg, int32_t, peer_arg,
                      uint64_t, waited_arg),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, thread, thread_arg)
        lttng_ust_field_integer(uint64_t, d1, id_arg)
        lttng_ust_field_integer(int32_t, peer, peer_arg)
        lttng_ust_field_integer(uint64_t, waited, waited_arg)))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>

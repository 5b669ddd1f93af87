// SPDX-License-Identifier: Apache-2.0
/* LTTng-UST events of the provider `syncline_net`. Their meaning is a recording format:
 * docs/event-schema.md. LTTng includes this file several times; hence the unusual guard. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER syncline_net

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "instrumentation/net/tracepoints.h"

#if !defined(SYNCLINE_INSTRUMENTATION_NET_TRACEPOINTS_H_) || \
    defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SYNCLINE_INSTRUMENTATION_NET_TRACEPOINTS_H_

#include <lttng/tracepoint.h>
#include <stdint.h>

#include "instrumentation/net/provider.h"

/* Fields are macros without a comma between them, of which clang-format makes one line. */
/* clang-format off */

LTTNG_UST_TRACEPOINT_EVENT(syncline_net, connection,
    LTTNG_UST_TP_ARGS(const struct syncline_net_connection_fields*, at),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, thread, at->thread)
        lttng_ust_field_integer(uint64_t, connection, at->connection)
        lttng_ust_field_integer(uint64_t, sent, at->sent)
        lttng_ust_field_integer(uint64_t, received, at->received)
        lttng_ust_field_integer(uint32_t, retransmits, at->retransmits)
        lttng_ust_field_integer(uint32_t, rtt_us, at->rtt_us)
        lttng_ust_field_integer(uint16_t, local_port, at->local_port)
        lttng_ust_field_integer(uint16_t, remote_port, at->remote_port)
        lttng_ust_field_string(local, at->local)
        lttng_ust_field_string(remote, at->remote)))

LTTNG_UST_TRACEPOINT_EVENT(syncline_net, state,
    LTTNG_UST_TP_ARGS(uint32_t, thread_arg, uint64_t, connection_arg, uint64_t, sent_arg,
                      uint64_t, received_arg, uint32_t, retransmits_arg, uint32_t, rtt_us_arg),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, thread, thread_arg)
        lttng_ust_field_integer(uint64_t, connection, connection_arg)
        lttng_ust_field_integer(uint64_t, sent, sent_arg)
        lttng_ust_field_integer(uint64_t, received, received_arg)
        lttng_ust_field_integer(uint32_t, retransmits, retransmits_arg)
        lttng_ust_field_integer(uint32_t, rtt_us, rtt_us_arg)))

#ifndef SYNCLINE_NET_PLACED
#define SYNCLINE_NET_PLACED(event)                                                           \
  LTTNG_UST_TRACEPOINT_EVENT(                                                                \
      syncline_net, event,                                                                   \
      LTTNG_UST_TP_ARGS(uint32_t, thread_arg, uint64_t, connection_arg, uint64_t, begin_arg, \
                        uint64_t, bytes_arg, uint64_t, since_arg),                           \
      LTTNG_UST_TP_FIELDS(                                                                   \
          lttng_ust_field_integer(uint32_t, thread, thread_arg)                              \
          lttng_ust_field_integer(uint64_t, connection, connection_arg)                      \
          lttng_ust_field_integer(uint64_t, begin, begin_arg)                                \
          lttng_ust_field_integer(uint64_t, bytes, bytes_arg)                                \
          lttng_ust_field_integer(uint64_t, since, since_arg)))
#define SYNCLINE_NET_UNPLACED(event)                                                         \
  LTTNG_UST_TRACEPOINT_EVENT(                                                                \
      syncline_net, event,                                                                   \
      LTTNG_UST_TP_ARGS(uint32_t, thread_arg, uint64_t, connection_arg, uint64_t, bytes_arg, \
                        uint64_t, since_arg),                                                \
      LTTNG_UST_TP_FIELDS(                                                                   \
          lttng_ust_field_integer(uint32_t, thread, thread_arg)                              \
          lttng_ust_field_integer(uint64_t, connection, connection_arg)                      \
          lttng_ust_field_integer(uint64_t, bytes, bytes_arg)                                \
          lttng_ust_field_integer(uint64_t, since, since_arg)))
#endif

SYNCLINE_NET_PLACED(send)
SYNCLINE_NET_PLACED(receive)
SYNCLINE_NET_UNPLACED(send_unplaced)
SYNCLINE_NET_UNPLACED(receive_unplaced)

LTTNG_UST_TRACEPOINT_EVENT(syncline_net, doubt,
    LTTNG_UST_TP_ARGS(uint32_t, thread_arg, uint64_t, connection_arg, uint8_t, direction_arg,
                      uint64_t, expected_arg, uint64_t, found_arg),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, thread, thread_arg)
        lttng_ust_field_integer(uint64_t, connection, connection_arg)
        lttng_ust_field_integer(uint8_t, direction, direction_arg)
        lttng_ust_field_integer(uint64_t, expected, expected_arg)
        lttng_ust_field_integer(uint64_t, found, found_arg)))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>

// SPDX-License-Identifier: Apache-2.0
/* libsyncline_net_provider.so: the events of the provider `syncline_net`. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "instrumentation/net/provider.h"

/* Before the tracepoints. */
#include "instrumentation/block/whole_events.h"

#include "instrumentation/net/tracepoints.h"

/* A call that moved bytes whose place is known: nearly every one. */
struct Transfer {
  uint32_t thread;
  uint64_t connection;
  uint64_t begin;
  uint64_t bytes;
  uint64_t since;
} LTTNG_UST_RING_BUFFER_ALIGN_ATTR;

#define TRANSFER_PROBE(name)                                                                 \
  SYNCLINE_WHOLE_PROBE(name, Transfer, since, uint64_t,                                      \
                       (void* event, uint32_t thread, uint64_t connection, uint64_t begin,   \
                        uint64_t bytes, uint64_t since),                                     \
                       (event, thread, connection, begin, bytes, since), thread, connection, \
                       begin, bytes, since)
TRANSFER_PROBE(send)
TRANSFER_PROBE(receive)

SYNCLINE_WHOLE_EVENTS(SYNCLINE_WHOLE(send), SYNCLINE_WHOLE(receive))

#define EMIT(event, ...)                                              \
  do {                                                                \
    if (!lttng_ust_tracepoint_enabled(syncline_net, event)) return 0; \
    lttng_ust_do_tracepoint(syncline_net, event, __VA_ARGS__);        \
    return 1;                                                         \
  } while (0)

static int Connection(const struct syncline_net_connection_fields* at) { EMIT(connection, at); }
static int State(uint32_t thread, uint64_t connection, uint64_t sent, uint64_t received,
                 uint32_t retransmits, uint32_t rtt_us) {
  EMIT(state, thread, connection, sent, received, retransmits, rtt_us);
}
static int Send(uint32_t thread, uint64_t connection, uint64_t begin, uint64_t bytes,
                uint64_t since) {
  EMIT(send, thread, connection, begin, bytes, since);
}
static int Receive(uint32_t thread, uint64_t connection, uint64_t begin, uint64_t bytes,
                   uint64_t since) {
  EMIT(receive, thread, connection, begin, bytes, since);
}
static int SendUnplaced(uint32_t thread, uint64_t connection, uint64_t bytes, uint64_t since) {
  EMIT(send_unplaced, thread, connection, bytes, since);
}
static int ReceiveUnplaced(uint32_t thread, uint64_t connection, uint64_t bytes, uint64_t since) {
  EMIT(receive_unplaced, thread, connection, bytes, since);
}
static int Doubt(uint32_t thread, uint64_t connection, uint8_t direction, uint64_t expected,
                 uint64_t found) {
  EMIT(doubt, thread, connection, direction, expected, found);
}

__attribute__((visibility("default"))) const struct syncline_net_emit syncline_net_emit = {
    .connection = Connection,
    .state = State,
    .send = Send,
    .receive = Receive,
    .send_unplaced = SendUnplaced,
    .receive_unplaced = ReceiveUnplaced,
    .doubt = Doubt,
};

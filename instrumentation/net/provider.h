// SPDX-License-Identifier: Apache-2.0
/* The table through which libsyncline_net.so writes its events; see block/provider.h for why. */
#ifndef SYNCLINE_INSTRUMENTATION_NET_PROVIDER_H_
#define SYNCLINE_INSTRUMENTATION_NET_PROVIDER_H_

#include <stdint.h>

#define SYNCLINE_NET_PROVIDER_FILE "libsyncline_net_provider.so"
/* The table's symbol: `const struct syncline_net_emit`. */
#define SYNCLINE_NET_PROVIDER_SYMBOL "syncline_net_emit"

#define SYNCLINE_NET_ADDRESS_BYTES 48

struct syncline_net_connection_fields {
  uint32_t thread;
  uint64_t connection;
  char local[SYNCLINE_NET_ADDRESS_BYTES];
  char remote[SYNCLINE_NET_ADDRESS_BYTES];
  uint16_t local_port;
  uint16_t remote_port;
  uint64_t sent;
  uint64_t received;
  uint32_t retransmits;
  uint32_t rtt_us;
};

/* Each returns 1 when a session takes the event, 0 when none does. docs/event-schema.md. */
struct syncline_net_emit {
  int (*connection)(const struct syncline_net_connection_fields* fields);
  int (*state)(uint32_t thread, uint64_t connection, uint64_t sent, uint64_t received,
               uint32_t retransmits, uint32_t rtt_us);
  int (*send)(uint32_t thread, uint64_t connection, uint64_t begin, uint64_t bytes, uint64_t since);
  int (*receive)(uint32_t thread, uint64_t connection, uint64_t begin, uint64_t bytes,
                 uint64_t since);
  int (*send_unplaced)(uint32_t thread, uint64_t connection, uint64_t bytes, uint64_t since);
  int (*receive_unplaced)(uint32_t thread, uint64_t connection, uint64_t bytes, uint64_t since);
  int (*doubt)(uint32_t thread, uint64_t connection, uint8_t direction, uint64_t expected,
               uint64_t found);
};

#endif /* SYNCLINE_INSTRUMENTATION_NET_PROVIDER_H_ */

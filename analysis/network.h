// SPDX-License-Identifier: Apache-2.0
// What the kernels of a recording's nodes said of the TCP connections of its processes
// (evidence/connection_samples.h): what was sent to whom, what was
// retransmitted, and what connections waited for.
//
// A connection is seen by its end on each node. What one end counts is what it sends; both ends are
// brought together by their addresses, which name a connection but for translation of addresses
// between them. Amounts are what grew from the last reading before the window, or the first one
// inside, to the first one behind it, or the last one inside: up to a round more than the window.
//
// Pure. Thread-safe: no state.
#ifndef SYNCLINE_ANALYSIS_NETWORK_H_
#define SYNCLINE_ANALYSIS_NETWORK_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/identity.h"
#include "evidence/connection_samples.h"

namespace syncline::analysis {

// Sums over connections; -1: not all kernels say it.
struct ConnectionSums {
  int64_t sent_bytes = 0;  // with those sent again
  int64_t retransmitted_bytes = 0;
  int64_t sent_segments = 0;  // with data, and with those sent again
  int64_t retransmitted_segments = 0;
  int64_t duplicates = 0;  // segments that the receiver reported as not needed
  int64_t busy_us = 0;
  int64_t window_full_us = 0;
  int64_t buffer_short_us = 0;
};

// One end of one connection.
struct ConnectionUsage {
  ProcessKey process;  // node: 0
  uint64_t network_namespace = 0;
  std::string local;  // "10.0.0.1:2222"
  std::string remote;
  ConnectionSums sums;
  int64_t min_rtt_us = -1;         // -1: not known
  std::vector<int64_t> rtts_us;    // smoothed ones, of readings between which it has sent
  int64_t unsent_bytes_most = -1;  // in a reading
};

// Of connections with two readings or more that lie around or in [begin_ns, end_ns], of the node's
// clock.
std::vector<ConnectionUsage> UsagesOf(const evidence::ConnectionSamples& samples, int64_t begin_ns,
                                      int64_t end_ns);

// A recorded process.
struct NetworkEnd {
  std::string node;
  std::string process;  // "worker-0 · rank 1 · python train.py"
  int32_t rank = -1;

  auto operator<=>(const NetworkEnd&) const = default;
};

// What one process sends to another, over all their connections.
struct NetworkLink {
  NetworkEnd from;
  std::optional<NetworkEnd> to;
  std::string remote;  // without `to`: the address, without the port
  uint32_t connections = 0;
  ConnectionSums sums;
  int64_t min_rtt_us = -1;     // of all connections
  int64_t median_rtt_us = -1;  // of the smoothed ones
  int64_t unsent_bytes_most = -1;

  // Of 1; nullopt: not known, or nothing was sent.
  std::optional<double> retransmitted_share() const;
  std::optional<double> window_full_share() const;  // of the time in which it had data to send
  std::optional<double> buffer_short_share() const;
};

struct NodeConnections {
  std::vector<ConnectionUsage> usages;
  // Beside `usages`: who it is; nullopt: the recording does not say.
  std::vector<std::optional<NetworkEnd>> ends;
};

// By sender, then receiver. Links that sent nothing are left out. `nodes`: by their number.
std::vector<NetworkLink> LinksOf(std::span<const NodeConnections> nodes);

// What is not as it is in a network that works.
struct NetworkFinding {
  enum class Kind : uint8_t {
    kRetransmitted,  // segments were lost, as far as is known
    kBufferShort,    // the send buffer is too small for the way
    kSlowPair,       // the fastest round trip takes far longer than between other nodes
  };
  Kind kind = Kind::kRetransmitted;
  NetworkLink link;
  int64_t usual_rtt_us = -1;  // kSlowPair: the median of the other pairs of nodes
};

// The most first, by kind.
std::vector<NetworkFinding> FindingsOf(std::span<const NetworkLink> links);

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_NETWORK_H_

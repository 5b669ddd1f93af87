// SPDX-License-Identifier: Apache-2.0
// What a node's kernel said of the TCP connections of a job's processes: what was sent, what had to
// be sent again, for how long a connection stood still and why, and how long a round trip took. The
// agent samples it (agent/connections) and writes it as text (docs/recording-format.md,
// "nodes/NODE/evidence/connections.txt"); this reads it back.
//
// All times are ns of the node's CLOCK_MONOTONIC, the clock of its traces. What a kernel does not
// say is absent, never 0.
//
// Thread-safety: plain values, no state.
#ifndef SYNCLINE_EVIDENCE_CONNECTION_SAMPLES_H_
#define SYNCLINE_EVIDENCE_CONNECTION_SAMPLES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "evidence/process_identity.h"

namespace syncline::evidence {

inline constexpr char kConnectionsFileName[] = "connections.txt";  // in nodes/NODE/evidence
inline constexpr char kConnectionsHead[] = "syncline-connections 1";

// What a sample has, of the kernel's struct tcp_info. Those from kSentBytes on only grow.
enum class ConnectionValue : uint8_t {
  kRttUs,               // smoothed by the kernel
  kMinRttUs,            // of the last minutes, by the kernel's choice
  kDeliveryRate,        // bytes a second that were delivered, as the kernel estimated it last
  kUnsentBytes,         // the program has written them, and they have not been sent
  kSentBytes,           // with those that were sent again
  kRetransmittedBytes,  // sent again, because the kernel took them for lost
  kReceivedBytes,
  kSentSegments,  // that hold data
  kRetransmittedSegments,
  kDuplicates,     // the receiver said that it had it already: sent again without need
  kBusyUs,         // data waited to be sent or to be acknowledged
  kWindowFullUs,   // of it, the receiver's window was full
  kBufferShortUs,  // of it, the send buffer was too small to hold more
};
inline constexpr size_t kConnectionValues = 13;
// "rtt_us": as the file and JSON call it.
const char* ConnectionValueName(ConnectionValue value);

// Of one connection; -1: absent.
class ConnectionValues {
 public:
  ConnectionValues() { values_.fill(-1); }
  std::optional<int64_t> Get(ConnectionValue value) const {
    const int64_t known = values_[static_cast<size_t>(value)];
    return known < 0 ? std::nullopt : std::optional(known);
  }
  // What is negative, or more than there can be, is absent.
  void Set(ConnectionValue value, uint64_t amount);
  bool operator==(const ConnectionValues&) const = default;

 private:
  std::array<int64_t, kConnectionValues> values_;
};

struct Connection {
  uint32_t process = 0;  // index into ConnectionSamples::processes
  // Of the addresses: two connections with the same ones may be different in two namespaces.
  uint64_t network_namespace = 0;  // its inode
  std::string local;               // "10.0.0.1:2222", "[fd00::1]:2222"
  std::string remote;
};

struct ConnectionSample {
  uint32_t connection = 0;
  int64_t at_ns = 0;  // read between this and `until_ns`
  int64_t until_ns = 0;
  ConnectionValues values;
};

struct ConnectionSamples {
  std::vector<ProcessIdentity> processes;
  std::vector<Connection> connections;
  // By time. Of a connection of which nothing changed none is written. Where something then did,
  // the last round before it is filled in: what grew, did so since then.
  std::vector<ConnectionSample> samples;
  std::vector<int64_t> rounds_ns;  // when all connections had been read; they only grow
  int64_t cost_ns = -1;            // processor time that sampling took; -1: unknown
  std::vector<std::string> notes;
  bool ended = false;
  uint64_t damaged_lines = 0;
};

// InvalidArgument: no samples of a version that is known. Lines that are cut or damaged are left
// out and counted. What refers to something refers to what is there.
absl::StatusOr<ConnectionSamples> ParseConnectionSamples(std::string_view text);

// Each appends one line.
void AppendConnectionsHead(std::string* out);
void Append(const Connection& connection, std::string* out);
void Append(const ConnectionSample& sample, std::string* out);
void AppendRound(int64_t at_ns, std::string* out);
// Append (process_identity.h), AppendCost (code_samples.h), AppendNote and AppendEnd (write.h) do
// the rest.

}  // namespace syncline::evidence

#endif  // SYNCLINE_EVIDENCE_CONNECTION_SAMPLES_H_

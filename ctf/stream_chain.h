// SPDX-License-Identifier: Apache-2.0
// Streams that one writer wrote, one after the other: in files of limited size, in the archives of
// rotations, in snapshots. Packets carry their writer's number. Between two streams a number that
// is missing is a packet that is lost, as it is within one. A packet that was saved twice
// (snapshots that overlap, a copy beside the original) is read once, but only if it is there whole,
// with the same bytes, in another stream: nothing is passed over for its number alone.
//
// The same writer is told by the trace's uuid, the stream's class and its instance. Writers other
// than LTTng may give the same to different streams: two that share numbers and no packet, or of
// which the later one is older, are left as they are.
#ifndef SYNCLINE_CTF_STREAM_CHAIN_H_
#define SYNCLINE_CTF_STREAM_CHAIN_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/event_cursor.h"
#include "ctf/layout.h"
#include "ctf/packet_walker.h"

namespace syncline::ctf {

// Where the packets of a stream stand among all that its writer wrote.
struct StreamPlace {
  uint64_t stream_class = 0;
  uint64_t instance = 0;
  uint64_t first = 0;  // numbers of its packets
  uint64_t last = 0;
  uint64_t lost_behind = 0;           // packets that its index lists behind its end
  std::optional<uint64_t> discarded;  // events, as the writer counted them at the last
  int64_t begin_ns = 0;               // trace clock
  int64_t end_ns = 0;
};

// A packet with a number.
struct PacketMark {
  uint64_t number = 0;
  uint64_t offset = 0;  // bytes, in its stream
  std::optional<uint64_t> begin_cycles;
  bool whole = false;  // closed, and nothing of it is missing
  uint64_t hash = 0;   // of its bytes, if it is
};

// What OpenTrace's readers are, too.
class ChainedReader {
 public:
  virtual ~ChainedReader() = default;
  virtual std::optional<Uuid> uuid() const = 0;
  // Beside TraceReader::streams(); nullopt: its packets do not say.
  virtual std::span<const std::optional<StreamPlace>> places() const = 0;
  // As far as it can be read.
  virtual std::vector<PacketMark> MarksOf(size_t stream) const = 0;
  // What the stream goes on from.
  virtual void GoOnFrom(size_t stream, StreamBefore before) = 0;
  virtual const StreamBefore& before(size_t stream) const = 0;
};

// What there is to say of a stream that shares packets with others.
struct Again {
  const TraceReader* reader = nullptr;
  size_t stream = 0;
  uint64_t packets = 0;    // that are read elsewhere
  uint64_t different = 0;  // that have the number of another one and are not the same: read, too
};

// Chains the streams of readers that share a clock; of several calls the last one holds. To be
// called before streams are opened. Readers of other formats are passed over. Reads the packets of
// streams that share numbers, and of others nothing.
std::vector<Again> ChainStreams(std::span<TraceReader* const> readers);

// Writers whose first packet here is not the first that they wrote, by its number: what came before
// was overwritten or cut off, or is in another trace.
struct LateBegins {
  uint64_t writers = 0;
  uint64_t packets = 0;  // that came before
};
LateBegins FindLateBegins(std::span<TraceReader* const> readers);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_STREAM_CHAIN_H_

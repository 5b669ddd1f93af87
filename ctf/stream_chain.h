// Streams that one writer wrote, one after the other: in files of limited size, in the archives of
// rotations, in snapshots. Packets carry their writer's number; between two streams a number that
// is missing is a packet that is lost, as it is within one, and one that is there already was
// saved twice (snapshots that overlap, a copy beside the original): it is read once.
//
// The same writer is told by the trace's uuid, the stream's class and its instance. Writers other
// than LTTng may give the same to different streams: where two have a packet of one number, it
// must be the same packet, else they are left as they are.
#ifndef SYNCLINE_CTF_STREAM_CHAIN_H_
#define SYNCLINE_CTF_STREAM_CHAIN_H_

#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
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
  std::optional<uint64_t> discarded;  // events, as the writer counted them at the last
  int64_t begin_ns = 0;               // trace clock
  int64_t end_ns = 0;
};

// Of a packet with a number; it stands for its contents.
struct PacketMark {
  std::optional<uint64_t> begin_cycles;
  std::optional<uint64_t> end_cycles;
  std::optional<uint64_t> content_bits;
  bool operator==(const PacketMark&) const = default;
};

// What OpenTrace's readers are, too.
class ChainedReader {
 public:
  virtual ~ChainedReader() = default;
  virtual std::optional<Uuid> uuid() const = 0;
  // Beside TraceReader::streams(); nullopt: its packets do not say.
  virtual std::span<const std::optional<StreamPlace>> places() const = 0;
  // The packet of that number; nullopt: there is none, or it cannot be read.
  virtual std::optional<PacketMark> MarkOf(size_t stream, uint64_t number) const = 0;
  // What the stream goes on from. nullopt: nothing.
  virtual void GoOnFrom(size_t stream, std::optional<StreamBefore> before) = 0;
  virtual const std::optional<StreamBefore>& before(size_t stream) const = 0;
};

// Packets that lie in an earlier stream as well.
struct Again {
  const TraceReader* reader = nullptr;
  size_t stream = 0;
  uint64_t packets = 0;
};

// Chains the streams of readers that share a clock; of several calls the last one holds. To be
// called before streams are opened. Readers of other formats are passed over.
std::vector<Again> ChainStreams(std::span<TraceReader* const> readers);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_STREAM_CHAIN_H_

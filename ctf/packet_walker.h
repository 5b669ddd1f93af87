// SPDX-License-Identifier: Apache-2.0
// The packets of one stream, one after the other, from their headers alone; and what their headers
// say was lost. Damage never stops it: it goes on at the next place where a packet verifiably
// begins.
//
// How damage is told apart. A packet is trusted when its header is sound and another sound packet,
// or the end of the stream, follows where it says it ends. When nothing sound follows, either its
// size is wrong (then a packet begins somewhere inside of it) or what follows is damaged (then one
// begins behind). Both are found by searching the signature that every packet begins with (magic
// number and uuid). A packet whose magic number, uuid or stream id alone is damaged is still used
// when it fits the chain.
//
// Loss intervals are in the stream's clock, ns; kUnknownLo/kUnknownHi where no packet bounds them.
#ifndef SYNCLINE_CTF_PACKET_WALKER_H_
#define SYNCLINE_CTF_PACKET_WALKER_H_

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/loss.h"
#include "ctf/byte_source.h"
#include "ctf/index_sizes.h"
#include "ctf/packet_header.h"

namespace syncline::ctf {

struct Packet {
  // A clock value that is later is damage: it stands for no time, or for none that can be told from
  // kUnknownHi (CyclesToNs ends there).
  static constexpr int64_t kLatestNs = kUnknownHi - 1;

  PacketHeader header;
  uint64_t offset = 0;        // bytes from the start of the stream
  uint64_t bytes = 0;         // present in the stream: up to the next packet
  uint64_t content_bits = 0;  // may be decoded; at most 8 * bytes
  // The content's size is not known: events end where they stop making sense.
  bool open_ended = false;
  // The content ends before it should (cut file, wrong size): an event may be cut at its end.
  bool cut = false;
  int64_t begin_ns = 0;
  std::optional<int64_t> end_ns;
  std::optional<int64_t> next_begin_ns;  // of the packet that follows, when that is sound
  bool end_is_early = false;             // its last events may lie behind it, none says how far
  std::optional<size_t> loss;            // what this packet lacks, as an index into losses()

  // No event of it is later; nullopt: nothing says so. One may lie behind the packet's end when the
  // tracer wrote a wrong one, but not behind the next packet's begin.
  std::optional<int64_t> latest_ns() const {
    if (!end_ns || end_is_early) return std::nullopt;
    return std::min(std::max(*end_ns, next_begin_ns.value_or(*end_ns)), kLatestNs);
  }
};

// What the writer of a stream wrote before it, in others (stream_chain.h).
struct StreamBefore {
  std::optional<uint64_t> number;     // of the last packet; nullopt: it is not known
  std::optional<uint64_t> discarded;  // events, as counted at it
  int64_t end_ns = kUnknownLo;        // of it
  // Where packets of this stream begin that are read in another one; ascending.
  std::shared_ptr<const std::vector<uint64_t>> elsewhere;
};

// Packets that begin in [begin, end), bytes; a packet begins at `begin`.
struct PacketRange {
  uint64_t begin = 0;
  uint64_t end = UINT64_MAX;
  StreamBefore before;
  std::filesystem::path indexed;  // the stream's file, whose index is asked, too; empty: none is
};

class PacketWalker {
 public:
  // `layout` and `source` must outlive the walker. `name` becomes Loss::source.
  PacketWalker(const TraceLayout& layout, ByteSource& source, std::string name,
               const PacketRange& range = {});

  // The next packet; nullopt at the end. An error means that the source cannot be read.
  absl::StatusOr<std::optional<Packet>> Next();

  std::span<const Loss> losses() const { return losses_; }
  // Whoever decodes the events adds what it finds lost, and narrows a loss to where decoding ended.
  void AddLoss(Loss loss) { losses_.push_back(std::move(loss)); }
  void NarrowLoss(size_t index, int64_t begin_ns);
  uint64_t packets() const { return packets_; }
  uint64_t sequence_gaps() const { return sequence_gaps_; }
  uint64_t discarded_events() const { return discarded_events_; }
  // Of the newest packet that said so.
  const std::optional<uint64_t>& last_sequence() const { return last_sequence_; }
  const std::optional<uint64_t>& last_discarded() const { return last_discarded_; }
  bool discarded_events_valid() const { return discarded_valid_; }
  // Every packet so far was closed and whole, and nothing follows the last one.
  bool closed() const { return closed_; }

 private:
  struct Candidate {
    HeaderState state = HeaderState::kTooShort;
    PacketHeader header;
    bool sound() const { return state == HeaderState::kOk; }
  };

  absl::StatusOr<Candidate> HeaderAt(uint64_t offset);
  absl::StatusOr<bool> PacketOrEndAt(uint64_t offset, Packet* before = nullptr);
  absl::StatusOr<std::optional<uint64_t>> FindPacket(uint64_t from, uint64_t to);
  absl::Status ChooseStream();
  absl::StatusOr<bool> FitsChain(const Candidate& candidate);
  absl::StatusOr<bool> IsNextByNumber(const PacketHeader& header, uint64_t next);
  void SayDamaged(const Candidate& candidate);
  absl::StatusOr<bool> SkipDamage(const Candidate& candidate);
  absl::StatusOr<Packet> Measure(const Candidate& candidate);
  absl::Status MeasureOpen(Packet& packet, bool bad_sizes);
  absl::Status MeasureClosed(Packet& packet);
  void CompareWithIndex(Packet& packet);
  bool IsElsewhere(uint64_t offset) const;
  void PassOver(const Packet& packet);
  void Count(const Packet& packet);
  void GoOnBehind(const Packet& packet);
  void CountSequence(const Packet& packet);
  void CountDiscarded(const Packet& packet);
  void KeepOddCount(const Packet& packet);
  void SettleOddCount();
  void LoseBefore(LossReason reason, std::string detail);
  void LoseIn(Packet& packet, LossReason reason, std::string detail);
  void SettlePending(int64_t end_ns);

  const TraceLayout& layout_;
  ByteSource& source_;
  std::string name_;
  std::vector<uint8_t> signature_;
  uint64_t offset_ = 0;
  uint64_t end_ = UINT64_MAX;             // packets from here on are not wanted
  uint64_t clock_ = 0;                    // cycles, for short timestamps
  const StreamLayout* stream_ = nullptr;  // of the packets so far
  bool skipped_ = false;                  // damage lies before the next packet
  int64_t last_ns_ = kUnknownLo;          // end of what was read so far
  std::shared_ptr<const std::vector<uint64_t>> elsewhere_;
  std::optional<IndexSizes> index_;
  std::optional<uint64_t> last_sequence_;
  std::optional<uint64_t> last_discarded_;
  // A count of discarded events with bit 63 set, which the next one without is to explain.
  struct OddCount {
    std::optional<uint64_t> before;  // the sound one before it
    uint64_t low_bits = 0;           // all but that one
    int64_t begin_ns = 0;            // of the first of a row of them, where its loss begins
    int64_t end_ns = 0;              // of the last
  };
  std::optional<OddCount> odd_count_;
  bool early_ends_ = false;  // the tracer may end a packet before its last events
  std::vector<Loss> losses_;
  std::vector<size_t> pending_;  // losses whose end the next packet tells
  uint64_t packets_ = 0;
  uint64_t sequence_gaps_ = 0;
  uint64_t discarded_events_ = 0;
  bool discarded_valid_ = true;
  bool closed_ = true;
};

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_PACKET_WALKER_H_

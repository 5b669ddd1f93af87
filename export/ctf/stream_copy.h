// SPDX-License-Identifier: Apache-2.0
// One stream of a trace again, packet by packet, with its times moved.
//
// Some packets are read at a time, to where they are made. As long as every event of them is wanted
// and keeps its size, only the times are written over (event_times.h); what that stops at is
// written event by event, from the original, straight into the file.
#ifndef SYNCLINE_EXPORT_CTF_STREAM_COPY_H_
#define SYNCLINE_EXPORT_CTF_STREAM_COPY_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ctf/byte_source.h"
#include "ctf/decoder.h"
#include "ctf/packet_walker.h"
#include "export/ctf/event_times.h"
#include "export/ctf/header_places.h"
#include "export/ctf/trace_copy.h"

namespace syncline::ctf_export {

class StreamCopy {
 public:
  // All outlive it. `room` is where packets are made, and may be used again for the next stream; it
  // grows to the largest packet, to 2 MiB at least.
  StreamCopy(const ctf::TraceLayout& layout, ctf::ByteSource& source, const ctf::Uuid& uuid,
             timeline::Placement& placement, const CopyOptions& options,
             const ctf::PacketRange& range, std::vector<uint8_t>& room)
      : source_(source),
        uuid_(uuid),
        placement_(placement),
        options_(options),
        walker_(layout, source, "", range),
        decoder_(layout),
        room_(room) {}

  // `out` is empty, and its errors are its own.
  absl::Status Run(std::ostream& out);

  uint64_t events() const { return events_; }
  uint64_t bytes() const { return bytes_; }

 private:
  // A packet of the run at hand.
  struct Piece {
    ctf::Packet packet;
    std::optional<int64_t> end_ns;
    bool wanted = true;  // false: it ends before the window begins
    size_t begin = 0;    // in room_
    std::optional<HeaderPlaces> places;
    TimeLane lane;  // without a stream: not for lanes
  };

  // What a finished packet says of itself.
  struct Extent {
    TimelineTime begin;
    uint64_t content_bits = 0;
    uint64_t bytes = 0;
  };

  absl::StatusOr<bool> Collect();
  absl::Status Read(Piece& piece);
  void MakeLane(Piece& piece);
  std::optional<clocksync::ClockLine> LineAt(uint64_t clock);
  void RewriteAll();
  bool PassStop(TimeLane& lane);
  absl::Status Write(const Piece& piece, std::ostream& out);
  absl::Status WriteByEvent(const Piece& piece, bool in_order, std::ostream& out);
  void TakeOver(const Piece& piece, std::span<const uint8_t> bytes, std::ostream& out);
  void CopyEvents(const ctf::Packet& packet, std::span<const uint8_t> bytes, std::ostream& out);
  void Emit(ctf::FastHeader kind, const ctf::FoundEvent& event, std::span<const uint8_t> packet,
            uint64_t value);
  absl::Status PutHeader(const Piece& piece, const Extent& extent, uint8_t* header);
  void Flush(std::ostream& out);
  void FlushMade(std::ostream& out);

  bool IsOpen() const { return options_.window.begin.ns == kUnknownLo; }
  bool IsAllWanted(const ctf::Packet& packet);
  // A packet without events: of a cut, and where no reader takes its begin for a time (a damaged
  // header).
  bool LeavesOut(uint64_t events, TimelineTime begin) const {
    return events == 0 && (!IsOpen() || ValueOf(begin) >> 63 != 0);
  }
  // The corrected clock's value.
  uint64_t ValueOf(TimelineTime time) const {
    return static_cast<uint64_t>(time.ns) + static_cast<uint64_t>(options_.epoch_unix_ns);
  }

  ctf::ByteSource& source_;
  const ctf::Uuid& uuid_;
  timeline::Placement& placement_;
  const CopyOptions& options_;
  ctf::PacketWalker walker_;
  ctf::PacketDecoder decoder_;
  std::vector<uint8_t>& room_;
  std::optional<ctf::Packet> next_;  // for the next run
  std::vector<Piece> run_;
  // What of room_ is finished and not yet written.
  size_t ready_begin_ = 0;
  size_t ready_end_ = 0;
  // The packet that is written event by event.
  std::vector<uint8_t> made_;     // of it, and not yet written
  size_t made_begin_ = 0;         // where in the packet that begins
  uint64_t content_bits_ = 0;     // of the packet so far
  uint64_t value_ = 0;            // of the event before, corrected
  int64_t last_ns_ = kUnknownLo;  // the same, by the trace's clock
  uint64_t clock_ = 0;            // the trace's clock there, in cycles
  uint64_t events_ = 0;
  uint64_t bytes_ = 0;  // of finished packets
};

}  // namespace syncline::ctf_export

#endif  // SYNCLINE_EXPORT_CTF_STREAM_COPY_H_

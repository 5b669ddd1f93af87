#include "ctf/scan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "common/status.h"
#include "ctf/byte_source.h"
#include "ctf/cursor.h"
#include "ctf/lanes.h"
#include "ctf/packet_walker.h"

namespace syncline::ctf {
namespace {

constexpr uint64_t kPartsPerTrace = 16;
constexpr uint64_t kPartBytesMin = uint64_t{1} << 20;

// Stretches of streams, one after the other.
class Parts {
 public:
  Parts(std::shared_ptr<const TraceLayout> layout, std::span<const ScanStream> streams)
      : layout_(std::move(layout)), streams_(streams) {
    uint64_t total = 0;
    for (const ScanStream& stream : streams) total += stream.bytes;
    part_bytes_ = std::max(kPartBytesMin, total / kPartsPerTrace);
  }

  // Null when there is none left.
  absl::StatusOr<std::unique_ptr<CtfCursor>> Next() {
    if (stream_ == streams_.size()) return nullptr;
    const ScanStream& stream = streams_[stream_];
    if (offsets_.empty()) SYNCLINE_RETURN_IF_ERROR(Cut(stream));
    CursorRange range;
    range.begin_byte = offsets_[part_++];
    if (part_ < offsets_.size()) {
      range.end_byte = offsets_[part_];
    } else {
      ++stream_;
      part_ = 0;
      offsets_.clear();
    }
    return std::make_unique<CtfCursor>(layout_, FileWindow::OfSize(*stream.file, stream.bytes),
                                       *stream.info, range);
  }

 private:
  // Finds where packets begin that may begin a part: nowhere in a damaged stream, because behind
  // damage it takes what came before to go on.
  absl::Status Cut(const ScanStream& stream) {
    offsets_ = {0};
    if (stream.bytes <= part_bytes_) return absl::OkStatus();
    SYNCLINE_ASSIGN_OR_RETURN(const auto source, FileReader::Open(*stream.file));
    PacketWalker walker(*layout_, *source, stream.info->name);
    for (;;) {
      SYNCLINE_ASSIGN_OR_RETURN(const auto packet, walker.Next());
      if (!packet) break;
      if (packet->offset - offsets_.back() >= part_bytes_) offsets_.push_back(packet->offset);
    }
    if (!walker.closed() || !walker.losses().empty()) offsets_ = {0};
    return absl::OkStatus();
  }

  std::shared_ptr<const TraceLayout> layout_;
  std::span<const ScanStream> streams_;
  uint64_t part_bytes_ = 0;
  size_t stream_ = 0;
  std::vector<uint64_t> offsets_;  // of the stream's parts
  size_t part_ = 0;
};

class Scanner {
 public:
  Scanner(Parts parts, std::span<const EventLayout* const> events, TraceReader::Visit visit)
      : parts_(std::move(parts)), visit_(visit) {
    for (Seat& seat : seats_) seat.records.emplace(events, visit_);
  }

  absl::StatusOr<std::vector<Loss>> Run() {
    for (;;) {
      bool any = false;
      for (Seat& seat : seats_) {
        SYNCLINE_RETURN_IF_ERROR(Enter(seat));
        any |= seat.cursor != nullptr;
      }
      if (!any) return std::move(losses_);
      SYNCLINE_RETURN_IF_ERROR(Turn());
    }
  }

 private:
  struct Seat {
    std::unique_ptr<CtfCursor> cursor;   // null: no part is left for it
    std::optional<LaneRecords> records;  // of the packet that the cursor stands in
  };

  // Lets the seat stand in a packet; at the end of a part it goes on with the next one.
  absl::Status Enter(Seat& seat) {
    if (seat.cursor != nullptr && !seat.cursor->InPacket()) {
      SYNCLINE_RETURN_IF_ERROR(seat.records->VisitAll(*seat.cursor));
    }
    for (;;) {
      if (seat.cursor == nullptr) {
        SYNCLINE_ASSIGN_OR_RETURN(seat.cursor, parts_.Next());
        if (seat.cursor == nullptr) return absl::OkStatus();
      }
      SYNCLINE_ASSIGN_OR_RETURN(const bool entered, seat.cursor->Enter());
      if (entered) return absl::OkStatus();
      const auto found = seat.cursor->losses();
      losses_.insert(losses_.end(), found.begin(), found.end());
      seat.cursor.reset();
    }
  }

  absl::Status Turn() {
    std::array<Lane, kLanes> lanes;
    std::array<Seat*, kLanes> in_lane;
    std::array<Seat*, kLanes> alone;
    size_t lane_count = 0;
    size_t alone_count = 0;
    for (Seat& seat : seats_) {
      if (seat.cursor == nullptr) continue;
      std::optional<Lane> lane = seat.cursor->BeginLane();
      if (!lane) {
        alone[alone_count++] = &seat;
        continue;
      }
      lane->cursor = seat.cursor.get();
      lane->records = &*seat.records;
      lanes[lane_count] = *lane;
      in_lane[lane_count++] = &seat;
    }
    WalkLanes({lanes.data(), lane_count});
    for (size_t i = 0; i < lane_count; ++i) {
      in_lane[i]->cursor->EndLane(lanes[i]);
      SYNCLINE_RETURN_IF_ERROR(in_lane[i]->records->status());
      if (lanes[i].stopped) alone[alone_count++] = in_lane[i];
    }
    // What is not for lanes, or not yet: the ordinary way.
    for (size_t i = 0; i < alone_count; ++i) {
      SYNCLINE_RETURN_IF_ERROR(
          VisitByClass(*alone[i]->cursor, alone[i]->cursor->FillBatch(), visit_));
    }
    return absl::OkStatus();
  }

  Parts parts_;
  TraceReader::Visit visit_;
  std::array<Seat, kLanes> seats_;
  std::vector<Loss> losses_;
};

}  // namespace

absl::StatusOr<std::vector<Loss>> ScanStreams(std::shared_ptr<const TraceLayout> layout,
                                              std::span<const ScanStream> streams,
                                              TraceReader::Visit visit) {
  const std::span<const EventLayout* const> events = layout->events;
  return Scanner(Parts(std::move(layout), streams), events, visit).Run();
}

}  // namespace syncline::ctf

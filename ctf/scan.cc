// SPDX-License-Identifier: Apache-2.0
#include "ctf/scan.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/status.h"
#include "ctf/byte_source.h"
#include "ctf/cursor.h"
#include "ctf/lanes.h"
#include "ctf/packet_walker.h"

namespace syncline::ctf {
namespace {

constexpr uint64_t kPartsPerTrace = 64;
constexpr uint64_t kPartBytesMin = uint64_t{1} << 20;

// Stretches of streams, one after the other. Thread-safe.
class Parts {
 public:
  struct Part {
    size_t number = 0;
    std::unique_ptr<CtfCursor> cursor;  // null: there is none left
  };

  Parts(std::shared_ptr<const TraceLayout> layout, std::span<const ScanStream> streams)
      : layout_(std::move(layout)), streams_(streams) {
    uint64_t total = 0;
    for (const ScanStream& stream : streams) total += stream.bytes;
    part_bytes_ = std::max(kPartBytesMin, total / kPartsPerTrace);
  }

  // `room`: where its bytes are read.
  absl::StatusOr<Part> Next(AheadReader::Room* room) {
    const std::scoped_lock lock(mutex_);
    if (stream_ == streams_.size()) return Part{};
    const ScanStream& stream = streams_[stream_];
    if (offsets_.empty()) SYNCLINE_RETURN_IF_ERROR(Cut(stream));
    CursorRange range;
    range.begin_byte = offsets_[part_++];
    range.before = stream.before;
    if (stream.is_indexed) range.indexed = *stream.file;
    if (part_ < offsets_.size()) {
      range.end_byte = offsets_[part_];
    } else {
      ++stream_;
      part_ = 0;
      offsets_.clear();
    }
    SYNCLINE_ASSIGN_OR_RETURN(auto source, AheadReader::OfSize(*stream.file, stream.bytes, room));
    return Part{number_++,
                std::make_unique<CtfCursor>(layout_, std::move(source), *stream.info, range)};
  }

  // Gives no more.
  void Stop() {
    const std::scoped_lock lock(mutex_);
    stream_ = streams_.size();
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
  std::mutex mutex_;
  size_t stream_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<uint64_t> offsets_ ABSL_GUARDED_BY(mutex_);  // of the stream's parts
  size_t part_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t number_ ABSL_GUARDED_BY(mutex_) = 0;
};

// One thread's share of the parts.
class Scanner {
 public:
  struct PartLosses {
    size_t part = 0;
    std::vector<Loss> losses;
  };

  // All outlive it.
  Scanner(Parts& parts, std::span<const EventLayout* const> events, TraceReader::Visit visit)
      : parts_(parts), visit_(visit) {
    for (Seat& seat : seats_) seat.records.emplace(events, visit_);
  }

  absl::Status Run() {
    absl::Status status = ScanParts();
    if (!status.ok()) parts_.Stop();
    return status;
  }
  std::vector<PartLosses>& losses() { return losses_; }

 private:
  struct Seat {
    AheadReader::Room room;
    Parts::Part part;                    // without a cursor: none is left for it
    std::optional<LaneRecords> records;  // of the packet that the cursor stands in
  };

  absl::Status ScanParts() {
    for (;;) {
      bool any = false;
      for (Seat& seat : seats_) {
        SYNCLINE_RETURN_IF_ERROR(Enter(seat));
        any |= seat.part.cursor != nullptr;
      }
      if (!any) return absl::OkStatus();
      SYNCLINE_RETURN_IF_ERROR(Turn());
    }
  }

  // Lets the seat stand in a packet; at the end of a part it goes on with the next one.
  absl::Status Enter(Seat& seat) {
    std::unique_ptr<CtfCursor>& cursor = seat.part.cursor;
    if (cursor != nullptr && !cursor->InPacket()) {
      SYNCLINE_RETURN_IF_ERROR(seat.records->VisitAll(*cursor));
    }
    for (;;) {
      if (cursor == nullptr) {
        SYNCLINE_ASSIGN_OR_RETURN(seat.part, parts_.Next(&seat.room));
        if (cursor == nullptr) return absl::OkStatus();
      }
      SYNCLINE_ASSIGN_OR_RETURN(const bool entered, cursor->Enter());
      if (entered) return absl::OkStatus();
      const auto found = cursor->losses();
      if (!found.empty()) losses_.push_back({seat.part.number, {found.begin(), found.end()}});
      cursor.reset();
    }
  }

  absl::Status Turn() {
    std::array<Lane, kLanes> lanes;
    std::array<Seat*, kLanes> in_lane;
    std::array<Seat*, kLanes> alone;
    size_t lane_count = 0;
    size_t alone_count = 0;
    for (Seat& seat : seats_) {
      if (seat.part.cursor == nullptr) continue;
      std::optional<Lane> lane = seat.part.cursor->BeginLane();
      if (!lane) {
        alone[alone_count++] = &seat;
        continue;
      }
      lane->cursor = seat.part.cursor.get();
      lane->records = &*seat.records;
      lanes[lane_count] = *lane;
      in_lane[lane_count++] = &seat;
    }
    WalkLanes({lanes.data(), lane_count});
    for (size_t i = 0; i < lane_count; ++i) {
      in_lane[i]->part.cursor->EndLane(lanes[i]);
      SYNCLINE_RETURN_IF_ERROR(in_lane[i]->records->status());
      if (lanes[i].stopped) alone[alone_count++] = in_lane[i];
    }
    // What is not for lanes, or not yet: the ordinary way.
    for (size_t i = 0; i < alone_count; ++i) {
      CtfCursor& cursor = *alone[i]->part.cursor;
      SYNCLINE_RETURN_IF_ERROR(VisitByClass(cursor, cursor.FillBatch(), visit_));
    }
    return absl::OkStatus();
  }

  Parts& parts_;
  TraceReader::Visit visit_;
  std::array<Seat, kLanes> seats_;
  std::vector<PartLosses> losses_;
};

}  // namespace

absl::StatusOr<std::vector<Loss>> ScanStreams(std::shared_ptr<const TraceLayout> layout,
                                              std::span<const ScanStream> streams,
                                              std::span<const TraceReader::Visit> visits) {
  const std::span<const EventLayout* const> events = layout->events;
  Parts parts(layout, streams);
  std::vector<Scanner> scanners;
  for (const TraceReader::Visit& visit : visits) scanners.emplace_back(parts, events, visit);
  std::vector<absl::Status> statuses(visits.size());
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < visits.size(); ++i) {
      others.emplace_back([&statuses, &scanners, i] { statuses[i] = scanners[i].Run(); });
    }
    statuses[0] = scanners[0].Run();
  }
  for (const absl::Status& status : statuses) SYNCLINE_RETURN_IF_ERROR(status);
  std::vector<Scanner::PartLosses> lost;
  for (Scanner& scanner : scanners) {
    std::move(scanner.losses().begin(), scanner.losses().end(), std::back_inserter(lost));
  }
  std::sort(lost.begin(), lost.end(), [](const auto& a, const auto& b) { return a.part < b.part; });
  std::vector<Loss> losses;
  for (Scanner::PartLosses& of_part : lost) {
    std::move(of_part.losses.begin(), of_part.losses.end(), std::back_inserter(losses));
  }
  return losses;
}

}  // namespace syncline::ctf

// SPDX-License-Identifier: Apache-2.0
#include "ctf/cursor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "ctf/clocks.h"

namespace syncline::ctf {
namespace {

constexpr ptrdiff_t kColumnBytes = ptrdiff_t{1} << 20;

}  // namespace

CtfCursor::CtfCursor(std::shared_ptr<const TraceLayout> layout, std::unique_ptr<ByteSource> source,
                     StreamInfo info, CursorRange range)
    : layout_(std::move(layout)),
      source_(std::move(source)),
      info_(std::move(info)),
      range_(range),
      walker_(*layout_, *source_, info_.name,
              {range.begin_byte, range.end_byte, range.before, range.indexed}),
      decoder_(*layout_) {}

absl::StatusOr<bool> CtfCursor::Enter() {
  while (!packet_ && !done_) SYNCLINE_RETURN_IF_ERROR(NextPacket());
  return !done_;
}

absl::StatusOr<std::span<const EventRecord>> CtfCursor::NextBatch() {
  SYNCLINE_ASSIGN_OR_RETURN(const Stretch stretch, NextBefore(kUnknownHi));
  return stretch.records;
}

absl::StatusOr<EventCursor::Stretch> CtfCursor::NextBefore(int64_t until_ns) {
  for (;;) {
    SYNCLINE_ASSIGN_OR_RETURN(const bool entered, Enter());
    if (!entered) return Stretch{};
    const Stretch stretch = FillBefore(until_ns);
    if (!stretch.records.empty() || stretch.next_ns >= until_ns) return stretch;
  }
}

bool CtfCursor::Decode(const EventRecord& record, std::vector<FieldValue>* values) {
  const EventLayout& layout = *layout_->events[record.event_class->index];
  return decoder_.Decode(layout, record, values);
}

bool CtfCursor::DecodeColumns(std::span<const EventRecord> records, ColumnSink* sink) {
  if (records.empty()) return true;
  const EventLayout& layout = *layout_->events[records[0].event_class->index];
  if (!layout.fast || !decoder_.HasFastHeader()) return false;
  const std::vector<FieldValue>* shared = nullptr;
  if (layout.nodes.needs_packet) {
    shared = decoder_.PacketValues(layout);
    if (shared == nullptr) return false;
  }
  // Large arrays are widened to 64 bits per element: a few events at a time then.
  while (!records.empty()) {
    size_t count = records.size();
    while (count > 1 && records[count - 1].bytes - records[0].bytes > kColumnBytes) count /= 2;
    if (shared != nullptr) {
      for (const FieldValue& value : *shared) sink->OnShared(value, count);
    }
    WalkColumns(layout.fast->fields(), records.first(count), columns_, *sink);
    records = records.subspan(count);
  }
  return true;
}

std::span<const Loss> CtfCursor::losses() const {
  if (range_.begin_ns == kUnknownLo && range_.end_ns == kUnknownHi) return walker_.losses();
  losses_.clear();
  for (const Loss& loss : walker_.losses()) {
    if (loss.end_ns >= range_.begin_ns && loss.begin_ns < range_.end_ns) losses_.push_back(loss);
  }
  return losses_;
}

std::optional<Lane> CtfCursor::BeginLane() const {
  const auto latest = static_cast<uint64_t>(latest_ns_.value_or(Packet::kLatestNs));
  const bool all_wanted =
      (range_.begin_ns == kUnknownLo || packet_->begin_ns >= range_.begin_ns) &&
      (range_.end_ns == kUnknownHi || (latest_ns_ && *latest_ns_ < range_.end_ns));
  if (!all_wanted || decoder_.clock() > latest) return std::nullopt;
  if (static_cast<int64_t>(decoder_.clock()) < last_ns_) return std::nullopt;
  std::optional<Lane> lane = decoder_.AsLane();
  if (lane) lane->latest = latest;
  return lane;
}

void CtfCursor::EndLane(const Lane& lane) {
  if (decoder_.Resume(lane)) last_ns_ = static_cast<int64_t>(lane.clock);
}

// Goes to the next packet that can hold events of the range; the others' bytes are never touched.
absl::Status CtfCursor::NextPacket() {
  SYNCLINE_ASSIGN_OR_RETURN(packet_, walker_.Next());
  if (!packet_) {
    done_ = true;
    return absl::OkStatus();
  }
  if (range_.end_ns != kUnknownHi && packet_->begin_ns >= range_.end_ns) {
    packet_.reset();
    done_ = true;
    return absl::OkStatus();
  }
  latest_ns_ = packet_->latest_ns();
  if (latest_ns_ && *latest_ns_ < range_.begin_ns) {
    packet_.reset();
    return absl::OkStatus();
  }
  SYNCLINE_ASSIGN_OR_RETURN(
      const auto bytes, source_->ReadPacket(packet_->offset, static_cast<size_t>(packet_->bytes)));
  base_ = bytes.data();
  decoder_.Begin(*packet_, bytes, decoder_.clock());
  rejected_ = 0;
  return absl::OkStatus();
}

// What it stops in front of is sound: nothing earlier can follow. Otherwise the last one tells.
EventCursor::Stretch CtfCursor::FillBefore(int64_t until_ns) {
  batch_.clear();
  // The latest time there is lies before kUnknownHi, too.
  const int64_t enough_ns =
      until_ns == kUnknownHi ? kUnknownHi : std::max(until_ns, int64_t{0}) - 1;
  const ClockClass* clock = packet_->header.stream->clock;
  const int64_t latest_ns = latest_ns_.value_or(Packet::kLatestNs);
  FoundEvent event;
  while (batch_.size() < range_.batch_records) {
    PacketDecoder::Limits limits{last_ns_, latest_ns, range_.begin_ns, range_.end_ns, enough_ns};
    decoder_.Run(&limits, range_.batch_records, &batch_);
    last_ns_ = limits.last_ns;
    if (limits.next_ns) return {batch_, *limits.next_ns};
    if (batch_.size() >= range_.batch_records) break;
    const Step step = decoder_.Next(&event);
    if (step != Step::kEvent) {
      EndPacket(step, event);
      break;
    }
    const int64_t time_ns = CyclesToNs(clock, event.cycles);
    if (time_ns < last_ns_ || time_ns > latest_ns) {
      decoder_.RejectTime();
      ++rejected_;
      continue;
    }
    last_ns_ = time_ns;
    if (time_ns < range_.begin_ns || time_ns >= range_.end_ns) continue;
    batch_.push_back(
        {time_ns, &event.layout->event_class, base_ + event.body_bits / 8, event.begin_bits});
    if (time_ns > enough_ns) break;
  }
  return {batch_, last_ns_};
}

// Says what of the packet was not read, and leaves it.
void CtfCursor::EndPacket(Step step, const FoundEvent& event) {
  const int64_t from_ns = std::max(last_ns_, packet_->begin_ns);
  const int64_t end_ns = std::max(from_ns, packet_->end_ns.value_or(from_ns));
  const uint64_t at = packet_->offset + event.begin_bits / 8;
  if (rejected_ > 0) {
    walker_.AddLoss({LossReason::kCorruptPacket, packet_->begin_ns, end_ns, rejected_, info_.name,
                     absl::StrCat(rejected_, " events have times that cannot be")});
  }
  if (packet_->loss) walker_.NarrowLoss(*packet_->loss, from_ns);
  if (packet_->open_ended) {
    // Where it stops making sense is where it ends; the packet's own loss says so already.
  } else if (step == Step::kUnknownId) {
    walker_.AddLoss({LossReason::kUnknownEvent, from_ns, end_ns, std::nullopt, info_.name,
                     absl::StrCat("event id ", event.id, " at byte ", at,
                                  " is not in the metadata; the rest of its packet is unread")});
  } else if (step == Step::kDamaged && !packet_->loss) {
    walker_.AddLoss(
        {LossReason::kCorruptPacket, from_ns, end_ns, std::nullopt, info_.name,
         absl::StrCat("the bytes from byte ", at, " to the end of their packet do not decode")});
  }
  packet_.reset();
}

std::unique_ptr<EventCursor> MakeCursor(std::shared_ptr<const TraceLayout> layout,
                                        std::unique_ptr<ByteSource> source, StreamInfo info,
                                        CursorRange range) {
  return std::make_unique<CtfCursor>(std::move(layout), std::move(source), std::move(info), range);
}

}  // namespace syncline::ctf

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "ctf/decoder.h"
#include "ctf/packet_walker.h"
#include "ctf/reader.h"

namespace syncline::ctf {
namespace {

constexpr size_t kBatch = 1024;

class CtfCursor : public EventCursor {
 public:
  CtfCursor(std::shared_ptr<const TraceLayout> layout, std::unique_ptr<ByteSource> source,
            StreamInfo info, CursorRange range)
      : layout_(std::move(layout)),
        source_(std::move(source)),
        info_(std::move(info)),
        range_(range),
        walker_(*layout_, *source_, info_.name),
        decoder_(*layout_) {}

  const StreamInfo& stream() const override { return info_; }

  absl::StatusOr<std::span<const EventRecord>> NextBatch() override {
    batch_.clear();
    while (batch_.empty() && !done_) {
      if (!packet_) {
        SYNCLINE_RETURN_IF_ERROR(NextPacket());
        continue;
      }
      FillBatch();
    }
    return std::span<const EventRecord>(batch_);
  }

  bool Decode(const EventRecord& record, std::vector<FieldValue>* values) override {
    const EventLayout& layout = *layout_->events[record.event_class->index];
    return decoder_.Decode(layout, record.reader_word, values);
  }

  std::span<const Loss> losses() const override {
    if (range_.begin_ns == kUnknownLo && range_.end_ns == kUnknownHi) return walker_.losses();
    losses_.clear();
    for (const Loss& loss : walker_.losses()) {
      if (loss.end_ns >= range_.begin_ns && loss.begin_ns < range_.end_ns) losses_.push_back(loss);
    }
    return losses_;
  }

 private:
  // Goes to the next packet that can hold events of the range; the others' bytes are never touched.
  absl::Status NextPacket() {
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
    // An event may lie behind its packet's end when the tracer wrote a wrong one, but not behind
    // the next packet's begin.
    latest_ns_ = packet_->end_ns;
    if (latest_ns_ && packet_->next_begin_ns) {
      latest_ns_ = std::max(*latest_ns_, *packet_->next_begin_ns);
    }
    if (latest_ns_ && *latest_ns_ < range_.begin_ns) {
      packet_.reset();
      return absl::OkStatus();
    }
    SYNCLINE_ASSIGN_OR_RETURN(const auto bytes,
                              source_->Read(packet_->offset, static_cast<size_t>(packet_->bytes)));
    base_ = bytes.data();
    decoder_.Begin(*packet_, bytes, decoder_.clock());
    rejected_ = 0;
    return absl::OkStatus();
  }

  void FillBatch() {
    const ClockClass* clock = packet_->header.stream->clock;
    FoundEvent event;
    while (batch_.size() < kBatch) {
      PacketDecoder::Limits limits{last_ns_, latest_ns_.value_or(kUnknownHi), range_.begin_ns,
                                   range_.end_ns};
      decoder_.Run(&limits, kBatch, &batch_);
      last_ns_ = limits.last_ns;
      if (batch_.size() >= kBatch) return;
      const Step step = decoder_.Next(&event);
      if (step != Step::kEvent) {
        EndPacket(step, event);
        return;
      }
      const int64_t time_ns = CyclesToNs(clock, event.cycles);
      if (time_ns < last_ns_ || (latest_ns_ && time_ns > *latest_ns_)) {
        decoder_.RejectTime();
        ++rejected_;
        continue;
      }
      last_ns_ = time_ns;
      if (time_ns < range_.begin_ns || time_ns >= range_.end_ns) continue;
      batch_.push_back(
          {time_ns, &event.layout->event_class, base_ + event.begin_bits / 8, event.begin_bits});
    }
  }

  // Says what of the packet was not read, and leaves it.
  void EndPacket(Step step, const FoundEvent& event) {
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

  std::shared_ptr<const TraceLayout> layout_;
  std::unique_ptr<ByteSource> source_;
  StreamInfo info_;
  CursorRange range_;
  PacketWalker walker_;
  PacketDecoder decoder_;
  std::optional<Packet> packet_;      // being read
  std::optional<int64_t> latest_ns_;  // no event of it is later
  const uint8_t* base_ = nullptr;
  uint64_t rejected_ = 0;
  int64_t last_ns_ = kUnknownLo;
  bool done_ = false;
  std::vector<EventRecord> batch_;
  mutable std::vector<Loss> losses_;
};

}  // namespace

std::unique_ptr<EventCursor> MakeCursor(std::shared_ptr<const TraceLayout> layout,
                                        std::unique_ptr<ByteSource> source, StreamInfo info,
                                        CursorRange range) {
  return std::make_unique<CtfCursor>(std::move(layout), std::move(source), std::move(info), range);
}

}  // namespace syncline::ctf

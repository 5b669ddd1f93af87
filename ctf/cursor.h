// SPDX-License-Identifier: Apache-2.0
// The cursor over one stream of packets. Users know it as an EventCursor (reader.h); what scans
// several streams at once (scan.h) moves it in steps.
#ifndef SYNCLINE_CTF_CURSOR_H_
#define SYNCLINE_CTF_CURSOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/event_cursor.h"
#include "ctf/byte_source.h"
#include "ctf/columns.h"
#include "ctf/decoder.h"
#include "ctf/lanes.h"
#include "ctf/packet_walker.h"
#include "ctf/reader.h"

namespace syncline::ctf {

class CtfCursor final : public EventCursor {
 public:
  CtfCursor(std::shared_ptr<const TraceLayout> layout, std::unique_ptr<ByteSource> source,
            StreamInfo info, CursorRange range);

  const StreamInfo& stream() const override { return info_; }
  absl::StatusOr<std::span<const EventRecord>> NextBatch() override;
  absl::StatusOr<Stretch> NextBefore(int64_t until_ns) override;
  void Prefetch() const override {
    if (packet_) decoder_.Prefetch();
  }
  bool Decode(const EventRecord& record, std::vector<FieldValue>* values) override;
  bool DecodeColumns(std::span<const EventRecord> records, ColumnSink* sink) override;
  uint64_t packet() const override { return decoder_.packet_number(); }
  std::span<const Loss> losses() const override;

  // Stands in a packet that may hold events of the range; false at the end of the stream.
  absl::StatusOr<bool> Enter();
  // False behind a packet's end, until Enter(). Its records stay valid that long.
  bool InPacket() const { return packet_.has_value(); }
  // After Enter(): the next records of this packet; none at its end.
  std::span<const EventRecord> FillBatch() { return FillBefore(kUnknownHi).records; }
  // After Enter(): where it stands, as a lane without buckets; nullopt when the packet is
  // not for lanes, and FillBatch() must go on.
  std::optional<Lane> BeginLane() const;
  // Goes on where the lane is now. Its records are like those of NextBatch().
  void EndLane(const Lane& lane);

 private:
  absl::Status NextPacket();
  Stretch FillBefore(int64_t until_ns);
  void EndPacket(Step step, const FoundEvent& event);

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
  ColumnScratch columns_;
  mutable std::vector<Loss> losses_;
};

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_CURSOR_H_

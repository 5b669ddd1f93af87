// SPDX-License-Identifier: Apache-2.0
// The events of one packet: where each begins and ends, its time and class; and the values of its
// fields.
#ifndef SYNCLINE_CTF_DECODER_H_
#define SYNCLINE_CTF_DECODER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/event_cursor.h"
#include "ctf/lanes.h"
#include "ctf/layout.h"
#include "ctf/packet_walker.h"

namespace syncline::ctf {

enum class Step : uint8_t {
  kEvent,      // there is one
  kEnd,        // the content ends here, as it should
  kUnknownId,  // an event that the metadata does not describe: its size is unknown
  kDamaged,    // the bytes do not fit the metadata, or end too early
};

struct FoundEvent {
  uint64_t begin_bits = 0;  // from the start of the packet
  uint64_t body_bits = 0;   // behind its header
  uint64_t end_bits = 0;
  uint64_t cycles = 0;
  uint64_t id = 0;
  const EventLayout* layout = nullptr;
};

// Walks the events of one packet after another. One per cursor; not thread-safe.
class PacketDecoder {
 public:
  explicit PacketDecoder(const TraceLayout& layout);

  // `bytes` holds the packet and must outlive its events. `clock` is the stream's clock before it.
  void Begin(const Packet& packet, std::span<const uint8_t> bytes, uint64_t clock);

  // The next event. After kUnknownId and kDamaged the packet is over; `event` tells what was found.
  Step Next(FoundEvent* event);

  struct Limits {
    int64_t last_ns = 0;    // of the event before; earlier ones cannot be
    int64_t latest_ns = 0;  // later ones cannot be
    int64_t begin_ns = 0;   // only events in [begin_ns, end_ns) are wanted
    int64_t end_ns = 0;
    int64_t enough_ns = 0;           // stops in front of a later one...
    std::optional<int64_t> next_ns;  // ...and tells its time
  };
  // Appends records, up to `records_max` in all, as long as events take the fast path and nothing
  // is wrong with them, and updates `limits->last_ns`. What it stops at is for Next() to look at.
  void Run(Limits* limits, size_t records_max, std::vector<EventRecord>* records);

  // The same for a lane (lanes.h), which the caller gives room and the latest time: where it
  // stands, nullopt when this packet is not for lanes; and going on where the lane stopped, true
  // when it moved.
  std::optional<Lane> AsLane() const;
  bool Resume(const Lane& lane);

  // Asks memory for the next few events.
  void Prefetch() const {
    for (size_t ahead = 0; ahead < 512; ahead += 64) {
      __builtin_prefetch(base_ + position_ / 8 + ahead);
    }
  }
  // Whether the packet's content ends here.
  bool AtEnd() const { return position_ >= content_bits_; }
  // Goes on in other bytes of the same packet.
  void MoveTo(std::span<const uint8_t> bytes) { base_ = bytes.data(); }

  // Takes the time of the last event back, because it cannot be: the next one builds on the one
  // before.
  void RejectTime() { clock_ = clock_before_; }

  // The fields of an event of this packet.
  bool Decode(const EventLayout& layout, const EventRecord& record,
              std::vector<FieldValue>* values);

  // The values of the packet's own fields that precede an event's; null when they do not decode.
  const std::vector<FieldValue>* PacketValues(const EventLayout& layout);

  uint64_t clock() const { return clock_; }
  // Counted from 1.
  uint64_t packet_number() const { return packet_number_; }
  // Of the packet at hand, or the last one.
  bool HasFastHeader() const { return stream_->fast_header != FastHeader::kNone; }

 private:
  bool IsFast() const;
  bool LooksUnwritten(uint64_t cycles, uint32_t clock_bits) const;
  bool RestIsZero() const;
  bool SkipBody(const EventLayout& layout, uint64_t header_begin, uint64_t header_end,
                uint64_t* end);
  uint64_t* Slots(const ScopeNodes& nodes);

  const StreamLayout* stream_ = nullptr;
  const uint8_t* base_ = nullptr;
  uint64_t content_bits_ = 0;
  uint64_t position_ = 0;
  uint64_t clock_ = 0;
  uint64_t clock_before_ = 0;
  bool open_ended_ = false;
  bool lttng_ = false;
  std::vector<uint64_t> slots_;
  // The packet's own fields, decoded once per packet and event class.
  struct CachedValues {
    uint64_t packet = 0;
    std::vector<FieldValue> values;
  };
  uint64_t packet_number_ = 0;
  std::vector<CachedValues> packet_values_;  // by event class
};

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_DECODER_H_

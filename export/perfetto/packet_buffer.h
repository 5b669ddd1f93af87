// SPDX-License-Identifier: Apache-2.0
// Where the packets of a Perfetto trace are put together: the two most frequent ones, the begin and
// the end of a span whose names its sequence knows, byte by byte in place; all others from messages
// (proto_writer.h). A packet of the first kind is some 15 bytes and takes some ns.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_PERFETTO_PACKET_BUFFER_H_
#define SYNCLINE_EXPORT_PERFETTO_PACKET_BUFFER_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <ostream>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "export/perfetto/proto_writer.h"
#include "timeline/sink.h"

namespace syncline::perfetto {

// Which texts a sequence has interned already.
class SeenTexts {
 public:
  bool Has(timeline::TextId text) const {
    if (text < kDirect) [[likely]] {
      return text / 64 < bits_.size() && (bits_[text / 64] >> text % 64 & 1) != 0;
    }
    return others_.count(text) != 0;
  }
  // False when it was there.
  bool Add(timeline::TextId text) {
    if (Has(text)) return false;
    if (text >= kDirect) return others_.insert(text).second;
    if (bits_.size() <= text / 64) bits_.resize(text / 64 + 1);
    bits_[text / 64] |= uint64_t{1} << text % 64;
    return true;
  }

 private:
  static constexpr timeline::TextId kDirect = 4096;  // 512 bytes at most; the first texts are most
  std::vector<uint64_t> bits_;
  std::unordered_set<timeline::TextId> others_;
};

// What the packets of a sequence have in common.
class SequenceBytes {
 public:
  SequenceBytes() = default;
  explicit SequenceBytes(uint64_t sequence_id);

 private:
  friend class PacketBuffer;
  static constexpr size_t kRoom = 24;
  char bytes_[kRoom] = {};  // trusted_packet_sequence_id, sequence_flags, tag of track_event
  size_t size_ = 0;
};

class PacketBuffer {
 public:
  // `out` outlives this.
  explicit PacketBuffer(std::ostream* out)
      : out_(out), bytes_(new char[kCapacity]), next_(bytes_.get()) {}

  void SpanBegin(const SequenceBytes& sequence, uint64_t delta_ns, timeline::TextId name,
                 timeline::TextId category) {
    char* const packet = Room();
    char* to = Timestamp(sequence, delta_ns, packet);
    char* const length = to++;
    to = Put(kType, kBegin, to);
    if (name != timeline::kNoText) to = PutVarint(name, Tag(kNameIid, to));
    if (category != timeline::kNoText) to = PutVarint(category, Tag(kCategoryIid, to));
    *length = static_cast<char>(to - length - 1);
    End(packet, to);
  }
  void SpanEnd(const SequenceBytes& sequence, uint64_t delta_ns) {
    char* const packet = Room();
    char* to = Timestamp(sequence, delta_ns, packet);
    *to++ = 2;
    End(packet, Put(kType, kEnd, to));
  }
  // A packet's bytes, without the frame.
  void Packet(std::string_view bytes);
  void Flush();

 private:
  static constexpr size_t kCapacity = size_t{1} << 20;
  static constexpr size_t kPacketMax = 96;
  static constexpr uint8_t kFrame = 0x0a;      // Trace.packet
  static constexpr uint8_t kTimestamp = 0x40;  // TracePacket.timestamp
  static constexpr uint8_t kType = 0x48;       // TrackEvent.type, and its two values:
  static constexpr uint8_t kBegin = 1, kEnd = 2;
  static constexpr uint8_t kNameIid = 0x50;      // TrackEvent.name_iid
  static constexpr uint8_t kCategoryIid = 0x18;  // TrackEvent.category_iids

  static char* Tag(uint8_t tag, char* to) {
    *to = static_cast<char>(tag);
    return to + 1;
  }
  static char* Put(uint8_t tag, uint8_t value, char* to) {
    to[0] = static_cast<char>(tag);
    to[1] = static_cast<char>(value);
    return to + 2;
  }
  static char* Timestamp(const SequenceBytes& sequence, uint64_t delta_ns, char* packet) {
    char* const to = PutVarint(delta_ns, Tag(kTimestamp, packet + 2));
    std::memcpy(to, sequence.bytes_, SequenceBytes::kRoom);
    return to + sequence.size_;
  }
  char* Room() {
    if (next_ + kPacketMax > bytes_.get() + kCapacity) [[unlikely]]
      Flush();
    return next_;
  }
  // None of these packets is longer than a length of one byte tells.
  void End(char* packet, char* end) {
    packet[0] = static_cast<char>(kFrame);
    packet[1] = static_cast<char>(end - packet - 2);
    next_ = end;
  }

  std::ostream* out_;
  std::unique_ptr<char[]> bytes_;
  char* next_;
};

}  // namespace syncline::perfetto

#endif  // SYNCLINE_EXPORT_PERFETTO_PACKET_BUFFER_H_

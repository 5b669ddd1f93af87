// SPDX-License-Identifier: Apache-2.0
#include "export/perfetto/packet_buffer.h"

namespace syncline::perfetto {

SequenceBytes::SequenceBytes(uint64_t sequence_id) {
  constexpr uint32_t kSequenceId = 10, kSequenceFlags = 13;
  constexpr uint64_t kNeedsState = 2;
  constexpr char kTrackEvent = 0x5a;
  ProtoWriter common;
  common.Varint(kSequenceId, sequence_id);
  common.Varint(kSequenceFlags, kNeedsState);
  std::string bytes(common.bytes());
  bytes += kTrackEvent;
  size_ = bytes.size();
  std::memcpy(bytes_, bytes.data(), size_);
}

void PacketBuffer::Packet(std::string_view bytes) {
  if (bytes.size() + kPacketMax > kCapacity) {  // larger than the buffer
    Flush();
    char frame[16];
    char* const end = PutVarint(bytes.size(), Tag(kFrame, frame));
    out_->write(frame, end - frame);
    out_->write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return;
  }
  if (next_ + bytes.size() + kPacketMax > bytes_.get() + kCapacity) Flush();
  char* const to = PutVarint(bytes.size(), Tag(kFrame, next_));
  std::memcpy(to, bytes.data(), bytes.size());
  next_ = to + bytes.size();
}

void PacketBuffer::Flush() {
  out_->write(bytes_.get(), next_ - bytes_.get());
  next_ = bytes_.get();
}

}  // namespace syncline::perfetto

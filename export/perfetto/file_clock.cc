// SPDX-License-Identifier: Apache-2.0
#include "export/perfetto/file_clock.h"

#include <string>

#include "export/perfetto/fields.h"
#include "export/perfetto/proto_writer.h"

namespace syncline::perfetto {
namespace {

constexpr uint32_t kTracePacket = 1;
constexpr int kPaddedBytes = 10;

// Always of the same length, so that another one can be written over it.
std::string PaddedVarint(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < kPaddedBytes - 1; ++i) {
    bytes += static_cast<char>((value >> 7 * i & 0x7f) | 0x80);
  }
  bytes += static_cast<char>(value >> 7 * (kPaddedBytes - 1));
  return bytes;
}

void PutClock(uint64_t id, uint64_t time_ns, ProtoWriter* snapshot) {
  ProtoWriter clock;
  clock.Varint(snapshot::kClockId, id);
  clock.Varint(snapshot::kTimestamp, time_ns);
  snapshot->Message(snapshot::kClock, clock);
}

}  // namespace

FileClock::FileClock(std::ostream* out, int64_t epoch_unix_ns) : out_(out) {
  ProtoWriter clocks;
  PutClock(snapshot::kTimeline, static_cast<uint64_t>(kZeroNs), &clocks);
  if (epoch_unix_ns > 0) {
    PutClock(snapshot::kRealtime, static_cast<uint64_t>(epoch_unix_ns), &clocks);
  }
  ProtoWriter id;
  id.Varint(snapshot::kClockId, snapshot::kBoottime);
  std::string boottime(id.bytes());
  boottime += static_cast<char>(snapshot::kTimestamp << 3);
  boottime += PaddedVarint(static_cast<uint64_t>(kZeroNs));
  clocks.Bytes(snapshot::kClock, boottime);  // last, so that the number ends the packet
  ProtoWriter packet;
  packet.Message(packet::kClockSnapshot, clocks);
  ProtoWriter file;
  file.Message(kTracePacket, packet);
  out_->write(file.bytes().data(), static_cast<std::streamsize>(file.bytes().size()));
  const std::streamoff end = out_->tellp();
  if (end >= kPaddedBytes) zero_at_ = end - kPaddedBytes;
}

void FileClock::Finish() {
  if (zero_at_ < 0 || !out_->good()) return;
  const std::string zero = PaddedVarint(static_cast<uint64_t>(-earliest_ns_));
  out_->seekp(zero_at_);
  out_->write(zero.data(), static_cast<std::streamsize>(zero.size()));
  out_->seekp(0, std::ios::end);
}

}  // namespace syncline::perfetto

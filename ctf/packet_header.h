// SPDX-License-Identifier: Apache-2.0
// What the header and context of one packet say, checked against the file.
#ifndef SYNCLINE_CTF_PACKET_HEADER_H_
#define SYNCLINE_CTF_PACKET_HEADER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ctf/layout.h"

namespace syncline::ctf {

inline constexpr uint32_t kStreamMagic = 0xc1fc1fc1;

enum class HeaderState : uint8_t {
  kOk,
  kTooShort,       // the bytes given end inside the header
  kBadMagic,       // no packet begins here
  kBadUuid,        // a packet of another trace
  kUnknownStream,  // another stream than expected, or one that the metadata does not describe
  kBadSizes,       // sizes that contradict each other
};

struct PacketHeader {
  const StreamLayout* stream = nullptr;
  uint64_t header_bits = 0;  // where the first event begins
  // As written; nullopt: the field is absent, or says that the packet was never closed (0 or all
  // ones).
  std::optional<uint64_t> content_bits;
  std::optional<uint64_t> packet_bits;
  bool has_sizes = false;  // the metadata has at least one of the two fields
  std::optional<uint64_t> begin_cycles;
  std::optional<uint64_t>
      end_cycles;  // nullopt also for 0; both when the end lies before the begin
  std::optional<uint64_t> early_end_cycles;  // what it says then, where it says both
  std::optional<uint64_t> sequence;
  uint32_t sequence_width = 64;
  std::optional<uint64_t> discarded;  // cumulative
  uint32_t discarded_width = 64;
  std::optional<uint64_t> stream_instance_id;
  std::optional<uint64_t> cpu_id;
  bool names_another = false;  // trace, by its uuid, or stream than HeaderContext::expected

  // The number, where it is wide enough never to wrap.
  std::optional<uint64_t> lasting_sequence() const {
    return sequence_width == 64 ? sequence : std::nullopt;
  }

  // A packet whose sizes were written when it was full, as opposed to one that its writer left
  // open.
  bool closed() const { return !has_sizes || (content_bits && packet_bits); }
};

struct HeaderContext {
  uint64_t clock = 0;                      // of the stream before the packet, for short timestamps
  const StreamLayout* expected = nullptr;  // the stream of the packets before; null: none was read
};

// Decodes the header of the packet at the start of `bytes`. With a wrong magic number, uuid or
// stream id it goes on, so that a packet with only that damage can still be used: `header->stream`
// is then set, and `header_bits` not 0. Thread-safe.
HeaderState ReadPacketHeader(const TraceLayout& layout, std::span<const uint8_t> bytes,
                             const HeaderContext& context, PacketHeader* header);

// The bytes that every packet begins with: its magic number, and its uuid when that follows at
// once. Empty when the trace has no magic number, and damage therefore cannot be skipped.
std::vector<uint8_t> PacketSignature(const TraceLayout& layout);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_PACKET_HEADER_H_

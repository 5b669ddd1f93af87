// SPDX-License-Identifier: Apache-2.0
// The probe packet: one UDP datagram of fixed size, the same layout in both directions.
//
// An exchange is a request and its response. Neither carries its own stamps: the true time at which
// a packet left is known only afterwards (from the kernel's error queue), and a MAC must be
// computed before the stamp is taken. So a packet carries the *report* of an earlier exchange: when
// its sender received and sent that exchange's packets. A request says what the initiator saw of
// exchange w and thereby asks for what the responder saw of it; both sides then have all four
// stamps.
//
//   bytes 0   magic "SLPB"           24  sequence       40  report: sequence
//         4   version                32  nonce, echoed  48  report: received, RAW ns; 0: unknown
//         5   kind                                      56  report: sent, RAW ns; 0: unknown
//         6   flags                                     64  MAC: HMAC-SHA-256 of bytes 0..63,
//         7   requests to come in this burst                its first 16 bytes
//         8   plan id
//        16   edge id
//        20   report: stamp source
//        21   zero
// Little endian. A response is exactly as long as its request, so nothing can be amplified with it.
#ifndef SYNCLINE_AGENT_PROBE_UDP_PACKET_H_
#define SYNCLINE_AGENT_PROBE_UDP_PACKET_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "clocksync/samples.h"

namespace syncline::probe {

inline constexpr size_t kPacketBytes = 80;
inline constexpr size_t kMacBytes = 16;
inline constexpr size_t kKeyBytes = 32;

using PacketBytes = std::array<uint8_t, kPacketBytes>;
using ProbeKey = std::array<uint8_t, kKeyBytes>;

// What one side knows of one exchange: when it received the other's packet and sent its own, ns of
// its CLOCK_MONOTONIC_RAW; a send stamp is never late, a receive stamp never early.
struct HostStamps {
  int64_t received_raw_ns = 0;
  int64_t sent_raw_ns = 0;
  clocksync::StampSource source = clocksync::StampSource::kGrpc;
  bool operator==(const HostStamps&) const = default;
};

struct ProbePacket {
  enum class Kind : uint8_t { kRequest = 1, kResponse = 2 };

  Kind kind = Kind::kRequest;
  // Asks the other side to wait for the rest of this burst without sleeping.
  bool spin = false;
  uint8_t burst_remaining = 0;
  uint64_t plan_id = 0;
  uint32_t edge_id = 0;
  uint64_t sequence = 0;
  uint64_t nonce = 0;
  // The exchange that is reported and asked about; kNoSequence: none.
  uint64_t report_sequence = kNoSequence;
  std::optional<HostStamps> report;

  static constexpr uint64_t kNoSequence = ~uint64_t{0};
  bool operator==(const ProbePacket&) const = default;
};

// The packet without its MAC (zeros there).
PacketBytes EncodePacket(const ProbePacket& packet);
// Nothing unless `bytes` is exactly what EncodePacket makes of some packet, MAC aside.
std::optional<ProbePacket> DecodePacket(std::span<const uint8_t> bytes);

// Seals and checks packets under one key. Belongs to one thread: the digest's state is reused.
class PacketSealer {
 public:
  explicit PacketSealer(const ProbeKey& key);
  PacketSealer(PacketSealer&& other) noexcept;
  PacketSealer& operator=(PacketSealer&&) = delete;
  ~PacketSealer();

  void Seal(PacketBytes* bytes) const;
  // `bytes` must be kPacketBytes long. In constant time.
  bool IsGenuine(std::span<const uint8_t> bytes) const;

 private:
  std::array<uint8_t, kMacBytes> Mac(std::span<const uint8_t> bytes) const;
  void* context_;  // EVP_MAC_CTX
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_PACKET_H_

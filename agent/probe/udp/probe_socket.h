// SPDX-License-Identifier: Apache-2.0
// The seam to the network: datagrams with the times at which they left and came.
#ifndef SYNCLINE_AGENT_PROBE_UDP_PROBE_SOCKET_H_
#define SYNCLINE_AGENT_PROBE_UDP_PROBE_SOCKET_H_

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace syncline::probe {

// An IPv4 or IPv6 address with a port.
class Address {
 public:
  Address() = default;
  Address(const sockaddr* address, socklen_t length);
  // "10.0.0.1:7611", "[fd00::1]:7611"; numbers only, names are for who asks a resolver.
  static absl::StatusOr<Address> Parse(std::string_view host_and_port);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const { return length_; }
  std::string ToString() const;
  bool operator==(const Address& other) const;

 private:
  sockaddr_storage storage_{};
  socklen_t length_ = 0;
};

struct SentPacket {
  uint64_t id = 0;  // of this send, unique for the socket; its stamp comes with the same id
  int64_t before_raw_ns = 0;  // RAW, read just before the packet was handed to the kernel
};

// When a network device sent or received a packet, by the device's clock.
struct HardwareStamp {
  int64_t ns = 0;  // 0: none
  int clock = -1;  // N of /dev/ptpN
};

// When the kernel handed a packet to the device, or the device sent it; the latter comes later.
struct TransmitStamp {
  uint64_t id = 0;
  int64_t realtime_ns = 0;  // 0: none
  HardwareStamp hardware;
};

// Whether a network device stamps packets for us.
struct HardwareOffer {
  int clock = -1;       // with which
  std::string refusal;  // why not, when there is none
};

struct ReceivedPacket {
  Address from;
  // Room for one byte more than a probe has, so that one that is too long is seen to be.
  std::array<uint8_t, 96> buffer{};
  size_t size_bytes = 0;     // of the datagram, which may be larger than the buffer
  int64_t after_raw_ns = 0;  // RAW, read just after the packet was got
  int64_t realtime_ns = 0;   // the kernel's receive stamp; 0: none
  HardwareStamp hardware;    // the device's

  std::span<const uint8_t> bytes() const {
    return std::span(buffer).first(size_bytes < buffer.size() ? size_bytes : buffer.size());
  }
};

class ProbeSocket {
 public:
  virtual ~ProbeSocket() = default;
  // Never waits. Unavailable when the packet could not be sent now.
  virtual absl::StatusOr<SentPacket> Send(const Address& to, std::span<const uint8_t> bytes) = 0;
  // Nothing when there is nothing.
  virtual std::optional<ReceivedPacket> Receive() = 0;
  virtual std::optional<TransmitStamp> NextTransmitStamp() = 0;
  // The network device through which packets to `peer` leave, for messages; "" when unknown.
  virtual std::string DeviceTowards(const Address& peer) = 0;
  // Has packets stamped by the device, too, from now on, if it offers that.
  virtual HardwareOffer UseHardware(const std::string& device) = 0;
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_PROBE_SOCKET_H_

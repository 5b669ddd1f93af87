// SPDX-License-Identifier: Apache-2.0
// The real ProbeSocket: UDP with the kernel's stamps (SO_TIMESTAMPING).
//
// Traps that this file knows:
//   - Transmit stamps come through the socket's error queue, late or never, and poll reports
//     POLLERR until the queue is drained.
//   - They are matched by a 32-bit count that the kernel keeps per socket
//     (SOF_TIMESTAMPING_OPT_ID). A send that fails may or may not have been counted, so after one
//     the count is begun anew, and stamps of packets sent before are given up: one matched with the
//     wrong packet would break the proof.
//   - A sent packet has a message for each of its stamps: the kernel's at once, the device's later.
//   - A device stamps in its own clock. Which device it was is told for received packets
//     (SOF_TIMESTAMPING_OPT_PKTINFO), and for sent ones only when these come back whole
//     (SOF_TIMESTAMPING_OPT_CMSG, which OPT_TSONLY excludes). A stamp of an unknown clock is
//     dropped: two clocks of one host may be close enough to be taken for each other.
//   - Receive stamping is switched on in the kernel with a delay, so the first packets may come
//     without.
#ifndef SYNCLINE_AGENT_PROBE_UDP_UDP_SOCKET_H_
#define SYNCLINE_AGENT_PROBE_UDP_UDP_SOCKET_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "agent/probe/udp/probe_clock.h"
#include "agent/probe/udp/probe_socket.h"
#include "agent/probe/udp/stamp_message.h"

namespace syncline::probe {

class UdpSocket : public ProbeSocket {
 public:
  // Bound to `local` (port 0: any). Without kernel_stamps only the user's stamps are taken. Goes on
  // without kernel stamps where the kernel has none. `clock` is not owned.
  static absl::StatusOr<std::unique_ptr<UdpSocket>> Open(const Address& local, bool kernel_stamps,
                                                         ProbeClock* clock);
  UdpSocket(const UdpSocket&) = delete;
  UdpSocket& operator=(const UdpSocket&) = delete;
  ~UdpSocket() override;

  absl::StatusOr<SentPacket> Send(const Address& to, std::span<const uint8_t> bytes) override;
  std::optional<ReceivedPacket> Receive() override;
  std::optional<TransmitStamp> NextTransmitStamp() override;
  std::string DeviceTowards(const Address& peer) override;
  HardwareOffer UseHardware(const std::string& device) override;

  int fd() const { return fd_; }
  absl::StatusOr<Address> LocalAddress() const;

 private:
  UdpSocket(int fd, ProbeClock* clock);
  bool RequestStamps(bool with_ids);
  void RestartIds();
  HardwareStamp StampOfDevice(const StampMessage& message);

  const int fd_;
  ProbeClock* const clock_;
  bool kernel_stamps_ = false;               // they are asked for
  bool hardware_ = false;                    // stamps of devices are asked for
  std::map<uint32_t, int> clock_of_device_;  // by index; -1: none that can be read
  uint64_t sent_ = 0;                        // ids given out
  uint64_t first_of_count_ = 0;              // the id of the send that the kernel counts as 0
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_UDP_SOCKET_H_

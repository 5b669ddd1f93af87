// SPDX-License-Identifier: Apache-2.0
// What the kernel says of a packet's stamps in the control messages of recvmsg.
#ifndef SYNCLINE_AGENT_PROBE_UDP_STAMP_MESSAGE_H_
#define SYNCLINE_AGENT_PROBE_UDP_STAMP_MESSAGE_H_

#include <linux/net_tstamp.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace syncline::probe {

// What a socket asks for (SO_TIMESTAMPING): the kernel's stamps, and those of devices beside them.
inline constexpr int kKernelStampFlags =
    SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
inline constexpr int kDeviceStampFlags =
    SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE |
    SOF_TIMESTAMPING_OPT_TX_SWHW | SOF_TIMESTAMPING_OPT_PKTINFO | SOF_TIMESTAMPING_OPT_CMSG;

// Asks for it, with kDeviceStampFlags also for the device through which a packet left. False, with
// errno, where the kernel refuses.
bool RequestStamps(int fd, int flags);

// Room for all that is then told of a packet.
inline constexpr size_t kStampControlBytes = 512;

struct StampMessage {
  int64_t software_ns = 0;  // CLOCK_REALTIME; 0: none
  int64_t hardware_ns = 0;  // of the device's clock; 0: none
  // The real device that received or sent the packet; 0: not told.
  uint32_t device_index = 0;
  // The kernel's count of the packet that was sent; nothing for a received one.
  std::optional<uint32_t> count;
};

StampMessage ReadStampMessage(const msghdr& message);

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_STAMP_MESSAGE_H_

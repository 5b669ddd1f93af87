// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/stamp_message.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace syncline::probe {
namespace {

// Control messages as the kernel lays them out.
class Control {
 public:
  template <typename T>
  Control& Add(int level, int type, const T& content, size_t cut_bytes = 0) {
    const size_t begin = bytes_.size();
    bytes_.resize(begin + CMSG_SPACE(sizeof content));
    cmsghdr header{};
    header.cmsg_len = CMSG_LEN(sizeof content) - cut_bytes;
    header.cmsg_level = level;
    header.cmsg_type = type;
    std::memcpy(bytes_.data() + begin, &header, sizeof header);
    std::memcpy(bytes_.data() + begin + CMSG_LEN(0), &content, sizeof content);
    return *this;
  }
  Control& AddStamps(timespec software, timespec hardware, size_t cut_bytes = 0) {
    scm_timestamping stamps{};
    stamps.ts[0] = software;
    stamps.ts[2] = hardware;
    return Add(SOL_SOCKET, SCM_TIMESTAMPING, stamps, cut_bytes);
  }
  Control& AddSent(uint32_t count, uint32_t what = SCM_TSTAMP_SND,
                   uint8_t origin = SO_EE_ORIGIN_TIMESTAMPING) {
    sock_extended_err error{};
    error.ee_errno = ENOMSG;
    error.ee_origin = origin;
    error.ee_info = what;
    error.ee_data = count;
    return Add(SOL_IP, IP_RECVERR, error);
  }
  StampMessage Read() {
    msghdr message{};
    message.msg_control = bytes_.data();
    message.msg_controllen = bytes_.size();
    return ReadStampMessage(message);
  }

 private:
  std::vector<char> bytes_;  // from the heap, and so aligned
};

in_pktinfo By(int device_index) {
  in_pktinfo info{};
  info.ipi_ifindex = device_index;
  return info;
}

TEST(StampMessage, AReceivedPacketHasBothStampsInOneMessage) {
  const StampMessage read =
      Control()
          .AddStamps({5, 6}, {7, 8})
          .Add(SOL_SOCKET, SCM_TIMESTAMPING_PKTINFO, scm_ts_pktinfo{3, 90, {}})
          .Add(SOL_IP, IP_PKTINFO, By(12))
          .Read();
  EXPECT_EQ(read.software_ns, 5'000'000'006);
  EXPECT_EQ(read.hardware_ns, 7'000'000'008);
  EXPECT_EQ(read.device_index, 3u) << "the real device, not that of the address";
  EXPECT_FALSE(read.count.has_value());
}

TEST(StampMessage, ASentPacketHasAMessageForEachStamp) {
  const StampMessage software = Control().AddStamps({5, 6}, {}).AddSent(77).Read();
  EXPECT_EQ(software.software_ns, 5'000'000'006);
  EXPECT_EQ(software.hardware_ns, 0);
  EXPECT_EQ(software.count, 77u);
  const StampMessage hardware =
      Control().Add(SOL_IP, IP_PKTINFO, By(12)).AddStamps({}, {7, 8}).AddSent(77).Read();
  EXPECT_EQ(hardware.software_ns, 0);
  EXPECT_EQ(hardware.hardware_ns, 7'000'000'008);
  EXPECT_EQ(hardware.device_index, 12u);
  EXPECT_EQ(hardware.count, 77u);
}

TEST(StampMessage, ADeviceThatIsNotToldIsNotGuessed) {
  EXPECT_EQ(Control().AddStamps({5, 6}, {7, 8}).Add(SOL_IP, IP_PKTINFO, By(12)).Read().device_index,
            0u);
  EXPECT_EQ(Control().AddStamps({}, {7, 8}).AddSent(1).Read().device_index, 0u);
}

TEST(StampMessage, OtherMessagesAndShortOnesSayNothing) {
  EXPECT_FALSE(Control().AddSent(1, SCM_TSTAMP_SCHED).Read().count.has_value());
  EXPECT_FALSE(Control().AddSent(1, SCM_TSTAMP_SND, SO_EE_ORIGIN_ICMP).Read().count.has_value());
  EXPECT_EQ(Control().AddStamps({5, 6}, {7, 8}, 1).Read().hardware_ns, 0);
  EXPECT_EQ(Control().Read().software_ns, 0);
}

// Sends a packet from a socket to itself, with everything asked for that a device may be asked for.
// Nothing where the machine has no such addresses.
std::optional<StampMessage> SendToOneself(int family, const char* address) {
  const int fd = ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int flags = kKernelStampFlags | kDeviceStampFlags | SOF_TIMESTAMPING_OPT_ID;
  EXPECT_TRUE(RequestStamps(fd, flags));
  sockaddr_storage own{.ss_family = static_cast<sa_family_t>(family)};
  auto* any = reinterpret_cast<sockaddr*>(&own);
  socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (::bind(fd, any, length) != 0 || ::getsockname(fd, any, &length) != 0) {
    ::close(fd);
    return std::nullopt;
  }
  if (family == AF_INET) {
    ::inet_pton(family, address, &reinterpret_cast<sockaddr_in*>(any)->sin_addr);
  } else {
    ::inet_pton(family, address, &reinterpret_cast<sockaddr_in6*>(any)->sin6_addr);
  }
  const char bytes[80] = {};
  std::optional<StampMessage> sent;
  pollfd readable{.fd = fd, .events = 0};  // POLLERR always counts
  alignas(cmsghdr) char control[kStampControlBytes];
  msghdr message{.msg_control = control, .msg_controllen = sizeof control};
  if (::sendto(fd, bytes, sizeof bytes, 0, any, length) == ssize_t{sizeof bytes} &&
      ::poll(&readable, 1, 10'000) == 1 && ::recvmsg(fd, &message, MSG_ERRQUEUE) >= 0) {
    EXPECT_EQ(message.msg_flags & MSG_CTRUNC, 0) << "more was told than there is room for";
    sent = ReadStampMessage(message);
  }
  ::close(fd);
  return sent;
}

// The kernel itself: with what is asked of it for the sake of devices, its own stamps still come,
// each with the device that the packet left through. (A device that stamps, too, is not at hand.)
TEST(StampMessage, TheKernelTellsThroughWhichDeviceAPacketLeft) {
  int families = 0;
  for (const auto& [family, address] : {std::pair(AF_INET, "127.0.0.1"), std::pair(AF_INET6, "::1"),
                                        std::pair(AF_INET6, "::ffff:127.0.0.1")}) {
    const auto sent = SendToOneself(family, address);
    if (!sent) continue;
    ++families;
    EXPECT_EQ(sent->count, 0u) << address;
    EXPECT_GT(sent->software_ns, 0) << address;
    EXPECT_EQ(sent->hardware_ns, 0) << address;
    EXPECT_EQ(sent->device_index, ::if_nametoindex("lo")) << address;
  }
  EXPECT_GE(families, 1);
}

}  // namespace
}  // namespace syncline::probe

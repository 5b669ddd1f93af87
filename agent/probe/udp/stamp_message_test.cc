#include "agent/probe/udp/stamp_message.h"

#include <gtest/gtest.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
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

// The kernel itself: with what is asked of it for the sake of devices, its own stamps still come,
// each with the device that the packet left through. (A device that stamps, too, is not at hand.)
TEST(StampMessage, TheKernelTellsThroughWhichDeviceAPacketLeft) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(fd, 0);
  const int flags = kKernelStampFlags | kDeviceStampFlags | SOF_TIMESTAMPING_OPT_ID;
  const int on = 1;
  ASSERT_EQ(::setsockopt(fd, SOL_IP, IP_PKTINFO, &on, sizeof on), 0);
  ASSERT_EQ(::setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags), 0);
  sockaddr_in self{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof self;
  auto* address = reinterpret_cast<sockaddr*>(&self);
  ASSERT_EQ(::bind(fd, address, length), 0);
  ASSERT_EQ(::getsockname(fd, address, &length), 0);
  char bytes[80] = {};
  ASSERT_EQ(::sendto(fd, bytes, sizeof bytes, 0, address, length), ssize_t{sizeof bytes});

  pollfd readable{.fd = fd, .events = 0};  // POLLERR always counts
  ASSERT_EQ(::poll(&readable, 1, 10'000), 1);
  alignas(cmsghdr) char control[512];
  iovec vector{.iov_base = bytes, .iov_len = sizeof bytes};
  msghdr message{.msg_iov = &vector,
                 .msg_iovlen = 1,
                 .msg_control = control,
                 .msg_controllen = sizeof control};
  ASSERT_GE(::recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT), 0);
  const StampMessage sent = ReadStampMessage(message);
  ::close(fd);
  EXPECT_EQ(sent.count, 0u);
  EXPECT_GT(sent.software_ns, 0);
  EXPECT_EQ(sent.hardware_ns, 0);
  EXPECT_EQ(sent.device_index, ::if_nametoindex("lo"));
}

}  // namespace
}  // namespace syncline::probe

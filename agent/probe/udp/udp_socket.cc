// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/udp_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/net_tstamp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/probe/udp/device_stamping.h"
#include "agent/probe/udp/ptp_clock.h"
#include "common/status.h"
#include "common/text.h"

namespace syncline::probe {
namespace {

// Bursts of a thousand peers must not overflow the socket: 4,096 packets.
constexpr int kBufferBytes = 4096 * 1024;

}  // namespace

Address::Address(const sockaddr* address, socklen_t length)
    : length_(length <= sizeof storage_ ? length : 0) {
  std::memcpy(&storage_, address, length_);
}

absl::StatusOr<Address> Address::Parse(std::string_view host_and_port) {
  const size_t colon = host_and_port.rfind(':');
  uint32_t port = 0;
  if (colon == std::string_view::npos ||
      !absl::SimpleAtoi(AbslView(host_and_port.substr(colon + 1)), &port) || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", AbslView(host_and_port), "\" is not ADDRESS:PORT"));
  }
  std::string host(host_and_port.substr(0, colon));
  sockaddr_in v4{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    return Address(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
  }
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  sockaddr_in6 v6{.sin6_family = AF_INET6, .sin6_port = htons(static_cast<uint16_t>(port))};
  if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    return Address(reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", host, "\" is not an IPv4 or IPv6 address in numbers"));
}

std::string Address::ToString() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage_.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage_);
    ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
    return absl::StrCat(text, ":", ntohs(v4->sin_port));
  }
  if (storage_.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage_);
    ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
    return absl::StrCat("[", text, "]:", ntohs(v6->sin6_port));
  }
  return "no address";
}

bool Address::operator==(const Address& other) const {
  return length_ == other.length_ && std::memcmp(&storage_, &other.storage_, length_) == 0;
}

absl::StatusOr<std::unique_ptr<UdpSocket>> UdpSocket::Open(const Address& local, bool kernel_stamps,
                                                           ProbeClock* clock) {
  const int fd =
      ::socket(local.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);
  if (fd < 0) return ErrnoStatus(errno, "Cannot open a UDP socket for clock probes");
  if (::bind(fd, local.get(), local.length()) != 0) {
    const int error_number = errno;
    ::close(fd);
    return ErrnoStatus(error_number,
                       absl::StrCat("Cannot listen for clock probes on UDP ", local.ToString()));
  }
  // As much as the system allows; less only loses probes when very many come at once.
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kBufferBytes, sizeof kBufferBytes);
  std::unique_ptr<UdpSocket> opened(new UdpSocket(fd, clock));
  opened->kernel_stamps_ = kernel_stamps && opened->RequestStamps(/*with_ids=*/true);
  return opened;
}

UdpSocket::UdpSocket(int fd, ProbeClock* clock) : fd_(fd), clock_(clock) {}

UdpSocket::~UdpSocket() { ::close(fd_); }

absl::StatusOr<SentPacket> UdpSocket::Send(const Address& to, std::span<const uint8_t> bytes) {
  SentPacket sent;
  // The last thing before the packet is handed over: a send stamp must never be late.
  sent.before_raw_ns = clock_->RawNs();
  const ssize_t size =
      ::sendto(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT, to.get(), to.length());
  if (size != static_cast<ssize_t>(bytes.size())) {
    const int error_number = errno;
    RestartIds();
    return absl::UnavailableError(absl::StrCat("Cannot send a clock probe to ", to.ToString(), ": ",
                                               std::strerror(error_number)));
  }
  sent.id = sent_++;
  return sent;
}

bool UdpSocket::RequestStamps(bool with_ids) {
  const int flags = kKernelStampFlags |
                    (hardware_ ? kDeviceStampFlags : SOF_TIMESTAMPING_OPT_TSONLY) |
                    (with_ids ? SOF_TIMESTAMPING_OPT_ID : 0);
  return probe::RequestStamps(fd_, flags);
}

void UdpSocket::RestartIds() {
  if (!kernel_stamps_) return;
  // The kernel begins at 0 when the option is switched on anew.
  RequestStamps(/*with_ids=*/false);
  while (NextTransmitStamp()) {
  }
  RequestStamps(/*with_ids=*/true);
  first_of_count_ = sent_;
}

HardwareOffer UdpSocket::UseHardware(const std::string& device) {
  if (!kernel_stamps_) return {.refusal = "stamps were not requested"};
  const DeviceFacts facts = InspectDevice(fd_, device);
  if (std::string why = WhyNoHardwareStamps(facts); !why.empty()) return {.refusal = why};
  if (const int error_number = clock_->OpenHardware(facts.clock)) {
    return {.refusal = absl::StrCat("cannot read ", PtpClockPath(facts.clock), ", the clock of ",
                                    device, ": ", std::strerror(error_number))};
  }
  if (!hardware_) {
    hardware_ = true;
    if (!RequestStamps(/*with_ids=*/true)) {
      const int error_number = errno;
      hardware_ = false;
      return {.refusal =
                  absl::StrCat("this kernel gives no hardware stamps in addition to its own: ",
                               std::strerror(error_number))};
    }
  }
  clock_of_device_.clear();  // devices come and go
  return {.clock = facts.clock};
}

HardwareStamp UdpSocket::StampOfDevice(const StampMessage& message) {
  if (message.hardware_ns == 0 || message.device_index == 0) return {};
  auto found = clock_of_device_.find(message.device_index);
  if (found == clock_of_device_.end()) {
    char name[IF_NAMESIZE] = "";
    int clock = -1;
    if (::if_indextoname(message.device_index, name) != nullptr) {
      clock = InspectDevice(fd_, name).clock;
      if (clock >= 0 && clock_->OpenHardware(clock) != 0) clock = -1;
    }
    found = clock_of_device_.emplace(message.device_index, clock).first;
  }
  if (found->second < 0) return {};
  return {.ns = message.hardware_ns, .clock = found->second};
}

std::optional<ReceivedPacket> UdpSocket::Receive() {
  ReceivedPacket packet;
  sockaddr_storage from;
  iovec vector{.iov_base = packet.buffer.data(), .iov_len = packet.buffer.size()};
  alignas(cmsghdr) char control[kStampControlBytes];
  msghdr message{.msg_name = &from,
                 .msg_namelen = sizeof from,
                 .msg_iov = &vector,
                 .msg_iovlen = 1,
                 .msg_control = control,
                 .msg_controllen = sizeof control};
  const ssize_t size = ::recvmsg(fd_, &message, MSG_DONTWAIT | MSG_TRUNC);
  if (size < 0) return std::nullopt;
  packet.after_raw_ns = clock_->RawNs();
  packet.size_bytes = static_cast<size_t>(size);
  packet.from = Address(reinterpret_cast<const sockaddr*>(&from), message.msg_namelen);
  const StampMessage stamps = ReadStampMessage(message);
  packet.realtime_ns = stamps.software_ns;
  packet.hardware = StampOfDevice(stamps);
  return packet;
}

std::optional<TransmitStamp> UdpSocket::NextTransmitStamp() {
  if (!kernel_stamps_) return std::nullopt;
  for (;;) {
    alignas(cmsghdr) char control[kStampControlBytes];
    msghdr message{.msg_control = control, .msg_controllen = sizeof control};
    if (::recvmsg(fd_, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return std::nullopt;
    const StampMessage stamps = ReadStampMessage(message);
    const HardwareStamp hardware = StampOfDevice(stamps);
    if (!stamps.count || (stamps.software_ns == 0 && hardware.ns == 0)) continue;
    // The count has 32 bits; the packet is the latest sent that has these.
    const uint64_t sends = sent_ - first_of_count_;
    const uint64_t behind = static_cast<uint32_t>(static_cast<uint32_t>(sends) - 1 - *stamps.count);
    if (behind >= sends) continue;
    return TransmitStamp{
        .id = sent_ - 1 - behind, .realtime_ns = stamps.software_ns, .hardware = hardware};
  }
}

std::string UdpSocket::DeviceTowards(const Address& peer) {
  // A connected UDP socket sends nothing but knows which of our addresses it would use.
  const int fd = ::socket(peer.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "";
  sockaddr_storage ours{};
  socklen_t length = sizeof ours;
  const bool known = ::connect(fd, peer.get(), peer.length()) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&ours), &length) == 0;
  ::close(fd);
  ifaddrs* devices = nullptr;
  if (!known || ::getifaddrs(&devices) != 0) return "";
  std::string name;
  for (const ifaddrs* device = devices; device != nullptr && name.empty();
       device = device->ifa_next) {
    if (device->ifa_addr == nullptr || device->ifa_addr->sa_family != ours.ss_family) continue;
    if (ours.ss_family == AF_INET) {
      const auto* a = reinterpret_cast<const sockaddr_in*>(&ours);
      const auto* b = reinterpret_cast<const sockaddr_in*>(device->ifa_addr);
      if (a->sin_addr.s_addr == b->sin_addr.s_addr) name = device->ifa_name;
    } else {
      const auto* a = reinterpret_cast<const sockaddr_in6*>(&ours);
      const auto* b = reinterpret_cast<const sockaddr_in6*>(device->ifa_addr);
      if (std::memcmp(&a->sin6_addr, &b->sin6_addr, sizeof a->sin6_addr) == 0) {
        name = device->ifa_name;
      }
    }
  }
  ::freeifaddrs(devices);
  return name;
}

absl::StatusOr<Address> UdpSocket::LocalAddress() const {
  sockaddr_storage local{};
  socklen_t length = sizeof local;
  if (::getsockname(fd_, reinterpret_cast<sockaddr*>(&local), &length) != 0) {
    return ErrnoStatus(errno, "Cannot determine the address of the UDP socket");
  }
  return Address(reinterpret_cast<const sockaddr*>(&local), length);
}

}  // namespace syncline::probe

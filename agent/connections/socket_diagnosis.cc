// SPDX-License-Identifier: Apache-2.0
#include "agent/connections/socket_diagnosis.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/host/net_namespace.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

using evidence::ConnectionValue;
using evidence::ConnectionValues;

constexpr size_t kDatagramBytes = 64 << 10;
constexpr time_t kAnswerS = 1;
// States of RFC 793 by the kernel's numbers (include/net/tcp_states.h): established, FIN wait 1 and
// 2, close wait, last ACK, closing.
constexpr uint32_t kStates = 1U << 1 | 1U << 4 | 1U << 5 | 1U << 8 | 1U << 9 | 1U << 11;

// A connection over IPv4 has the same text whichever kind of socket it has at either end.
std::string AddressText(uint8_t family, const __be32* address, __be16 port) {
  char text[INET6_ADDRSTRLEN] = "";
  if (family == AF_INET6 && address[0] == 0 && address[1] == 0 && ntohl(address[2]) == 0xffff) {
    return AddressText(AF_INET, address + 3, port);
  }
  ::inet_ntop(family, address, text, sizeof text);
  return family == AF_INET6 ? absl::StrCat("[", text, "]:", ntohs(port))
                            : absl::StrCat(text, ":", ntohs(port));
}

// A kernel that is older than the header says less, a newer one more.
class Info {
 public:
  explicit Info(std::span<const uint8_t> bytes) : bytes_(std::min(bytes.size(), sizeof info_)) {
    std::memcpy(&info_, bytes.data(), bytes_);
  }

  ConnectionValues Values() const {
    ConnectionValues values;
    const auto set = [&](ConnectionValue value, const auto tcp_info::*field) {
      const auto* const begin = reinterpret_cast<const char*>(&info_);
      const auto* const end = reinterpret_cast<const char*>(&(info_.*field) + 1);
      if (static_cast<size_t>(end - begin) <= bytes_) values.Set(value, info_.*field);
    };
    set(ConnectionValue::kRttUs, &tcp_info::tcpi_rtt);
    set(ConnectionValue::kMinRttUs, &tcp_info::tcpi_min_rtt);
    set(ConnectionValue::kDeliveryRate, &tcp_info::tcpi_delivery_rate);
    set(ConnectionValue::kUnsentBytes, &tcp_info::tcpi_notsent_bytes);
    set(ConnectionValue::kSentBytes, &tcp_info::tcpi_bytes_sent);
    set(ConnectionValue::kRetransmittedBytes, &tcp_info::tcpi_bytes_retrans);
    set(ConnectionValue::kReceivedBytes, &tcp_info::tcpi_bytes_received);
    set(ConnectionValue::kSentSegments, &tcp_info::tcpi_data_segs_out);
    set(ConnectionValue::kRetransmittedSegments, &tcp_info::tcpi_total_retrans);
    set(ConnectionValue::kDuplicates, &tcp_info::tcpi_dsack_dups);
    set(ConnectionValue::kBusyUs, &tcp_info::tcpi_busy_time);
    set(ConnectionValue::kWindowFullUs, &tcp_info::tcpi_rwnd_limited);
    set(ConnectionValue::kBufferShortUs, &tcp_info::tcpi_sndbuf_limited);
    return values;
  }

 private:
  tcp_info info_{};
  size_t bytes_;
};

template <class T>
T Copied(std::span<const uint8_t> bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// One connection and its attributes.
void TakeMessage(std::span<const uint8_t> bytes, const WantedSockets& wanted,
                 std::vector<SocketState>* found) {
  if (bytes.size() < sizeof(inet_diag_msg)) return;
  const auto message = Copied<inet_diag_msg>(bytes);
  if (!wanted(message.idiag_inode)) return;
  SocketState state;
  state.inode = message.idiag_inode;
  state.local = AddressText(message.idiag_family, message.id.idiag_src, message.id.idiag_sport);
  state.remote = AddressText(message.idiag_family, message.id.idiag_dst, message.id.idiag_dport);
  bytes = bytes.subspan(std::min(bytes.size(), NLMSG_ALIGN(sizeof message)));
  while (bytes.size() >= sizeof(nlattr)) {
    const auto attribute = Copied<nlattr>(bytes);
    if (attribute.nla_len < sizeof attribute || attribute.nla_len > bytes.size()) return;
    if (attribute.nla_type == INET_DIAG_INFO) {
      state.values = Info(bytes.subspan(NLA_HDRLEN, attribute.nla_len - NLA_HDRLEN)).Values();
      found->push_back(std::move(state));
      return;
    }
    bytes = bytes.subspan(std::min<size_t>(bytes.size(), NLA_ALIGN(attribute.nla_len)));
  }
}

class Diagnosis : public SocketSource {
 public:
  explicit Diagnosis(Descriptor fd) : fd_(std::move(fd)) {}

  absl::StatusOr<std::vector<SocketState>> Read(const WantedSockets& wanted) override {
    std::vector<SocketState> found;
    for (const uint8_t family : {AF_INET, AF_INET6}) {
      SYNCLINE_RETURN_IF_ERROR(Ask(family));
      for (bool more = true; more;) {
        SYNCLINE_ASSIGN_OR_RETURN(more, TakeAnswer(wanted, &found));
      }
    }
    return found;
  }

 private:
  absl::Status Ask(uint8_t family) {
    struct {
      nlmsghdr head;
      inet_diag_req_v2 request;
    } asked{};
    asked.head.nlmsg_len = sizeof asked;
    asked.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    asked.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    asked.head.nlmsg_seq = ++sequence_;
    asked.request.sdiag_family = family;
    asked.request.sdiag_protocol = IPPROTO_TCP;
    asked.request.idiag_ext = 1U << (INET_DIAG_INFO - 1);
    asked.request.idiag_states = kStates;
    if (::send(fd_.get(), &asked, sizeof asked, 0) < 0) {
      return ErrnoStatus(errno, "the kernel's socket diagnosis cannot be asked");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<bool> TakeAnswer(const WantedSockets& wanted, std::vector<SocketState>* found) {
    ssize_t size = -1;
    do {
      size = ::recv(fd_.get(), buffer_.data(), buffer_.size(), 0);
    } while (size < 0 && errno == EINTR);
    if (size <= 0) return ErrnoStatus(errno, "the kernel's socket diagnosis does not answer");
    const std::span bytes(buffer_.data(), static_cast<size_t>(size));
    // What is left of an answer that was not waited for.
    if (bytes.size() >= sizeof(nlmsghdr) && Copied<nlmsghdr>(bytes).nlmsg_seq != sequence_) {
      return true;
    }
    return ParseDiagnosis(bytes, wanted, found);
  }

  const Descriptor fd_;
  uint32_t sequence_ = 0;
  std::vector<uint8_t> buffer_ = std::vector<uint8_t>(kDatagramBytes);
};

}  // namespace

absl::StatusOr<bool> ParseDiagnosis(std::span<const uint8_t> bytes, const WantedSockets& wanted,
                                    std::vector<SocketState>* found) {
  while (bytes.size() >= sizeof(nlmsghdr)) {
    const auto head = Copied<nlmsghdr>(bytes);
    if (head.nlmsg_len < sizeof head || head.nlmsg_len > bytes.size()) {
      return absl::DataLossError("the kernel's socket diagnosis answers with a cut message");
    }
    const auto body = bytes.subspan(NLMSG_HDRLEN, head.nlmsg_len - NLMSG_HDRLEN);
    if (head.nlmsg_type == NLMSG_DONE) return false;
    if (head.nlmsg_type == NLMSG_ERROR) {
      const int error = body.size() < sizeof(int) ? 0 : -Copied<int>(body);
      return ErrnoStatus(error, "the kernel's socket diagnosis refuses");
    }
    if (head.nlmsg_type == SOCK_DIAG_BY_FAMILY) TakeMessage(body, wanted, found);
    bytes = bytes.subspan(std::min<size_t>(bytes.size(), NLMSG_ALIGN(head.nlmsg_len)));
  }
  return true;
}

absl::StatusOr<std::unique_ptr<SocketSource>> OpenSocketDiagnosis(const std::filesystem::path& proc,
                                                                  int32_t pid, uint64_t inode) {
  int fd = -1;
  int error = 0;
  SYNCLINE_RETURN_IF_ERROR(InNetNamespace(proc, pid, inode, [&] {
    fd = ::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    error = errno;
  }));
  if (fd < 0) return ErrnoStatus(error, "the kernel's socket diagnosis is not to be had");
  Descriptor descriptor(fd);
  const timeval limit{.tv_sec = kAnswerS, .tv_usec = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return std::make_unique<Diagnosis>(std::move(descriptor));
}

}  // namespace syncline::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/connections/socket_diagnosis.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "agent/host/proc_links.h"
#include "common/files.h"

namespace syncline::agent {
namespace {

using evidence::ConnectionValue;
using ::testing::IsEmpty;

uint64_t InodeOf(int fd) {
  struct stat info {};
  EXPECT_EQ(::fstat(fd, &info), 0);
  return info.st_ino;
}

// Two ends of a connection over the loopback device; `family`: of the sockets, over IPv4 always.
struct Pair {
  explicit Pair(int family) {
    const Descriptor listener(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    ::inet_pton(AF_INET6, "::ffff:127.0.0.1", &v6.sin6_addr);
    auto* const address =
        family == AF_INET ? reinterpret_cast<sockaddr*>(&v4) : reinterpret_cast<sockaddr*>(&v6);
    socklen_t size = family == AF_INET ? sizeof v4 : sizeof v6;
    EXPECT_EQ(::bind(listener.get(), address, size), 0) << std::strerror(errno);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener.get(), address, &size), 0);
    sender = Descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(sender.get(), address, size), 0) << std::strerror(errno);
    receiver = Descriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    port = ntohs(family == AF_INET ? v4.sin_port : v6.sin6_port);
  }

  Descriptor sender{-1};
  Descriptor receiver{-1};
  int port = 0;
};

SocketState StateOf(const Descriptor& fd) {
  const uint64_t inode = InodeOf(fd.get());
  auto source = OpenSocketDiagnosis("/proc", ::getpid(), NetNamespaceOf("/proc", ::getpid()));
  EXPECT_TRUE(source.ok()) << source.status();
  auto states = (*source)->Read([&](uint64_t one) { return one == inode; });
  EXPECT_TRUE(states.ok()) << states.status();
  EXPECT_EQ(states->size(), 1U);
  return states->empty() ? SocketState{} : states->front();
}

class SocketDiagnosisTest : public ::testing::TestWithParam<int> {};

TEST_P(SocketDiagnosisTest, BothEndsAreFoundWithWhatWentBetweenThem) {
  const Pair pair(GetParam());
  const std::string sent(100'000, 'x');
  std::string received(sent.size(), '\0');
  ASSERT_EQ(::send(pair.sender.get(), sent.data(), sent.size(), 0),
            static_cast<ssize_t>(sent.size()));
  ASSERT_EQ(::recv(pair.receiver.get(), received.data(), received.size(), MSG_WAITALL),
            static_cast<ssize_t>(sent.size()));
  const SocketState sender = StateOf(pair.sender);
  const SocketState receiver = StateOf(pair.receiver);
  EXPECT_EQ(sender.remote, "127.0.0.1:" + std::to_string(pair.port));
  EXPECT_EQ(receiver.local, sender.remote);
  EXPECT_EQ(receiver.remote, sender.local);
  EXPECT_EQ(sender.values.Get(ConnectionValue::kSentBytes), 100'000);
  EXPECT_EQ(sender.values.Get(ConnectionValue::kRetransmittedBytes), 0);
  EXPECT_EQ(receiver.values.Get(ConnectionValue::kReceivedBytes), 100'000);
  EXPECT_EQ(receiver.values.Get(ConnectionValue::kSentBytes), 0);
  EXPECT_GT(sender.values.Get(ConnectionValue::kRttUs).value_or(0), 0);
}

INSTANTIATE_TEST_SUITE_P(Families, SocketDiagnosisTest, ::testing::Values(AF_INET, AF_INET6));

TEST(SocketDiagnosis, AReceiverThatDoesNotReadIsATimeWithAFullWindow) {
  const Pair pair(AF_INET);
  const int small = 4096;
  ::setsockopt(pair.receiver.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  const std::string bytes(64 << 10, 'x');
  while (::send(pair.sender.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
  }
  ASSERT_EQ(errno, EAGAIN);
  const auto before = StateOf(pair.sender).values;
  pollfd writable{.fd = pair.sender.get(), .events = POLLOUT};
  ASSERT_EQ(::poll(&writable, 1, 300), 0) << "it stands still";
  const auto after = StateOf(pair.sender).values;
  const auto grown_us = [&](ConnectionValue value) {
    return after.Get(value).value_or(0) - before.Get(value).value_or(0);
  };
  EXPECT_GT(after.Get(ConnectionValue::kUnsentBytes).value_or(0), 0);
  EXPECT_GE(grown_us(ConnectionValue::kBusyUs), 290'000);
  EXPECT_GE(grown_us(ConnectionValue::kWindowFullUs), 250'000);
  EXPECT_LE(grown_us(ConnectionValue::kWindowFullUs), grown_us(ConnectionValue::kBusyUs));
  EXPECT_EQ(grown_us(ConnectionValue::kBufferShortUs), 0);
}

TEST(SocketDiagnosis, BytesThatAreNoAnswerAreRefused) {
  std::vector<SocketState> found;
  const WantedSockets all = [](uint64_t) { return true; };
  nlmsghdr head{};
  head.nlmsg_len = 4000;
  std::vector<uint8_t> bytes(sizeof head);
  std::memcpy(bytes.data(), &head, sizeof head);
  EXPECT_EQ(ParseDiagnosis(bytes, all, &found).status().code(), absl::StatusCode::kDataLoss);
  head.nlmsg_len = 3;
  std::memcpy(bytes.data(), &head, sizeof head);
  EXPECT_FALSE(ParseDiagnosis(bytes, all, &found).ok());
  EXPECT_THAT(found, IsEmpty());
  EXPECT_EQ(ParseDiagnosis({}, all, &found).value(), true);
}

TEST(SocketDiagnosis, ANamespaceThatIsNotTheProcessesOwnIsNotEntered) {
  EXPECT_EQ(OpenSocketDiagnosis("/proc", ::getpid(), 12345).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace syncline::agent

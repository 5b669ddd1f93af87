// SPDX-License-Identifier: Apache-2.0
// syncline-testbed-relay: delays UDP packets between two hosts by known amounts, for networks that
// this machine cannot have (no netem).
//
//   syncline-testbed-relay LISTEN:PORT TARGET:PORT --out-us 50 --back-us 50 --jitter-us 20
//
// What comes from anywhere else goes to TARGET after `out` plus an exponential jitter; what comes
// from TARGET goes back to whoever sent last. Packets may overtake each other, as on a real
// network. The delay counts from the kernel's stamp of the packet, and the relay waits without
// sleeping for the last 200 us before one is due: what it adds by being a program is a microsecond.
// Ends with its parent.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <string>

namespace {

constexpr int64_t kSpinNs = 200'000;
constexpr int64_t kNsPerSecond = 1'000'000'000;

int64_t Now() {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * kNsPerSecond + now.tv_nsec;
}

bool ParseAddress(const std::string& text, sockaddr_in* address) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  *address = {};
  address->sin_family = AF_INET;
  address->sin_port = htons(static_cast<uint16_t>(std::strtoul(&text[colon + 1], nullptr, 10)));
  return ::inet_pton(AF_INET, text.substr(0, colon).c_str(), &address->sin_addr) == 1;
}

struct Options {
  std::string listen, target;
  double out_us = 50, back_us = 50, jitter_us = 0;
  uint64_t seed = 1;
};

class Relay {
 public:
  Relay(int fd, const sockaddr_in& target, const Options& options)
      : fd_(fd), target_(target), options_(options), random_(options.seed) {}

  [[noreturn]] void Run() {
    for (;;) {
      while (Receive()) {
      }
      while (!waiting_.empty() && waiting_.begin()->first <= Now()) {
        const Packet& packet = waiting_.begin()->second;
        ::sendto(fd_, packet.bytes.data(), packet.size, 0,
                 reinterpret_cast<const sockaddr*>(&packet.to), sizeof packet.to);
        waiting_.erase(waiting_.begin());
      }
      Rest();
    }
  }

 private:
  struct Packet {
    sockaddr_in to;
    size_t size = 0;
    std::array<char, 2048> bytes;
  };

  bool Receive() {
    Packet packet;
    sockaddr_in from;
    iovec vector{packet.bytes.data(), packet.bytes.size()};
    alignas(cmsghdr) char control[256];
    msghdr message{.msg_name = &from,
                   .msg_namelen = sizeof from,
                   .msg_iov = &vector,
                   .msg_iovlen = 1,
                   .msg_control = control,
                   .msg_controllen = sizeof control,
                   .msg_flags = 0};
    const ssize_t size = ::recvmsg(fd_, &message, MSG_DONTWAIT);
    if (size < 0) return false;
    int64_t came = Now();
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      timespec stamp;
      if (c->cmsg_type != SCM_TIMESTAMPNS) continue;
      std::memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
      came = int64_t{stamp.tv_sec} * kNsPerSecond + stamp.tv_nsec;
    }
    const bool back = from.sin_addr.s_addr == target_.sin_addr.s_addr;
    if (!back) asking_ = from;
    packet.to = back ? asking_ : target_;
    packet.size = static_cast<size_t>(size);
    double delay_us = back ? options_.back_us : options_.out_us;
    if (options_.jitter_us > 0) {
      delay_us += std::exponential_distribution<>(1 / options_.jitter_us)(random_);
    }
    waiting_.emplace(came + static_cast<int64_t>(delay_us * 1e3), packet);
    return true;
  }

  void Rest() const {
    int64_t rest_ns = 100'000'000;
    if (!waiting_.empty()) rest_ns = waiting_.begin()->first - Now() - kSpinNs;
    if (rest_ns <= 0) return;
    const timespec timeout{.tv_sec = rest_ns / kNsPerSecond, .tv_nsec = rest_ns % kNsPerSecond};
    pollfd file{.fd = fd_, .events = POLLIN, .revents = 0};
    ::ppoll(&file, 1, &timeout, nullptr);
  }

  const int fd_;
  const sockaddr_in target_;
  const Options options_;
  std::mt19937_64 random_;
  sockaddr_in asking_{};
  std::multimap<int64_t, Packet> waiting_;  // by when they are due
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Delays UDP packets between two hosts by known amounts.");
  app.add_option("LISTEN", options.listen, "ADDRESS:PORT")->required();
  app.add_option("TARGET", options.target, "ADDRESS:PORT")->required();
  app.add_option("--out-us", options.out_us, "towards TARGET, at least");
  app.add_option("--back-us", options.back_us, "from TARGET, at least");
  app.add_option("--jitter-us", options.jitter_us, "mean of what is added, exponential");
  app.add_option("--seed", options.seed, "of the jitter");
  CLI11_PARSE(app, argc, argv);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  sockaddr_in listen, target;
  const int on = 1;
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (!ParseAddress(options.listen, &listen) || !ParseAddress(options.target, &target) || fd < 0 ||
      ::bind(fd, reinterpret_cast<const sockaddr*>(&listen), sizeof listen) != 0) {
    std::fprintf(stderr, "cannot relay from %s to %s: %s\n", options.listen.c_str(),
                 options.target.c_str(), std::strerror(errno));
    return 1;
  }
  ::setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  Relay(fd, target, options).Run();
}

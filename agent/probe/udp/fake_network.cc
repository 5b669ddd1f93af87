// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/fake_network.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/probe/udp/packet.h"

namespace syncline::probe {
namespace {

constexpr int64_t kBillion = 1'000'000'000;
// What things take on a machine of today.
constexpr int64_t kClockReadNs = 20;
constexpr int64_t kSyscallNs = 700;
constexpr int64_t kWakeUpNs = 8'000;

int64_t Scale(int64_t ns, int64_t rate_ppb) {
  return ns + static_cast<int64_t>(static_cast<__int128>(ns) * rate_ppb / kBillion);
}

// Of pieces, each from a true time on.
int64_t RateAt(const std::vector<std::pair<int64_t, int64_t>>& rates_ppb, int64_t true_ns) {
  int64_t rate_ppb = 0;
  for (const auto& [begin, rate] : rates_ppb) {
    if (begin <= true_ns) rate_ppb = rate;
  }
  return rate_ppb;
}

}  // namespace

FakeHost::FakeHost(FakeNetwork* network, int number)
    : network_(network), address_(*Address::Parse(absl::StrCat("10.0.0.", number, ":7611"))) {
  endpoint_ = std::make_unique<Endpoint>(
      this, this, [this](const EdgeSample& sample) { samples_.push_back(sample); });
}

int64_t FakeHost::RawAt(int64_t true_ns) const {
  return raw_offset_ns + Scale(true_ns, raw_rate_ppb);
}

int64_t FakeHost::ClockAt(int64_t at_zero_ns, const Pieces& rates_ppb, const Pieces& steps_ns,
                          int64_t true_ns) const {
  int64_t clock = at_zero_ns;
  for (size_t i = 0; i < rates_ppb.size(); ++i) {
    const auto [begin, rate_ppb] = rates_ppb[i];
    const int64_t end =
        i + 1 < rates_ppb.size() ? std::min(true_ns, rates_ppb[i + 1].first) : true_ns;
    if (begin < end) clock += Scale(RawAt(end) - RawAt(begin), rate_ppb);
  }
  for (const auto& [at, step] : steps_ns) clock += at <= true_ns ? step : 0;
  return clock;
}

int64_t FakeHost::WallAt(int64_t true_ns) const {
  return ClockAt(wall_at_zero_ns, wall_rates_ppb, wall_steps_ns, true_ns);
}

int64_t FakeHost::HardwareAt(int64_t true_ns) const {
  return ClockAt(hardware_at_zero_ns, hardware_rates_ppb, hardware_steps_ns, true_ns);
}

int64_t FakeHost::StampOf(int64_t true_ns) const {
  int64_t stamp = WallAt(true_ns);
  for (const auto& [at, step] : wall_steps_ns) {
    const bool between = at > true_ns && at <= network_->now_ns();
    stamp += stamps_step_until_fetched && between ? step : 0;
  }
  return stamp;
}

int64_t FakeHost::RawNs() {
  network_->Pass(kClockReadNs / 2);
  const int64_t raw = RawAt(network_->now_ns());
  network_->Pass(kClockReadNs / 2);
  return raw;
}

ClockReading FakeHost::ReadWall() {
  ClockReading reading;
  reading.raw_before_ns = RawNs();
  network_->Pass(kClockReadNs / 2);
  reading.clock_ns = WallAt(network_->now_ns());
  network_->Pass(kClockReadNs / 2);
  reading.raw_after_ns = RawNs();
  return reading;
}

int64_t FakeHost::WallRatePpbMax() {
  return 500'000 + std::abs(RateAt(wall_rates_ppb, network_->now_ns()));
}

std::optional<ClockReading> FakeHost::ReadHardware(int clock) {
  if (hardware_gone || clock != hardware_offer.clock) return std::nullopt;
  ClockReading reading{.rate_ppb_max =
                           300'000 + std::abs(RateAt(hardware_rates_ppb, network_->now_ns()))};
  reading.raw_before_ns = RawNs();
  // Where in between is not known.
  const int64_t first_ns = network_->random().Between(0, hardware_read_ns);
  network_->Pass(first_ns);
  reading.clock_ns = HardwareAt(network_->now_ns());
  network_->Pass(hardware_read_ns - first_ns);
  reading.raw_after_ns = RawNs();
  return reading;
}

bool FakeHost::WallWasSet() {
  const int64_t now = network_->now_ns();
  const bool was_set =
      kernel_tells_of_steps &&
      std::any_of(wall_steps_ns.begin(), wall_steps_ns.end(), [&](const auto& step) {
        return step.first > wall_checked_true_ns_ && step.first <= now;
      });
  wall_checked_true_ns_ = now;
  return was_set;
}

absl::StatusOr<SentPacket> FakeHost::Send(const Address& to, std::span<const uint8_t> bytes) {
  SentPacket sent{.before_raw_ns = RawNs()};
  network_->Pass(kSyscallNs + network_->random().Between(0, 300));
  if (send_fails) return absl::UnavailableError("Network is unreachable");
  sent.id = sends_++;
  if (transmit_stamps) {
    stamps_.emplace(network_->now_ns() + transmit_stamp_delay_ns,
                    Stamp{.id = sent.id, .true_ns = network_->now_ns()});
  }
  if (has_hardware() && hardware_transmit_stamps) {
    const int64_t left_ns = network_->now_ns() + device_transmit_ns;
    stamps_.emplace(left_ns + hardware_stamp_delay_ns,
                    Stamp{.id = sent.id, .true_ns = left_ns, .hardware = true});
  }
  network_->Transmit(*this, to, {bytes.begin(), bytes.end()});
  network_->Pass(kSyscallNs);
  return sent;
}

std::optional<ReceivedPacket> FakeHost::Receive() {
  if (arrivals_.empty() || arrivals_.begin()->first > network_->now_ns()) return std::nullopt;
  network_->Pass(kSyscallNs);
  ReceivedPacket packet = arrivals_.begin()->second;
  const int64_t came_ns = arrivals_.begin()->first;
  packet.realtime_ns = receive_stamps ? StampOf(came_ns) : 0;
  if (has_hardware() && hardware_receive_stamps) {
    packet.hardware = {.ns = HardwareAt(came_ns - device_receive_ns),
                       .clock = hardware_offer.clock};
  }
  arrivals_.erase(arrivals_.begin());
  Fetched();
  packet.after_raw_ns = RawNs();
  return packet;
}

std::optional<TransmitStamp> FakeHost::NextTransmitStamp() {
  if (stamps_.empty() || stamps_.begin()->first > network_->now_ns()) return std::nullopt;
  network_->Pass(kSyscallNs);
  const Stamp taken = stamps_.begin()->second;
  TransmitStamp stamp{.id = taken.id};
  if (taken.hardware) {
    stamp.hardware = {.ns = HardwareAt(taken.true_ns) + hardware_transmit_lie_ns,
                      .clock = hardware_offer.clock};
  } else {
    stamp.realtime_ns = StampOf(taken.true_ns);
  }
  stamps_.erase(stamps_.begin());
  Fetched();
  return stamp;
}

void FakeHost::Fetched() {
  if (step_after_fetch_ns == 0 || network_->random().Between(0, 16) != 0) return;
  const bool forward = network_->random().Between(0, 2) == 0;
  wall_steps_ns.emplace_back(network_->now_ns(),
                             forward ? step_after_fetch_ns : -step_after_fetch_ns);
}

bool FakeHost::Serve() {
  bool anything = false;
  while (const auto stamp = NextTransmitStamp()) {
    endpoint_->OnTransmitStamp(*stamp);
    anything = true;
  }
  if (const auto packet = Receive()) {
    endpoint_->OnReceive(*packet);
    anything = true;
  }
  next_raw_ns_ = endpoint_->OnTime();
  return anything;
}

FakeHost* FakeNetwork::AddHost() {
  hosts_.push_back(std::make_unique<FakeHost>(this, static_cast<int>(hosts_.size()) + 1));
  return hosts_.back().get();
}

void FakeNetwork::Transmit(const FakeHost& from, const Address& to, Datagram datagram) {
  const int64_t handed_over_ns = now_ns_;
  now_ns_ += from.device_transmit_ns;
  datagrams_.push_back(datagram);
  if (const auto packet = DecodePacket(datagram)) {
    Truth& truth = truths_[packet->sequence];
    (packet->kind == ProbePacket::Kind::kRequest ? truth.request_left_ns : truth.response_left_ns) =
        now_ns_;
  }
  const int64_t sent_ns = now_ns_;
  for (const Datagram& survivor : wire(datagram)) {
    now_ns_ = sent_ns + delay(from);
    Inject(survivor, from.address(), to);
  }
  now_ns_ = handed_over_ns;
}

void FakeNetwork::Inject(const Datagram& datagram, const Address& from, const Address& to) {
  for (const auto& host : hosts_) {
    if (!(host->address() == to)) continue;
    ReceivedPacket packet;
    packet.from = from;
    packet.size_bytes = datagram.size();
    std::copy_n(datagram.begin(), std::min(datagram.size(), packet.buffer.size()),
                packet.buffer.begin());
    host->arrivals_.emplace(now_ns_ + host->device_receive_ns, packet);
    if (const auto decoded = DecodePacket(datagram)) {
      Truth& truth = truths_[decoded->sequence];
      int64_t& came = decoded->kind == ProbePacket::Kind::kRequest ? truth.request_came_ns
                                                                   : truth.response_came_ns;
      if (came == 0 || now_ns_ < came) came = now_ns_;
    }
  }
}

void FakeNetwork::Run(int64_t duration_ns) {
  const int64_t end_ns = now_ns_ + duration_ns;
  while (now_ns_ < end_ns) {
    bool anything = false;
    for (const auto& host : hosts_) anything = host->Serve() || anything;
    if (anything) continue;
    // Nothing to do: on to what comes next, and some more, because waking up takes its time.
    int64_t next_ns = end_ns;
    for (const auto& host : hosts_) {
      const int64_t wait_ns =
          std::min(host->next_raw_ns_, host->RawAt(now_ns_) + kBillion) - host->RawAt(now_ns_);
      next_ns = std::min(next_ns, now_ns_ + std::clamp<int64_t>(wait_ns, 1, kBillion));
      if (host->endpoint().spin_until_raw_ns() > host->RawAt(now_ns_)) {
        next_ns = std::min(next_ns, now_ns_ + kSyscallNs);
      }
      if (!host->arrivals_.empty()) next_ns = std::min(next_ns, host->arrivals_.begin()->first);
      if (!host->stamps_.empty()) next_ns = std::min(next_ns, host->stamps_.begin()->first);
    }
    const bool spinning = std::any_of(hosts_.begin(), hosts_.end(), [&](const auto& host) {
      return host->endpoint().spin_until_raw_ns() > host->RawAt(now_ns_);
    });
    now_ns_ = std::max(now_ns_, next_ns) + (spinning ? 0 : random_.Between(0, kWakeUpNs));
  }
}

}  // namespace syncline::probe

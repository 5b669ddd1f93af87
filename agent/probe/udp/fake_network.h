// SPDX-License-Identifier: Apache-2.0
// For tests: hosts on a simulated network, in simulated time, with every departure and arrival
// known.
//
// True time is one int64 of ns that moves on only when clocks are read, packets are handled or
// nothing is left to do. Each host has a RAW clock (offset, rate) and a wall clock (rate against
// RAW, steps), both functions of true time; the kernel's stamps are exact, the user's are late as
// on a real machine.
#ifndef SYNCLINE_AGENT_PROBE_UDP_FAKE_NETWORK_H_
#define SYNCLINE_AGENT_PROBE_UDP_FAKE_NETWORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/probe/udp/endpoint.h"
#include "agent/probe/udp/probe_clock.h"
#include "agent/probe/udp/probe_socket.h"
#include "agent/probe/udp/schedule.h"

namespace syncline::probe {

class FakeNetwork;

class FakeHost : public ProbeClock, public ProbeSocket {
 public:
  // Address 10.0.0.`number`, port 7611.
  FakeHost(FakeNetwork* network, int number);

  // ---- The world as it is on this host; may change at any time ----
  int64_t raw_offset_ns = 0;
  int64_t raw_rate_ppb = 0;
  int64_t wall_at_zero_ns = 1'700'000'000'000'000'000;
  // The wall clock's rate against RAW from a true time on; the pieces join.
  std::vector<std::pair<int64_t, int64_t>> wall_rates_ppb = {{0, 0}};
  std::vector<std::pair<int64_t, int64_t>> wall_steps_ns;  // true time, by how much
  bool kernel_tells_of_steps = true;
  // A stamp is of the wall clock as it is when the stamp is fetched, not when it was taken: what
  // the testbed's wrong wall clocks do.
  bool stamps_step_until_fetched = false;
  // Sometimes the wall clock steps by so much, either way, right after a stamp was fetched.
  int64_t step_after_fetch_ns = 0;
  bool transmit_stamps = true;
  int64_t transmit_stamp_delay_ns = 0;
  bool receive_stamps = true;
  bool send_fails = false;

  // The device: what it takes from the kernel to the wire and from the wire to the kernel.
  int64_t device_transmit_ns = 0;
  int64_t device_receive_ns = 0;
  HardwareOffer hardware_offer = {.refusal = "eth0 has no hardware clock"};
  bool hardware_gone = false;  // its clock cannot be read any more
  bool hardware_transmit_stamps = true;
  bool hardware_receive_stamps = true;
  int64_t hardware_stamp_delay_ns = 20'000;  // until the stamp of a sent packet can be had
  int64_t hardware_read_ns = 800;
  int64_t hardware_transmit_lie_ns = 0;  // its stamps of sent packets are false by so much
  // Its clock, like the wall clock.
  int64_t hardware_at_zero_ns = 55'000'000'000;
  std::vector<std::pair<int64_t, int64_t>> hardware_rates_ppb = {{0, 0}};
  std::vector<std::pair<int64_t, int64_t>> hardware_steps_ns;

  int64_t RawAt(int64_t true_ns) const;
  int64_t WallAt(int64_t true_ns) const;
  int64_t HardwareAt(int64_t true_ns) const;
  // What the kernel's stamp of `true_ns` says, fetched now.
  int64_t StampOf(int64_t true_ns) const;

  int64_t RawNs() override;
  ClockReading ReadWall() override;
  int64_t WallRatePpbMax() override;
  bool WallWasSet() override;
  int OpenHardware(int) override { return 0; }
  std::optional<ClockReading> ReadHardware(int clock) override;
  absl::StatusOr<SentPacket> Send(const Address& to, std::span<const uint8_t> bytes) override;
  std::optional<ReceivedPacket> Receive() override;
  std::optional<TransmitStamp> NextTransmitStamp() override;
  std::string DeviceTowards(const Address&) override { return "eth0"; }
  HardwareOffer UseHardware(const std::string&) override { return hardware_offer; }

  const Address& address() const { return address_; }
  Endpoint& endpoint() { return *endpoint_; }
  const std::vector<EdgeSample>& samples() const { return samples_; }
  // Hands the endpoint everything that has come. False when there was nothing.
  bool Serve();

 private:
  friend class FakeNetwork;
  void Fetched();
  bool has_hardware() const { return hardware_offer.clock >= 0; }
  // Of a clock whose rate against RAW is given from true times on, with steps.
  using Pieces = std::vector<std::pair<int64_t, int64_t>>;
  int64_t ClockAt(int64_t at_zero_ns, const Pieces& rates_ppb, const Pieces& steps_ns,
                  int64_t true_ns) const;
  FakeNetwork* const network_;
  Address address_;
  std::unique_ptr<Endpoint> endpoint_;
  std::vector<EdgeSample> samples_;
  std::multimap<int64_t, ReceivedPacket> arrivals_;  // by true time
  struct Stamp {
    uint64_t id = 0;
    int64_t true_ns = 0;
    bool hardware = false;
  };
  std::multimap<int64_t, Stamp> stamps_;  // by true time at which they can be had
  uint64_t sends_ = 0;
  int64_t wall_checked_true_ns_ = 0;
  int64_t next_raw_ns_ = 0;  // when its endpoint wants to be called again
};

class FakeNetwork {
 public:
  explicit FakeNetwork(uint64_t seed = 1) : random_(seed) {}

  FakeHost* AddHost();
  FakeHost* host(int number) { return hosts_[static_cast<size_t>(number - 1)].get(); }
  void Run(int64_t duration_ns);

  int64_t now_ns() const { return now_ns_; }
  void Pass(int64_t duration_ns) { now_ns_ += duration_ns; }
  Random& random() { return random_; }

  // One-way delay of a packet, ns.
  std::function<int64_t(const FakeHost& from)> delay = [](const FakeHost&) { return 30'000; };
  // What becomes of a packet on the wire: none, one or several datagrams.
  using Datagram = std::vector<uint8_t>;
  std::function<std::vector<Datagram>(const Datagram&)> wire = [](const Datagram& datagram) {
    return std::vector<Datagram>{datagram};
  };
  // Puts a datagram on the wire that no host sent.
  void Inject(const Datagram& datagram, const Address& from, const Address& to);

  // True departure and first arrival of the packets of one exchange; 0: did not happen.
  struct Truth {
    int64_t request_left_ns = 0;
    int64_t request_came_ns = 0;
    int64_t response_left_ns = 0;
    int64_t response_came_ns = 0;
  };
  const std::map<uint64_t, Truth>& truths() const { return truths_; }  // by sequence; for one edge
  const std::vector<Datagram>& datagrams() const { return datagrams_; }  // all that hosts sent

 private:
  friend class FakeHost;
  void Transmit(const FakeHost& from, const Address& to, Datagram datagram);

  Random random_;
  int64_t now_ns_ = 1'000'000'000;
  std::vector<std::unique_ptr<FakeHost>> hosts_;
  std::map<uint64_t, Truth> truths_;
  std::vector<Datagram> datagrams_;
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_FAKE_NETWORK_H_

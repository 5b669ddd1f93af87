// SPDX-License-Identifier: Apache-2.0
// Hardware stamps from end to end, with a network device whose clock drifts, slews, steps, lies and
// vanishes: what the documented contract allows. No real device was at hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "agent/probe/udp/endpoint_fixture.h"
#include "agent/probe/udp/fake_network.h"
#include "agent/probe/udp/probe_clock.h"
#include "agent/probe/udp/ptp_clock.h"
#include "agent/probe/udp/stamper.h"
#include "agent/probe/udp/udp_socket.h"

namespace syncline::probe {
namespace {

using clocksync::StampSource;
using ::testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1'000'000'000;

// Both hosts have a device that is as far from the kernel as one with coalesced interrupts.
class HardwareTest : public EndpointTest {
 protected:
  HardwareTest() {
    for (FakeHost* host : {local_, remote_}) {
      host->device_transmit_ns = 4'000;
      host->device_receive_ns = 9'000;
    }
    local_->hardware_rates_ppb = {{0, 30'000}};
    remote_->hardware_rates_ppb = {{0, -120'000}};
  }

  void Offer() {
    local_->hardware_offer = {.clock = 0};
    remote_->hardware_offer = {.clock = 3};
  }
};

TEST_F(HardwareTest, WithoutAnOfferTheKernelsStampsAreWideAndTheReasonIsSaid) {
  Begin();
  network_.Run(3 * kSecond);
  EXPECT_EQ(LocalStatus().rung, StampSource::kKernel);
  EXPECT_EQ(LocalStatus().reason, "eth0 has no hardware clock");
  EXPECT_GT(CountSource(StampSource::kKernel), 150u);
  EXPECT_GE(ExpectSound(), 9'000);
}

TEST_F(HardwareTest, StampsOfDevicesAreSoundAndMuchTighterThanTheKernels) {
  Offer();
  Begin();
  network_.Run(3 * kSecond);
  for (FakeHost* host : {local_, remote_}) {
    const EdgeStatus status = host->endpoint().Status().front();
    EXPECT_EQ(status.rung, StampSource::kHardware);
    EXPECT_EQ(status.reason, "");
  }
  EXPECT_GT(CountSource(StampSource::kHardware), 150u);
  EXPECT_LE(ExpectSound(StampSource::kHardware), 1'500);  // two readings of 0.8 us
}

// Where reading the device's clock takes longer than its stamps save.
TEST_F(HardwareTest, AClockThatIsReadCoarselyIsNoWorseThanTheKernelsStamps) {
  Offer();
  for (FakeHost* host : {local_, remote_}) {
    host->device_transmit_ns = host->device_receive_ns = 0;
    host->hardware_read_ns = 20'000;
  }
  Begin();
  network_.Run(3 * kSecond);
  EXPECT_GT(CountSource(StampSource::kHardware), 100u);
  EXPECT_LE(ExpectSound(StampSource::kHardware), 200);
}

TEST_F(HardwareTest, IsNotUsedWhereOnlyTheUsersStampsAreWanted) {
  Offer();
  plan_.kernel_stamps = false;
  Begin();
  network_.Run(1 * kSecond);
  EXPECT_EQ(CountSource(StampSource::kHardware), 0u);
  EXPECT_GT(LocalStatus().rung, StampSource::kKernel);
}

TEST_F(HardwareTest, OneSideAloneDoesNotMakeASampleHardware) {
  local_->hardware_offer = {.clock = 0};
  Begin();
  network_.Run(2 * kSecond);
  EXPECT_EQ(LocalStatus().rung, StampSource::kHardware);
  EXPECT_EQ(CountSource(StampSource::kHardware), 0u);
  EXPECT_GT(CountSource(StampSource::kKernel), 100u);
  // Its clock is read before every packet that leaves, also before the first of a burst.
  EXPECT_EQ(local_->endpoint().counters().hardware_unbracketed, 0u);
  ExpectSound();
}

TEST_F(HardwareTest, StepsAndSlewsOfTheDevicesClockAreSound) {
  Offer();
  const int64_t begin = network_.now_ns();
  for (FakeHost* host : {local_, remote_}) {
    host->hardware_rates_ppb = {{0, 0},
                                {begin + 500 * kMs, 500'000},
                                {begin + 1500 * kMs, -900'000},
                                {begin + 2500 * kMs, 60'000'000}};
    // Inside bursts and between them, both ways, from less than the readings can see on; then one
    // as when a clock is first set.
    for (int64_t i = 0; i < 1000; ++i) {
      const int64_t size = network_.random().Between(0, 10) + (int64_t{20} << (i % 16));
      host->hardware_steps_ns.emplace_back(
          begin + i * 3'973'111 + network_.random().Between(0, 900'000),
          network_.random().Between(0, 2) == 0 ? size : -size);
    }
    host->hardware_steps_ns.emplace_back(begin + 4500 * kMs, 1'700'000'000 * kSecond);
  }
  Begin();
  network_.Run(6 * kSecond);
  ExpectSound();
  EXPECT_GT(CountSource(StampSource::kHardware), 200u);
  EXPECT_GT(local_->endpoint().counters().hardware_contradictions, 10u);
  EXPECT_GT(remote_->endpoint().counters().hardware_contradictions, 10u);
  EXPECT_EQ(local_->endpoint().counters().wall_contradictions, 0u);
}

TEST_F(HardwareTest, FallsToTheKernelWhenTheClockVanishesAndClimbsWhenItIsBack) {
  Offer();
  Begin();
  network_.Run(1 * kSecond);
  ASSERT_EQ(LocalStatus().rung, StampSource::kHardware);
  local_->hardware_gone = true;
  network_.Run(1 * kSecond);
  const size_t hardware = CountSource(StampSource::kHardware);
  const size_t kernel = CountSource(StampSource::kKernel);
  EXPECT_EQ(LocalStatus().rung, StampSource::kKernel);
  EXPECT_EQ(LocalStatus().reason, "no hardware TX stamps from eth0 that could be used");
  network_.Run(1 * kSecond);
  EXPECT_EQ(CountSource(StampSource::kHardware), hardware);
  EXPECT_GT(CountSource(StampSource::kKernel), kernel + 50);
  local_->hardware_gone = false;
  network_.Run(1 * kSecond);
  EXPECT_EQ(LocalStatus().rung, StampSource::kHardware);
  EXPECT_GT(CountSource(StampSource::kHardware), hardware + 30);
  ExpectSound();
}

TEST_F(HardwareTest, FallsWhenOneKindOfStampsStaysAway) {
  Offer();
  Begin();
  network_.Run(1 * kSecond);
  local_->hardware_transmit_stamps = false;
  network_.Run(2 * kSecond);
  EXPECT_EQ(LocalStatus().rung, StampSource::kKernel);
  EXPECT_THAT(LocalStatus().reason, HasSubstr("no hardware TX stamps from eth0"));
  EXPECT_GT(local_->endpoint().counters().hardware_stamps_missing, 0u);
  EXPECT_EQ(local_->endpoint().counters().transmit_stamps_missing, 0u);

  local_->hardware_transmit_stamps = true;
  network_.Run(1 * kSecond);
  EXPECT_EQ(LocalStatus().rung, StampSource::kHardware);
  local_->hardware_receive_stamps = false;
  const size_t kernel = CountSource(StampSource::kKernel);
  network_.Run(2 * kSecond);
  EXPECT_EQ(LocalStatus().rung, StampSource::kKernel);
  EXPECT_THAT(LocalStatus().reason, HasSubstr("no hardware RX stamps from eth0"));
  EXPECT_GT(CountSource(StampSource::kKernel), kernel + 100);
  ExpectSound();
}

TEST_F(HardwareTest, StampsThatComeTooLateAreNotWaitedForAgain) {
  Offer();
  for (FakeHost* host : {local_, remote_}) host->hardware_stamp_delay_ns = 3 * kMs;
  Begin();
  network_.Run(3 * kSecond);
  EXPECT_EQ(LocalStatus().rung, StampSource::kKernel);
  EXPECT_GT(local_->endpoint().counters().hardware_unbracketed, 50u);
  EXPECT_EQ(CountSource(StampSource::kHardware), 0u);
  EXPECT_GT(CountSource(StampSource::kKernel), 150u);
  ExpectSound();
}

TEST_F(HardwareTest, AStampThatThePacketCannotHaveHadIsDroppedAndCounted) {
  Offer();
  Begin();
  network_.Run(1 * kSecond);
  for (const int64_t lie : {-50'000, 50'000}) {
    const ProbeCounters before = local_->endpoint().counters();
    const size_t hardware = CountSource(StampSource::kHardware);
    local_->hardware_transmit_lie_ns = lie;
    network_.Run(1 * kSecond);
    EXPECT_GT(local_->endpoint().counters().hardware_contradictions,
              before.hardware_contradictions + 50);
    EXPECT_LE(CountSource(StampSource::kHardware), hardware + 8);
  }
  ExpectSound();
}

// Only how the device's clock runs may matter, not what it says (TAI, UTC, time since it was made).
TEST(HardwareClock, AConstantShiftChangesNothing) {
  std::vector<std::vector<int64_t>> runs;
  for (const int64_t shift : {int64_t{0}, 1'700'000'037 * kSecond}) {
    FakeNetwork network(3);
    FakeHost* a = network.AddHost();
    FakeHost* b = network.AddHost();
    for (FakeHost* host : {a, b}) {
      host->hardware_offer = {.clock = 0};
      host->hardware_at_zero_ns += shift;
    }
    ASSERT_NO_FATAL_FAILURE(AddEdge(a, b));
    network.Run(2 * kSecond);
    std::vector<int64_t> stamps;
    for (const EdgeSample& s : a->samples()) {
      if (s.sample.source != StampSource::kHardware) continue;
      stamps.insert(stamps.end(), {s.sample.t1_local_ns, s.sample.t2_remote_ns,
                                   s.sample.t3_remote_ns, s.sample.t4_local_ns});
    }
    runs.push_back(stamps);
  }
  ASSERT_GT(runs[0].size(), 400u);
  EXPECT_EQ(runs[0], runs[1]);
}

// Whatever is known of a packet bounds it: more knowledge never moves a stamp away from the truth,
// nor past it. Sometimes the device is read too coarsely to say anything that the kernel did not.
TEST(Stamper, TheDevicesStampNeverWidensAndStaysSound) {
  FakeNetwork network(9);
  FakeHost* host = network.AddHost();
  host->hardware_offer = {.clock = 2};
  host->hardware_rates_ppb = {{0, 77'000}};
  ProbeCounters counters;
  Stamper stamper(host, &counters);
  Random& random = network.random();
  int narrower = 0;
  int same = 0;
  for (int round = 0; round < 20'000; ++round) {
    host->hardware_read_ns = random.Between(100, 20'000);
    stamper.ReadHardware(2);
    stamper.ReadWall();
    network.Pass(3'000);
    const int64_t before = host->RawNs();
    const int64_t early = network.now_ns() + random.Between(0, 500);
    const int64_t late = early + random.Between(0, 5'000);
    network.Pass(late - network.now_ns() + random.Between(1, 30'000));
    // Sent: the kernel stamps, then the device. Received: the device, then the kernel.
    const auto sent = stamper.SentRawNs(host->WallAt(early), before);
    const auto received = stamper.ReceivedRawNs(host->WallAt(late), before, host->RawNs());
    if (!sent || !received) continue;
    const auto left = stamper.SentRawNs({.ns = host->HardwareAt(late), .clock = 2}, *sent);
    const auto came =
        stamper.ReceivedRawNs({.ns = host->HardwareAt(early), .clock = 2}, before, *received);
    ASSERT_TRUE(left.has_value());
    EXPECT_GE(*left, *sent);
    EXPECT_LE(*left, host->RawAt(late));
    narrower += *left > *sent ? 1 : 0;
    same += *left == *sent ? 1 : 0;
    if (!came) continue;
    EXPECT_LE(*came, *received);
    EXPECT_GE(*came, host->RawAt(early));
  }
  EXPECT_GT(narrower, 1'000);
  EXPECT_GT(same, 1'000);
}

// A servo may speed the clock up right after a reading: that is no contradiction.
TEST(Stamper, ARateThatRisesBetweenReadingAndStampIsAllowedFor) {
  for (const int64_t rate_ppb : {-60'000'000, 60'000'000}) {
    FakeNetwork network;
    FakeHost* host = network.AddHost();
    host->hardware_offer = {.clock = 0};
    host->hardware_read_ns = 100;
    ProbeCounters counters;
    Stamper stamper(host, &counters);
    stamper.ReadHardware(0);
    host->hardware_rates_ppb.emplace_back(network.now_ns(), rate_ppb);
    const int64_t before = host->RawNs();
    network.Pass(100'000);
    const int64_t left = network.now_ns();
    const auto sent = stamper.SentRawNs({.ns = host->HardwareAt(left), .clock = 0}, before);
    ASSERT_TRUE(sent.has_value());
    EXPECT_LE(*sent, host->RawAt(left));
    EXPECT_EQ(counters.hardware_contradictions, 0u);
  }
}

TEST(UdpSocket, SaysWhyADeviceIsNotUsed) {
  SystemProbeClock clock;
  const Address local = *Address::Parse("127.0.0.1:0");
  const auto socket = UdpSocket::Open(local, /*kernel_stamps=*/true, &clock);
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_EQ((*socket)->UseHardware("lo").refusal, "lo has no hardware clock");
  EXPECT_EQ((*socket)->UseHardware("lo").clock, -1);
  EXPECT_THAT((*socket)->UseHardware("").refusal, HasSubstr("not known"));
  const auto plain = UdpSocket::Open(local, /*kernel_stamps=*/false, &clock);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_THAT((*plain)->UseHardware("lo").refusal, HasSubstr("not requested"));
}

TEST(PtpClock, SaysWhyItCannotBeRead) {
  int error_number = 0;
  EXPECT_EQ(PtpClock::Open("/dev/no-such-clock", &error_number), nullptr);
  EXPECT_EQ(error_number, ENOENT);
  EXPECT_EQ(PtpClock::Open("/dev/null", &error_number), nullptr);
  EXPECT_NE(error_number, 0);
  SystemProbeClock clock;
  EXPECT_NE(clock.OpenHardware(987'654), 0);
  EXPECT_FALSE(clock.ReadHardware(987'654).has_value());
  EXPECT_EQ(PtpClockPath(7), "/dev/ptp7");
}

TEST(PtpClock, WhatADriverReadIsUsedWhenItIsTheSameRaw) {
  EXPECT_TRUE(PtpClock::IsOurs({10, 555, 12}, 9, 13));
  EXPECT_TRUE(PtpClock::IsOurs({10, 555, 10}, 10, 10));
  EXPECT_FALSE(PtpClock::IsOurs({3'600'000'000'010, 555, 3'600'000'000'012}, 9, 13))
      << "a time namespace";
  EXPECT_FALSE(PtpClock::IsOurs({0, 555, 0}, 9, 13)) << "left out";
  EXPECT_FALSE(PtpClock::IsOurs({12, 555, 10}, 9, 13));
  EXPECT_FALSE(PtpClock::IsOurs({10, 555, 14}, 9, 13));
}

// Runs where there is one.
TEST(PtpClock, ReadsARealOne) {
  int error_number = 0;
  const auto clock = PtpClock::Open(PtpClockPath(0), &error_number);
  if (clock == nullptr) GTEST_SKIP() << "no /dev/ptp0 that can be read here";
  SystemProbeClock system;
  const int64_t before = system.RawNs();
  const auto reading = clock->Read();
  ASSERT_TRUE(reading.has_value());
  EXPECT_LE(before, reading->raw_before_ns);
  EXPECT_LE(reading->raw_before_ns, reading->raw_after_ns);
  EXPECT_LE(reading->raw_after_ns, system.RawNs());
  EXPECT_GT(reading->clock_ns, 0);
  EXPECT_GE(reading->rate_ppb_max, PtpClock::kUndialedPpbMax);
}

}  // namespace
}  // namespace syncline::probe

// SPDX-License-Identifier: Apache-2.0
// The small parts of an edge: ladder, tracker of transmit stamps, schedule, spin budget, addresses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "agent/probe/udp/probe_socket.h"
#include "agent/probe/udp/schedule.h"
#include "agent/probe/udp/spin_budget.h"
#include "agent/probe/udp/stamp_ladder.h"
#include "agent/probe/udp/transmit_tracker.h"

namespace syncline::probe {
namespace {

using clocksync::StampSource;
using ::testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1'000'000'000;

TEST(StampLadder, OneMissingStampIsAnAccident) {
  StampLadder ladder({});
  for (int i = 0; i < 20; ++i) {
    ladder.OnTransmitStampMissing();
    ladder.OnTransmitStampMissing();
    ladder.OnTransmitStamp();
  }
  EXPECT_EQ(ladder.rung(), StampSource::kKernel);
  EXPECT_TRUE(ladder.waits_for_transmit_stamp());
}

TEST(StampLadder, FallsStepByStepAndSaysWhy) {
  StampLadder ladder({});
  ladder.set_device("ens5");
  for (int i = 0; i < 3; ++i) ladder.OnTransmitStampMissing();
  EXPECT_EQ(ladder.rung(), StampSource::kUserSpin);
  EXPECT_EQ(ladder.reason(), "no TX stamps within 200 ms from ens5");
  EXPECT_FALSE(ladder.waits_for_transmit_stamp());
  ladder.OnSpinRefused();
  EXPECT_EQ(ladder.rung(), StampSource::kUserBlocking);
  EXPECT_THAT(ladder.reason(), HasSubstr("no processor time left"));
}

TEST(StampLadder, StopsSpinningWhenItCatchesTooLittle) {
  StampLadder ladder({.kernel_wanted = false});
  for (int i = 0; i < 640; ++i) ladder.OnSpinResult(i % 3 == 0);
  EXPECT_EQ(ladder.rung(), StampSource::kUserSpin);
  for (int i = 0; i < 64; ++i) ladder.OnSpinResult(i % 8 == 0);
  EXPECT_EQ(ladder.rung(), StampSource::kUserBlocking);
  EXPECT_THAT(ladder.reason(), HasSubstr("the processors are busy"));
}

TEST(StampLadder, KernelStampsRestFromSpinningAndTryAgain) {
  StampLadder ladder({});
  EXPECT_TRUE(ladder.spins());
  for (int i = 0; i < 64; ++i) ladder.OnSpinResult(i % 8 == 0);
  EXPECT_FALSE(ladder.spins());
  EXPECT_EQ(ladder.rung(), StampSource::kKernel);
  for (int i = 0; i < 256; ++i) ladder.OnSpinResult(false);
  EXPECT_TRUE(ladder.spins());
  EXPECT_FALSE(StampLadder({.spin_allowed = false}).spins());
}

TEST(StampLadder, ClimbsWhenBothKindsOfStampsCome) {
  StampLadder ladder({.spin_allowed = false});
  for (int i = 0; i < 16; ++i) ladder.OnReceive(false);
  EXPECT_EQ(ladder.rung(), StampSource::kUserBlocking);
  for (int i = 0; i < 100; ++i) ladder.OnTransmitStamp();
  EXPECT_EQ(ladder.rung(), StampSource::kUserBlocking);
  for (int i = 0; i < 16; ++i) ladder.OnReceive(true);
  EXPECT_EQ(ladder.rung(), StampSource::kKernel);
}

TEST(StampLadder, NeverClimbsAboveWhatIsWanted) {
  StampLadder ladder({.kernel_wanted = false});
  EXPECT_EQ(ladder.rung(), StampSource::kUserSpin);
  for (int i = 0; i < 100; ++i) {
    ladder.OnTransmitStamp();
    ladder.OnReceive(true);
  }
  EXPECT_EQ(ladder.rung(), StampSource::kUserSpin);
}

TEST(StampLadder, TheTopRungIsClimbedAndSaysWhyNot) {
  StampLadder ladder({});
  EXPECT_EQ(ladder.reason(), "the network device is not yet known");
  ladder.set_device("ens5");
  ladder.set_hardware({.refusal = "ens5 has no hardware clock"});
  EXPECT_EQ(ladder.reason(), "ens5 has no hardware clock");
  EXPECT_EQ(ladder.hardware_clock(), -1);
  for (int i = 0; i < 3; ++i) ladder.OnTransmitStampMissing();
  EXPECT_THAT(ladder.reason(), HasSubstr("no TX stamps within"));

  StampLadder offered({});
  offered.set_device("ens5");
  offered.set_hardware({.clock = 4});
  EXPECT_EQ(offered.hardware_clock(), 4);
  EXPECT_EQ(offered.rung(), StampSource::kKernel);
  EXPECT_EQ(offered.reason(), "no hardware stamps from ens5 yet");
  EXPECT_FALSE(offered.waits_for_hardware_stamp());
  for (int i = 0; i < 10; ++i) offered.OnHardwareTransmit(true);
  EXPECT_EQ(offered.rung(), StampSource::kKernel) << "what is received counts, too";
  for (int i = 0; i < 4; ++i) offered.OnHardwareReceive(true);
  EXPECT_EQ(offered.rung(), StampSource::kHardware);
  EXPECT_EQ(offered.reason(), "");
  // A device with one register for stamps gives none to some packets.
  for (int i = 0; i < 20; ++i) {
    offered.OnHardwareTransmit(false);
    offered.OnHardwareTransmit(true);
  }
  EXPECT_EQ(offered.rung(), StampSource::kHardware);
  for (int i = 0; i < 3; ++i) offered.OnHardwareTransmit(false);
  EXPECT_EQ(offered.rung(), StampSource::kKernel);
  // The kernel's own stay below it.
  for (int i = 0; i < 4; ++i) offered.OnHardwareTransmit(true);
  for (int i = 0; i < 3; ++i) offered.OnTransmitStampMissing();
  EXPECT_EQ(offered.rung(), StampSource::kHardware);
  EXPECT_FALSE(offered.waits_for_transmit_stamp());

  StampLadder unwanted({.kernel_wanted = false});
  unwanted.set_hardware({.clock = 4});
  EXPECT_EQ(unwanted.hardware_clock(), -1);
}

TEST(TransmitTracker, AwaitsTheKernelsStampAndTheDevices) {
  TransmitTracker tracker;
  using Kind = TransmitTracker::Kind;
  const EdgeKey edge{1, 2, true};
  for (uint64_t id = 0; id < 3; ++id) tracker.Sent(id, edge, id, 5, /*hardware=*/id > 0);
  EXPECT_FALSE(tracker.Stamped(0, Kind::kHardware).has_value()) << "not awaited";
  EXPECT_TRUE(tracker.Stamped(0).has_value());
  EXPECT_TRUE(tracker.Stamped(1).has_value());
  EXPECT_TRUE(tracker.Stamped(1, Kind::kHardware).has_value());
  EXPECT_FALSE(tracker.Stamped(1, Kind::kHardware).has_value()) << "a second one";
  EXPECT_TRUE(tracker.Stamped(2).has_value());
  const auto given_up = tracker.Expired(kSecond);
  ASSERT_TRUE(given_up.has_value());
  EXPECT_EQ(given_up->id, 2u);
  EXPECT_FALSE(given_up->kernel);
  EXPECT_TRUE(given_up->hardware);
  EXPECT_FALSE(tracker.Expired(kSecond).has_value());
}

TEST(TransmitTracker, MatchesOutOfOrderOnceAndGivesUpInTime) {
  TransmitTracker tracker;
  const EdgeKey edge{1, 2, true};
  for (uint64_t id = 10; id < 14; ++id) tracker.Sent(id, edge, id * 100, static_cast<int64_t>(id));
  EXPECT_EQ(tracker.Stamped(12)->sequence, 1200u);
  EXPECT_FALSE(tracker.Stamped(12).has_value()) << "a second stamp of the same packet";
  EXPECT_FALSE(tracker.Stamped(9).has_value());
  EXPECT_FALSE(tracker.Stamped(14).has_value());
  EXPECT_EQ(tracker.NextDeadlineRawNs(), 10 + kTransmitStampWaitNs);
  EXPECT_FALSE(tracker.Expired(9 + kTransmitStampWaitNs).has_value());
  EXPECT_EQ(tracker.Expired(11 + kTransmitStampWaitNs)->id, 10u);
  EXPECT_EQ(tracker.Expired(11 + kTransmitStampWaitNs)->id, 11u);
  EXPECT_FALSE(tracker.Stamped(11).has_value()) << "late";
  EXPECT_EQ(tracker.Expired(kSecond)->id, 13u) << "12 had its stamp";
  EXPECT_FALSE(tracker.Expired(kSecond).has_value());
  EXPECT_GT(tracker.NextDeadlineRawNs(), 3600 * kSecond);
}

TEST(BurstSchedule, PhasesDifferAndFollowTheSeed) {
  std::set<int64_t> phases;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const BurstSchedule schedule({}, seed, 5 * kSecond);
    const int64_t first = schedule.NextBurstRawNs(5 * kSecond);
    EXPECT_GE(first, 5 * kSecond);
    EXPECT_LE(first, 5 * kSecond + 100 * kMs);
    phases.insert(first);
    EXPECT_EQ(first, BurstSchedule({}, seed, 5 * kSecond).NextBurstRawNs(5 * kSecond));
  }
  EXPECT_GT(phases.size(), 45u);
}

TEST(BurstSchedule, SlowsDownAndHurries) {
  BurstSchedule schedule({}, 1, 0);
  int64_t now = 0;
  auto bursts_until = [&](int64_t end) {
    int count = 0;
    for (int64_t next; (next = schedule.NextBurstRawNs(now)) < end; ++count) {
      now = next;
      schedule.BurstBegan(now);
    }
    return count;
  };
  EXPECT_NEAR(bursts_until(30 * kSecond), 300, 15);
  EXPECT_NEAR(bursts_until(60 * kSecond), 30, 4);
  schedule.FastUntil(70 * kSecond);
  EXPECT_NEAR(bursts_until(70 * kSecond), 100, 12);
  for (int i = 0; i < 1000; ++i) {
    const int64_t spacing = schedule.SpacingNs(false);
    EXPECT_GE(spacing, 50'000);
    EXPECT_LT(spacing, 100'000);
  }
}

TEST(SpinBudget, GivesAFifth) {
  SpinBudget budget;
  int64_t now = 1'000 * kSecond;
  EXPECT_TRUE(budget.Take(100 * kMs, now));
  EXPECT_FALSE(budget.Take(1 * kMs, now));
  now += 10 * kMs;
  EXPECT_TRUE(budget.Take(2 * kMs, now));
  EXPECT_FALSE(budget.Take(1, now));
  now += 3600 * kSecond;
  EXPECT_FALSE(budget.Take(101 * kMs, now)) << "an idle hour is not saved up";
  EXPECT_TRUE(budget.Take(100 * kMs, now));
}

TEST(Address, ParsesAndPrints) {
  for (const char* text : {"10.0.0.1:7611", "127.0.0.1:0", "[fd00::1]:65535"}) {
    const auto address = Address::Parse(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address->ToString(), text);
    EXPECT_TRUE(*address == *Address::Parse(text));
  }
  for (const char* text : {"", "10.0.0.1", "10.0.0.1:", "10.0.0.1:65536", "host:1", ":1",
                           "10.0.0:1", "10.0.0.1:-1", "[]:1"}) {
    EXPECT_FALSE(Address::Parse(text).ok()) << text;
  }
  EXPECT_FALSE(*Address::Parse("10.0.0.1:1") == *Address::Parse("10.0.0.1:2"));
}

}  // namespace
}  // namespace syncline::probe

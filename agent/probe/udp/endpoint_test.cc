// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/probe/udp/endpoint_fixture.h"
#include "agent/probe/udp/fake_network.h"
#include "agent/probe/udp/packet.h"

namespace syncline::probe {
namespace {

using clocksync::ProbeSample;
using clocksync::StampSource;
using ::testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1'000'000'000;
constexpr uint64_t kPlan = kTestPlan;

// What is due must not keep what has come from being read: a hub would have no samples at all.
TEST_F(EndpointTest, AHubOfAThousandEdgesHearsThemAll) {
  constexpr uint32_t kEdges = 1'000;
  plan_.edges.clear();
  for (uint32_t i = 1; i <= kEdges; ++i) {
    plan_.edges.push_back(
        {.edge_id = i, .initiator = true, .peer = "b", .address = remote_->address()});
  }
  ASSERT_TRUE(local_->endpoint().AddPlan(plan_).ok());
  for (PlannedEdge& edge : plan_.edges) edge.initiator = false;
  ASSERT_TRUE(remote_->endpoint().AddPlan(plan_).ok());
  // All are due; one is served, so that what comes meanwhile is read in between.
  network_.Pass(kSecond);
  local_->endpoint().OnTime();
  EXPECT_EQ(local_->endpoint().counters().packets_sent, 1u);
  network_.Run(3 * kSecond);
  uint64_t exchanges = 0, answered = 0;
  for (const EdgeStatus& status : local_->endpoint().Status()) {
    EXPECT_GT(status.answered, 0u) << "edge " << status.edge_id;
    exchanges += status.exchanges;
    answered += status.answered;
  }
  EXPECT_GT(answered, exchanges * 9 / 10);
  // Bursts of 8 every 640 ms, not ten times a second.
  EXPECT_LT(exchanges, kEdges * 8 * 7);
}

TEST_F(EndpointTest, KernelStampsAreSoundAndTight) {
  Begin();
  network_.Run(3 * kSecond);
  // Bursts of 8 at 10 Hz; the last exchange is reported by the next burst only.
  EXPECT_GE(local_->samples().size(), 27u * 8);
  EXPECT_LE(local_->samples().size(), 33u * 8);
  // The first request of a burst comes when the responder has not read its wall clock for long.
  EXPECT_GE(CountSource(StampSource::kKernel), local_->samples().size() * 7 / 8 - 1);
  EXPECT_LE(ExpectSound(), 100);  // brackets of 40 ns, and the slew that may be between them
  EXPECT_EQ(LocalStatus().rung, StampSource::kKernel);
  EXPECT_FALSE(LocalStatus().silent);
}

TEST_F(EndpointTest, BothEndsGetTheSameSamples) {
  Begin();
  network_.Run(1 * kSecond);
  ASSERT_FALSE(local_->samples().empty());
  ASSERT_NEAR(static_cast<double>(local_->samples().size()),
              static_cast<double>(remote_->samples().size()), 2);
  std::set<int64_t> theirs;
  for (const EdgeSample& s : remote_->samples()) theirs.insert(s.sample.t3_remote_ns);
  size_t both = 0;
  for (const EdgeSample& s : local_->samples()) both += theirs.count(s.sample.t3_remote_ns);
  EXPECT_GE(both + 2, local_->samples().size());
}

// The models must not depend on what the wall clock says, only on how it runs.
TEST(EndpointWallClock, AConstantShiftChangesNothing) {
  std::vector<std::vector<int64_t>> runs;
  for (const int64_t shift : {int64_t{0}, 86'400 * kSecond, -1'234'567'891'234'567}) {
    FakeNetwork network(3);
    FakeHost* a = network.AddHost();
    FakeHost* b = network.AddHost();
    a->wall_at_zero_ns += shift;
    b->wall_at_zero_ns -= shift / 3;
    ASSERT_NO_FATAL_FAILURE(AddEdge(a, b));
    network.Run(2 * kSecond);
    std::vector<int64_t> stamps;
    int kernel = 0;
    for (const EdgeSample& s : a->samples()) {
      kernel += s.sample.source == StampSource::kKernel ? 1 : 0;
      stamps.insert(stamps.end(), {s.sample.t1_local_ns, s.sample.t2_remote_ns,
                                   s.sample.t3_remote_ns, s.sample.t4_local_ns});
    }
    EXPECT_GT(kernel, 100);
    runs.push_back(stamps);
  }
  ASSERT_GT(runs[0].size(), 400u);
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_EQ(runs[0], runs[2]);
}

TEST_F(EndpointTest, StepsOfTheWallClockAreSound) {
  Begin();
  for (const char* told : {"told by the kernel", "found out", "found out, stamps fetched late"}) {
    SCOPED_TRACE(told);
    const std::string_view how = told;
    const ProbeCounters before = local_->endpoint().counters();
    for (FakeHost* host : {local_, remote_}) {
      host->kernel_tells_of_steps = how.starts_with("told");
      host->stamps_step_until_fetched = how.ends_with("late");
      // Inside bursts and between them, both ways, from less than the brackets can see on.
      for (int64_t i = 0; i < 1500; ++i) {
        const int64_t size = network_.random().Between(0, 10) + (int64_t{20} << (i % 16));
        host->wall_steps_ns.emplace_back(
            network_.now_ns() + i * 3'973'111 + network_.random().Between(0, 900'000),
            network_.random().Between(0, 2) == 0 ? size : -size);
      }
    }
    network_.Run(6 * kSecond);
    ExpectSound();
    const ProbeCounters& after = local_->endpoint().counters();
    if (how.starts_with("told")) {
      EXPECT_GT(after.wall_steps, before.wall_steps);
    } else {
      EXPECT_GT(after.wall_contradictions, before.wall_contradictions + 10);
    }
  }
  EXPECT_GT(CountSource(StampSource::kKernel), 300u);
}

// The worst moment: the readings after the stamp agree with each other but not with the stamp.
TEST_F(EndpointTest, StepsBetweenAStampAndItsMappingAreSound) {
  Begin();
  for (const int64_t size : {20, 60, 300, 20'000, 50'000, 80'000, 5'000'000}) {
    for (FakeHost* host : {local_, remote_}) {
      host->kernel_tells_of_steps = false;
      host->step_after_fetch_ns = size;
    }
    network_.Run(2 * kSecond);
  }
  ExpectSound();
  EXPECT_GT(remote_->wall_steps_ns.size(), 50u);
  EXPECT_GT(remote_->endpoint().counters().wall_contradictions, 20u);
  EXPECT_GT(CountSource(StampSource::kKernel), 300u);
}

TEST_F(EndpointTest, SlewsOfTheWallClockAreSound) {
  const int64_t begin = network_.now_ns();
  for (FakeHost* host : {local_, remote_}) {
    host->wall_rates_ppb = {{0, 0},
                            {begin + 500 * kMs, 500'000},
                            {begin + 1000 * kMs, -500'000},
                            {begin + 1500 * kMs, 100'000'000},
                            {begin + 2000 * kMs, -100'000'000}};
  }
  Begin();
  network_.Run(3 * kSecond);
  EXPECT_GE(CountSource(StampSource::kKernel), 200u);
  ExpectSound();
}

TEST_F(EndpointTest, FallsToSpinningWithoutTransmitStampsAndClimbsAgain) {
  local_->transmit_stamps = false;
  Begin();
  network_.Run(3 * kSecond);
  EXPECT_EQ(LocalStatus().rung, StampSource::kUserSpin);
  EXPECT_THAT(LocalStatus().reason, HasSubstr("no TX stamps within 200 ms from eth0"));
  EXPECT_GT(local_->endpoint().counters().transmit_stamps_missing, 0u);
  EXPECT_EQ(CountSource(StampSource::kKernel), 0u);
  EXPECT_GT(CountSource(StampSource::kUserSpin), 150u);
  ExpectSound();

  local_->transmit_stamps = true;
  network_.Run(3 * kSecond);
  EXPECT_EQ(LocalStatus().rung, StampSource::kKernel);
  EXPECT_GT(CountSource(StampSource::kKernel), 150u);
}

TEST_F(EndpointTest, FallsToBlockingWhereSpinningIsNotAllowed) {
  local_->receive_stamps = false;
  plan_.spin_allowed = false;
  Begin();
  network_.Run(3 * kSecond);
  EXPECT_EQ(LocalStatus().rung, StampSource::kUserBlocking);
  EXPECT_THAT(LocalStatus().reason, HasSubstr("RX stamps"));
  EXPECT_THAT(LocalStatus().reason, HasSubstr("not allowed"));
  EXPECT_EQ(CountSource(StampSource::kUserBlocking), local_->samples().size());
  EXPECT_GT(local_->samples().size(), 150u);
  EXPECT_LE(local_->endpoint().spin_until_raw_ns(), 0);
  ExpectSound();
}

TEST_F(EndpointTest, LateTransmitStampsAreWaitedForButNotForEver) {
  local_->transmit_stamp_delay_ns = kMs / 2;
  Begin();
  network_.Run(2 * kSecond);
  EXPECT_GT(CountSource(StampSource::kKernel), 50u);
  EXPECT_LE(ExpectSound(), 500);  // what is read half a millisecond later is mapped that wide

  // Who knows what the wall clock did in 50 ms: such a stamp is of no use, but the exchange is.
  const size_t before = CountSource(StampSource::kKernel);
  local_->transmit_stamp_delay_ns = 50 * kMs;
  network_.Run(2 * kSecond);
  EXPECT_LE(CountSource(StampSource::kKernel), before + 8);
  EXPECT_GT(local_->endpoint().counters().stamps_unbracketed, 50u);
  EXPECT_GT(local_->samples().size(), CountSource(StampSource::kKernel) + 100);
  ExpectSound();

  local_->transmit_stamp_delay_ns = 300 * kMs;
  network_.Run(3 * kSecond);
  EXPECT_GT(local_->endpoint().counters().transmit_stamps_late, 0u);
  EXPECT_EQ(LocalStatus().rung, StampSource::kUserSpin);
  EXPECT_GT(CountSource(StampSource::kUserSpin), 50u);
}

TEST_F(EndpointTest, SurvivesLossDuplicatesAndReordering) {
  network_.wire = [this](const FakeNetwork::Datagram& datagram) {
    const uint64_t luck = network_.random().Next() % 10;
    if (luck < 3) return std::vector<FakeNetwork::Datagram>{};
    return std::vector<FakeNetwork::Datagram>(luck < 5 ? 2 : 1, datagram);
  };
  network_.delay = [this](const FakeHost&) { return network_.random().Between(10'000, 900'000); };
  Begin();
  network_.Run(5 * kSecond);
  EXPECT_GT(local_->samples().size(), 100u);
  EXPECT_GT(local_->endpoint().counters().replayed, 0u);
  EXPECT_GT(remote_->endpoint().counters().replayed, 0u);
  for (const EdgeSample& s : local_->samples()) {
    // The drift of 100 ppm over these seconds is inside.
    const int64_t truth =
        remote_->RawAt(s.sample.t1_local_ns - local_->raw_offset_ns) - s.sample.t1_local_ns;
    EXPECT_GE(s.sample.t2_remote_ns - s.sample.t1_local_ns, truth);
    EXPECT_LE(s.sample.t3_remote_ns - s.sample.t4_local_ns, truth + 1000);
  }
}

TEST_F(EndpointTest, DropsWhatIsForgedReplayedOrOfTheWrongSize) {
  FakeNetwork::Datagram request;
  network_.wire = [&](const FakeNetwork::Datagram& datagram) {
    const auto packet = DecodePacket(datagram);
    if (packet && packet->kind == ProbePacket::Kind::kRequest) request = datagram;
    return std::vector<FakeNetwork::Datagram>{datagram};
  };
  Begin();
  network_.Run(500 * kMs);
  ASSERT_EQ(request.size(), kPacketBytes);
  const auto stranger = *Address::Parse("10.0.0.99:666");
  network_.wire = [](const FakeNetwork::Datagram&) { return std::vector<FakeNetwork::Datagram>{}; };
  local_->endpoint().RemovePlan(kPlan);
  const ProbeCounters before = remote_->endpoint().counters();

  // As it was; with each byte changed; too short; too long; empty.
  network_.Inject(request, stranger, remote_->address());
  for (size_t i = 0; i < request.size(); ++i) {
    FakeNetwork::Datagram changed = request;
    changed[i] ^= 0x10;
    network_.Inject(changed, stranger, remote_->address());
  }
  for (const size_t size :
       {size_t{0}, size_t{1}, kPacketBytes - 1, kPacketBytes + 1, size_t{9000}}) {
    FakeNetwork::Datagram changed = request;
    changed.resize(size);
    network_.Inject(changed, stranger, remote_->address());
  }
  network_.Run(50 * kMs);

  const ProbeCounters after = remote_->endpoint().counters();
  EXPECT_EQ(after.packets_received - before.packets_received, 1 + kPacketBytes + 5);
  EXPECT_EQ(after.replayed - before.replayed, 1u);
  EXPECT_EQ(after.wrong_size - before.wrong_size, 5u);
  const uint64_t dropped = (after.forged - before.forged) + (after.malformed - before.malformed) +
                           (after.unknown_plan - before.unknown_plan);
  EXPECT_EQ(dropped, kPacketBytes);
  EXPECT_GT(after.forged - before.forged, 40u);
  EXPECT_EQ(after.packets_sent, before.packets_sent) << "a dropped packet was answered";
}

TEST_F(EndpointTest, DropsPacketsUnderAnotherKeyAndReplayedAnswers) {
  FakeNetwork::Datagram response;
  network_.wire = [&](const FakeNetwork::Datagram& datagram) {
    const auto packet = DecodePacket(datagram);
    if (packet && packet->kind == ProbePacket::Kind::kResponse) response = datagram;
    return std::vector<FakeNetwork::Datagram>{datagram};
  };
  Begin();
  network_.Run(500 * kMs);
  const size_t samples = local_->samples().size();
  const uint64_t replayed = local_->endpoint().counters().replayed;
  network_.Inject(response, remote_->address(), local_->address());
  network_.Run(1 * kMs);
  EXPECT_EQ(local_->endpoint().counters().replayed, replayed + 1);
  EXPECT_EQ(local_->samples().size(), samples);

  ProbeKey wrong = TestKey();
  wrong[31] ^= 1;
  auto packet = *DecodePacket(response);
  packet.sequence += 1;
  PacketBytes bytes = EncodePacket(packet);
  PacketSealer(wrong).Seal(&bytes);
  network_.Inject({bytes.begin(), bytes.end()}, remote_->address(), local_->address());
  network_.Run(1 * kMs);
  EXPECT_EQ(local_->endpoint().counters().forged, 1u);
}

TEST_F(EndpointTest, NeverAnswersWithMoreThanItGot) {
  Begin();
  network_.Run(500 * kMs);
  ASSERT_GT(network_.datagrams().size(), 50u);
  for (const auto& datagram : network_.datagrams()) EXPECT_EQ(datagram.size(), kPacketBytes);
  EXPECT_LE(remote_->endpoint().counters().packets_sent,
            remote_->endpoint().counters().packets_received);
}

TEST_F(EndpointTest, SaysThatNobodyAnswers) {
  Begin();
  network_.Run(1 * kSecond);
  network_.wire = [](const FakeNetwork::Datagram&) { return std::vector<FakeNetwork::Datagram>{}; };
  network_.Run(8 * kSecond);
  EXPECT_TRUE(LocalStatus().silent);
  EXPECT_THAT(LocalStatus().silence, HasSubstr("no answer from b (UDP 10.0.0.2:7611)"));
  EXPECT_THAT(LocalStatus().silence, HasSubstr("UDP blocked"));
  EXPECT_TRUE(remote_->endpoint().Status().front().silent);
  network_.wire = [](const FakeNetwork::Datagram& d) {
    return std::vector<FakeNetwork::Datagram>{d};
  };
  network_.Run(2 * kSecond);
  EXPECT_FALSE(LocalStatus().silent);
}

TEST_F(EndpointTest, GoesOnAfterSendsThatFail) {
  Begin();
  network_.Run(1 * kSecond);
  const size_t before = local_->samples().size();
  local_->send_fails = true;
  network_.Run(1 * kSecond);
  EXPECT_GT(local_->endpoint().counters().send_failures, 10u);
  EXPECT_LE(local_->samples().size(), before + 1);
  local_->send_fails = false;
  network_.Run(1 * kSecond);
  EXPECT_GT(local_->samples().size(), before + 60);
}

TEST_F(EndpointTest, ProbesSlowlyAfterTheBeginningAndFastWhenHurried) {
  plan_.schedule.fast_at_start_ns = 2 * kSecond;
  Begin();
  network_.Run(2 * kSecond);
  const uint64_t fast = LocalStatus().exchanges;
  EXPECT_NEAR(static_cast<double>(fast), 160, 20);
  network_.Run(10 * kSecond);
  const uint64_t slow = LocalStatus().exchanges - fast;
  EXPECT_NEAR(static_cast<double>(slow), 80, 16);
  local_->endpoint().Hurry(kPlan, 2 * kSecond);
  network_.Run(2 * kSecond);
  EXPECT_NEAR(static_cast<double>(LocalStatus().exchanges - fast - slow), 160, 20);
}

TEST_F(EndpointTest, PlansAreCheckedAndRemoved) {
  Begin();
  EXPECT_EQ(local_->endpoint().AddPlan(plan_).code(), absl::StatusCode::kAlreadyExists);
  ProbePlan twice = plan_;
  twice.plan_id = 43;
  twice.edges = {plan_.edges[0], plan_.edges[0]};
  EXPECT_EQ(local_->endpoint().AddPlan(twice).code(), absl::StatusCode::kInvalidArgument);
  twice.edges = {{.edge_id = 1, .initiator = true, .peer = "nowhere"}};
  EXPECT_EQ(local_->endpoint().AddPlan(twice).code(), absl::StatusCode::kInvalidArgument);

  local_->endpoint().RemovePlan(kPlan);
  EXPECT_TRUE(local_->endpoint().Status().empty());
  const uint64_t sent = local_->endpoint().counters().packets_sent;
  network_.Run(1 * kSecond);
  EXPECT_EQ(local_->endpoint().counters().packets_sent, sent);
}

}  // namespace
}  // namespace syncline::probe

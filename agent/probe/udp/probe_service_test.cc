// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/probe_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <latch>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace syncline::probe {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;

class FakeRunner : public ProbeRunner {
 public:
  struct Seen {
    std::vector<ProbePlan> added;
    std::vector<uint64_t> removed;
    std::vector<int64_t> hurried_ns;
  };
  explicit FakeRunner(Seen* seen) : seen_(*seen) {}
  absl::Status AddPlan(const ProbePlan& plan) override {
    seen_.added.push_back(plan);
    return absl::OkStatus();
  }
  void RemovePlan(uint64_t plan_id) override { seen_.removed.push_back(plan_id); }
  void Hurry(uint64_t, int64_t duration_ns) override { seen_.hurried_ns.push_back(duration_ns); }
  std::vector<EdgeStatus> Status() const override {
    return {{.plan_id = 7, .edge_id = 3, .peer = "b", .reason = "because", .exchanges = 16},
            {.plan_id = 8, .edge_id = 4}};
  }
  // The first counter is 1, the next 2, ...
  ProbeCounters counters() const override {
    std::array<uint64_t, sizeof(ProbeCounters) / sizeof(uint64_t)> numbers;
    std::iota(numbers.begin(), numbers.end(), 1);
    return std::bit_cast<ProbeCounters>(numbers);
  }
  int64_t CpuNs() const override { return 99; }

 private:
  Seen& seen_;
};

class ProbeServiceTest : public ::testing::Test {
 protected:
  ProbeServiceTest() {
    service_.Use(std::make_unique<FakeRunner>(&seen_),
                 [](const std::string& text) { return Address::Parse(text); });
    plan_.set_plan_number(7);
    plan_.set_key(std::string(kKeyBytes, 'k'));
    plan_.set_lease_ms(1000);
    v1::ProbeEdge* edge = plan_.add_edges();
    edge->set_edge_number(3);
    edge->set_initiator(true);
    edge->set_peer("b");
    edge->set_peer_address("10.0.0.2:7611");
  }

  void Sample(uint64_t plan, int64_t t1, bool initiator = true) {
    service_.sink()({.plan_id = plan,
                     .edge_id = 3,
                     .initiator = initiator,
                     .sample = {t1, t1 + 1, t1 + 2, t1 + 3, clocksync::StampSource::kKernel}});
  }
  absl::StatusOr<v1::ProbeSamplesReply> Ask(uint64_t from) {
    v1::ProbeSamplesRequest request;
    request.set_plan_number(7);
    request.set_from_sample_number(from);
    return service_.Samples(request);
  }

  FakeRunner::Seen seen_;
  ProbeService service_;
  v1::ProbePlan plan_;
};

TEST_F(ProbeServiceTest, EveryCounterTravels) {
  const auto reply = service_.Probe(plan_, 0);
  ASSERT_TRUE(reply.ok()) << reply.status();
  const google::protobuf::Descriptor& fields = *v1::ProbeCounters::descriptor();
  std::set<uint64_t> came;
  for (int i = 0; i < fields.field_count(); ++i) {
    came.insert(v1::ProbeCounters::GetReflection()->GetUInt64(reply->counters(), fields.field(i)));
  }
  ASSERT_EQ(came.size(), sizeof(ProbeCounters) / sizeof(uint64_t)) << "each once, and none is 0";
  EXPECT_EQ(*came.begin(), 1u);
  EXPECT_EQ(*came.rbegin(), came.size());
}

TEST_F(ProbeServiceTest, BeginsOnceAndDescribesItsOwnEdges) {
  const auto reply = service_.Probe(plan_, 0);
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(seen_.added.size(), 1u);
  EXPECT_EQ(seen_.added[0].edges[0].address.ToString(), "10.0.0.2:7611");
  EXPECT_EQ(seen_.added[0].key[0], 'k');
  ASSERT_EQ(reply->edges_size(), 1);
  EXPECT_EQ(reply->edges(0).source(), v1::KERNEL);
  EXPECT_EQ(reply->edges(0).reason(), "because");
  EXPECT_EQ(reply->counters().packets_sent_count(), 1u);

  v1::ProbePlan again;
  again.set_plan_number(7);
  again.set_lease_ms(1000);
  again.set_hurry_ms(10'000);
  ASSERT_TRUE(service_.Probe(again, 500 * kMs).ok());
  EXPECT_EQ(seen_.added.size(), 1u);
  EXPECT_EQ(seen_.hurried_ns, std::vector<int64_t>{10'000 * kMs});
}

TEST_F(ProbeServiceTest, ATickDoesNotWaitForNames) {
  std::latch looking(1), found(1);
  service_.Use(std::make_unique<FakeRunner>(&seen_), [&](const std::string& text) {
    looking.count_down();
    found.wait();
    return Address::Parse(text);
  });
  const std::jthread call([&] { EXPECT_TRUE(service_.Probe(plan_, 0).ok()); });
  looking.wait();
  service_.Tick(0);  // would never return
  found.count_down();
}

TEST_F(ProbeServiceTest, EndsWithItsLeaseOrWhenTold) {
  ASSERT_TRUE(service_.Probe(plan_, 0).ok());
  service_.Tick(999 * kMs);
  EXPECT_TRUE(seen_.removed.empty());
  service_.Tick(1000 * kMs);
  EXPECT_EQ(seen_.removed, std::vector<uint64_t>{7});
  EXPECT_EQ(Ask(0).status().code(), absl::StatusCode::kNotFound);

  ASSERT_TRUE(service_.Probe(plan_, 0).ok());
  v1::ProbePlan end;
  end.set_plan_number(7);
  ASSERT_TRUE(service_.Probe(end, 0).ok());
  EXPECT_EQ(seen_.removed.size(), 2u);

  end.set_lease_ms(1000);
  const auto prolonged = service_.Probe(end, 0);
  EXPECT_EQ(prolonged.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(prolonged.status().message()), HasSubstr("has ended"));
}

TEST_F(ProbeServiceTest, GivesSamplesOnceAndAgainUntilTheyAreAcknowledged) {
  ASSERT_TRUE(service_.Probe(plan_, 0).ok());
  for (int64_t i = 0; i < 5; ++i) Sample(7, 100 * i);
  Sample(8, 1);            // of no plan here
  Sample(7, 5000, false);  // the other end keeps it
  auto reply = Ask(0);
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->t1_local_ns_size(), 5);
  EXPECT_EQ(reply->t4_local_ns(4), 403);
  EXPECT_EQ(reply->source(0), v1::KERNEL);
  EXPECT_EQ(reply->next_sample_number(), 5u);
  EXPECT_FALSE(reply->more());
  EXPECT_EQ(Ask(0)->t1_local_ns_size(), 5) << "an answer that was lost";
  EXPECT_EQ(Ask(3)->t1_local_ns(0), 300);
  EXPECT_EQ(Ask(5)->t1_local_ns_size(), 0);
  Sample(7, 999);
  reply = Ask(5);
  ASSERT_EQ(reply->t1_local_ns_size(), 1);
  EXPECT_EQ(reply->t1_local_ns(0), 999);
  EXPECT_EQ(reply->next_sample_number(), 6u);
}

TEST_F(ProbeServiceTest, KeepsABoundedNumberAndSaysWhatItForgot) {
  ASSERT_TRUE(service_.Probe(plan_, 0).ok());
  for (int64_t i = 0; i < 500'010; ++i) Sample(7, i);
  auto reply = Ask(0);
  EXPECT_EQ(reply->dropped_count(), 10u);
  EXPECT_EQ(reply->t1_local_ns(0), 10);
  EXPECT_TRUE(reply->more());
  EXPECT_EQ(reply->next_sample_number(), 20'010u);
  EXPECT_EQ(Ask(20'010)->t1_local_ns(0), 20'010);
}

TEST_F(ProbeServiceTest, RefusesWhatItCannotDo) {
  v1::ProbePlan bad = plan_;
  bad.set_key("short");
  EXPECT_EQ(service_.Probe(bad, 0).status().code(), absl::StatusCode::kInvalidArgument);
  bad = plan_;
  bad.mutable_edges(0)->set_peer_address("nonsense");
  const auto refused = service_.Probe(bad, 0);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("Node b"));
  EXPECT_TRUE(seen_.added.empty());

  ProbeService silent;
  const auto unavailable = silent.Probe(plan_, 0);
  EXPECT_EQ(unavailable.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(unavailable.status().message()), HasSubstr("no TCP port"));
}

}  // namespace
}  // namespace syncline::probe

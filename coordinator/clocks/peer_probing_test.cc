// SPDX-License-Identifier: Apache-2.0
#include "coordinator/clocks/peer_probing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "clocksync/sample_file.h"
#include "common/files.h"
#include "coordinator/clocks/probe_report.h"
#include "coordinator/fleet/fake_agent.h"
#include "coordinator/host/fake_clock.h"

namespace syncline::clocks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;
namespace fs = std::filesystem;

// Follows plans: gives one sample of each edge on which it asks per call.
class ProbingAgent : public fleet::FakeAgent {
 public:
  using FakeAgent::FakeAgent;

  absl::StatusOr<v1::ProbePlanReply> Probe(const v1::ProbePlan& plan, Timeout) override {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !held_; });
    if (!probe.ok()) return probe;
    if (!plan.key().empty()) plan_ = plan;
    ended = plan.lease_ms() == 0;
    hurried_ms += plan.hurry_ms();
    v1::ProbePlanReply reply;
    *reply.mutable_counters() = counters;
    for (const v1::ProbeEdge& edge : plan_.edges()) {
      v1::ProbeEdgeState* state = reply.add_edges();
      state->set_edge_number(edge.edge_number());
      state->set_peer(edge.peer());
      state->set_source(v1::KERNEL);
      state->set_reason("no hardware");
      if (!silence.empty()) state->set_silent(true), state->set_silence(silence);
    }
    return reply;
  }

  absl::StatusOr<v1::ProbeSamplesReply> ProbeSamples(const v1::ProbeSamplesRequest& request,
                                                     Timeout) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    v1::ProbeSamplesReply reply;
    if (!silence.empty()) return reply;
    const auto add = [&](uint32_t edge, uint64_t number) {
      const int64_t time = static_cast<int64_t>(1000 * number) + (lies ? 5 : 0);
      reply.add_edge_number(edge);
      reply.add_t1_local_ns(time);
      reply.add_t2_remote_ns(time + 7);
      reply.add_t3_remote_ns(time + 8);
      reply.add_t4_local_ns(time + 9);
      reply.add_source(v1::KERNEL);
    };
    const uint64_t number = request.from_sample_number();
    for (const v1::ProbeEdge& edge : plan_.edges()) {
      if (edge.initiator() || lies) add(edge.edge_number(), number + 1);
    }
    if (lies) add(4'000'000'000, 1);
    if (lies && taken_ % 2 == 1) reply.add_source(v1::KERNEL);
    reply.set_next_sample_number(number + 1);
    ++taken_;
    changed_.notify_all();
    return reply;
  }

  // Its calls wait until it is let go.
  void Hold(bool held) {
    const std::lock_guard<std::mutex> lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  void AwaitTaken(int times) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return taken_ >= times; });
  }
  v1::ProbePlan plan() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return plan_;
  }

  absl::Status probe;   // what Probe() says
  std::string silence;  // nothing comes back on its edges
  bool lies = false;    // speaks of edges that are not its own, of none, then in arrays that differ
  v1::ProbeCounters counters;
  bool ended = false;
  int64_t hurried_ms = 0;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  v1::ProbePlan plan_;
  bool held_ = false;
  int taken_ = 0;
};

class PeerProbingTest : public testing::Test {
 protected:
  PeerProbingTest()
      : directory_(fs::path(testing::TempDir()) /
                   (std::string("syncline_peers_") +
                    testing::UnitTest::GetInstance()->current_test_info()->name())),
        layout_(directory_) {
    fs::remove_all(directory_);
    fs::create_directories(layout_.Clocks());
    for (const char* name : {"a", "b", "c"}) {
      agents_.push_back(std::make_unique<ProbingAgent>(&clock_));
      targets_.push_back({name, std::string(name) + ":7611", agents_.back().get()});
    }
  }
  ~PeerProbingTest() override { fs::remove_all(directory_); }

  clocksync::Edge Samples(const char* local, const char* remote) {
    const auto bytes = ReadFile(layout_.Samples(local, remote));
    const auto edge = bytes.ok() ? clocksync::DecodeSamples(*bytes) : bytes.status();
    return edge.ok() ? *edge : clocksync::Edge{};
  }
  ProbeReport Report() {
    const auto text = ReadFile(layout_.Probes());
    const auto report = text.ok() ? ReportFromJson(*text) : text.status();
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : ProbeReport{};
  }

  fs::path directory_;
  recording::Layout layout_;
  host::FakeClock clock_;
  std::vector<std::unique_ptr<ProbingAgent>> agents_;
  std::vector<PeerTarget> targets_;
};

TEST(PairsToProbe, HubsAskEverybodyAndOneAnotherAndLeavesTheirNeighbour) {
  EXPECT_THAT(PairsToProbe(0), IsEmpty());
  EXPECT_THAT(PairsToProbe(1), IsEmpty());
  EXPECT_EQ(PairsToProbe(2), (std::vector<Pair>{{0, 1}, {1, 0}}));
  EXPECT_EQ(PairsToProbe(8).size(), 2 * 28u);
  EXPECT_EQ(PairsToProbe(9).size(), 28u + 8);
  EXPECT_EQ(PairsToProbe(1000).size(), 28u + 8 * 992 + 991);
  EXPECT_EQ(PairsToProbe(1000).back(), (Pair{998, 999}));
}

TEST_F(PeerProbingTest, EveryNodeGetsItsOwnEdgesUnderOneKey) {
  targets_.push_back({"local", "", agents_[0].get()});  // reached by a Unix socket: not by peers
  PeerProbing probing(targets_, layout_);
  probing.Hurry(2'000'000'000);
  agents_[0]->AwaitTaken(1);
  agents_[1]->AwaitTaken(1);
  probing.Stop();
  probing.Stop();
  const v1::ProbePlan a = agents_[0]->plan(), b = agents_[1]->plan(), c = agents_[2]->plan();
  EXPECT_EQ(a.key().size(), 32u);
  EXPECT_EQ(a.key(), c.key());
  EXPECT_NE(a.plan_number(), 0u);
  EXPECT_EQ(a.plan_number(), b.plan_number());
  ASSERT_EQ(b.edges_size(), 4) << "asked by a, asks a, asks c, asked by c";
  EXPECT_EQ(b.edges(0).peer(), "a");
  EXPECT_FALSE(b.edges(0).initiator());
  EXPECT_EQ(b.edges(1).peer(), "a");
  EXPECT_TRUE(b.edges(1).initiator());
  EXPECT_EQ(b.edges(2).peer_address(), "c:7611");
  EXPECT_TRUE(b.edges(2).initiator());
  EXPECT_EQ(agents_[0]->hurried_ms, 2000);
  for (const auto& agent : agents_) EXPECT_TRUE(agent->ended);

  const clocksync::Edge edge = Samples("a", "b");
  EXPECT_EQ(edge.local, "a");
  EXPECT_EQ(edge.remote, "b");
  ASSERT_GE(edge.samples.size(), 2u);
  for (size_t i = 0; i < edge.samples.size(); ++i) {
    EXPECT_EQ(edge.samples[i].t1_local_ns, static_cast<int64_t>(1000 * (i + 1)));
    EXPECT_EQ(edge.samples[i].t4_local_ns, edge.samples[i].t1_local_ns + 9);
    EXPECT_EQ(edge.samples[i].source, clocksync::StampSource::kKernel);
  }
  EXPECT_TRUE(fs::exists(layout_.Samples("b", "a")));
  const ProbeReport report = Report();
  ASSERT_EQ(report.edges.size(), 6u);
  EXPECT_EQ(report.edges[0].samples, edge.samples.size());
  EXPECT_EQ(Describe(report.edges[0]), "kernel stamps (no hardware)");
}

TEST_F(PeerProbingTest, ASlowNodeDelaysNobody) {
  agents_[0]->Hold(true);
  PeerProbing probing(targets_, layout_);
  for (int round = 1; round <= 3; ++round) {
    probing.Hurry(1'000'000);
    agents_[1]->AwaitTaken(round);
  }
  agents_[0]->Hold(false);
  probing.Stop();
  EXPECT_GE(Samples("b", "c").samples.size(), 3u);
}

TEST_F(PeerProbingTest, AnOldAgentIsNamedAndTheOthersGoOn) {
  agents_[1]->probe = absl::UnimplementedError("");
  {
    PeerProbing probing(targets_, layout_);
    probing.Hurry(1'000'000);
    agents_[0]->AwaitTaken(1);
  }
  const ProbeReport report = Report();
  ASSERT_EQ(report.edges.size(), 6u);
  EXPECT_EQ(report.edges[4].samples, 0u) << "b--c";
  EXPECT_THAT(Describe(report.edges[4]),
              HasSubstr("gRPC probes alone: b: its agent is too old for clock probes"));
  EXPECT_GT(report.edges[2].samples, 0u) << "a--c";
}

TEST_F(PeerProbingTest, ANetworkWithoutUdpIsSaid) {
  for (const auto& agent : agents_) agent->silence = "no answer for 5 s: is UDP blocked?";
  { PeerProbing probing(targets_, layout_); }
  const ProbeReport report = Report();
  ASSERT_EQ(report.edges.size(), 6u);
  EXPECT_THAT(Describe(report.edges[0]),
              HasSubstr("no samples over UDP, gRPC probes alone: a: no answer for 5 s"));
  EXPECT_FALSE(fs::exists(layout_.Samples("a", "b")));
}

TEST_F(PeerProbingTest, ANodeSpeaksOnlyForItsOwnEdges) {
  agents_[2]->lies = true;
  {
    PeerProbing probing(targets_, layout_);
    probing.Hurry(1'000'000);
    agents_[0]->AwaitTaken(1);
    agents_[2]->AwaitTaken(2);
  }
  const clocksync::Edge of_others = Samples("a", "c"), its_own = Samples("c", "a");
  EXPECT_FALSE(of_others.samples.empty());
  for (const auto& sample : of_others.samples) EXPECT_EQ(sample.t1_local_ns % 1000, 0);
  EXPECT_FALSE(its_own.samples.empty());
  for (const auto& sample : its_own.samples) EXPECT_EQ(sample.t1_local_ns % 1000, 5);
}

TEST_F(PeerProbingTest, AllThatAnAgentCountsIsKept) {
  const google::protobuf::Descriptor& fields = *v1::ProbeCounters::descriptor();
  std::vector<uint64_t> expected = {0};  // samples_forgotten_count is the coordinator's
  for (int i = 0; i < fields.field_count(); ++i) {
    expected.push_back(static_cast<uint64_t>(i) + 1);
    v1::ProbeCounters::GetReflection()->SetUInt64(&agents_[0]->counters, fields.field(i),
                                                  expected.back());
  }
  { PeerProbing probing(targets_, layout_); }
  const ProbeReport report = Report();
  ASSERT_EQ(report.nodes.size(), 3u);
  std::set<std::string> names;
  std::vector<uint64_t> counts;
  for (const auto& [name, count] : report.nodes[0].counts) {
    names.insert(name);
    counts.push_back(count);
  }
  EXPECT_THAT(counts, UnorderedElementsAreArray(expected));
  EXPECT_EQ(names.size(), expected.size());
}

TEST(ProbeReportTest, TheBestStampsNeedNoReason) {
  ProbeReport::Edge edge{.local = {.node = "a", .stamps = "hardware"},
                         .remote = {.node = "b", .stamps = "hardware"},
                         .samples = 7};
  EXPECT_EQ(Describe(edge), "hardware stamps");
  edge.remote = {.node = "b", .stamps = "kernel", .why_not_better = "eth0 has no hardware clock"};
  EXPECT_EQ(Describe(edge), "a: hardware stamps; b: kernel stamps (eth0 has no hardware clock)");
}

TEST(ProbeReportTest, ComesBackAsItWentInAndOthersAreRefused) {
  ProbeReport report;
  report.edges.push_back({.local = {.node = "a", .stamps = "kernel", .why_not_better = "x"},
                          .remote = {.node = "b", .stamps = "user, spinning", .silence = "hush"},
                          .samples = 7,
                          .failure = "disk full"});
  report.nodes.push_back(
      {.node = "a", .cpu_ns = 5, .counts = {{"packets_sent_count", 3}, {"new_count", 0}}});
  const auto again = ReportFromJson(ToJson(report));
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_EQ(again->edges.size(), 1u);
  EXPECT_EQ(again->edges[0].samples, 7u);
  EXPECT_EQ(Describe(again->edges[0]), Describe(report.edges[0]));
  EXPECT_THAT(Describe(again->edges[0]), HasSubstr("b: user, spinning stamps"));
  ASSERT_EQ(again->nodes.size(), 1u);
  EXPECT_EQ(again->nodes[0].node, "a");
  EXPECT_EQ(again->nodes[0].cpu_ns, 5);
  EXPECT_EQ(again->nodes[0].counts, report.nodes[0].counts);
  for (const char* text :
       {"", "[]", "{", R"({"edges": 1})", R"({"edges": []})",
        R"({"format_version": 2, "edges": []})", R"({"format_version": 1, "edges": [1]})"}) {
    EXPECT_FALSE(ReportFromJson(text).ok()) << text;
  }
  EXPECT_TRUE(
      ReportFromJson(R"({"format_version": 1, "edges": [{"local": 1, "samples_count": "x"}]})")
          .ok());
}

TEST(ProbeReportTest, WhatNodesCountedIsReadAsFarAsItCanBe) {
  const auto report = ReportFromJson(R"({"format_version": 1, "edges": [], "nodes": [1, {
      "node": "a", "cpu_ns": "x", "packets_sent_count": 3, "packets_received_count": -1,
      "samples_count": null, "why": 2}]})");
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->nodes.size(), 1u);
  EXPECT_THAT(report->nodes[0].counts,
              ElementsAre(::testing::Pair(std::string("packets_sent_count"), uint64_t{3})));
}

}  // namespace
}  // namespace syncline::clocks

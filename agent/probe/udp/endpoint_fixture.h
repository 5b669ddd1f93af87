// SPDX-License-Identifier: Apache-2.0
// For tests of Endpoint: one edge between two hosts of a fake network.
#ifndef SYNCLINE_AGENT_PROBE_UDP_ENDPOINT_FIXTURE_H_
#define SYNCLINE_AGENT_PROBE_UDP_ENDPOINT_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "agent/probe/udp/fake_network.h"
#include "agent/probe/udp/packet.h"

namespace syncline::probe {

inline constexpr uint64_t kTestPlan = 42;

inline ProbeKey TestKey() {
  ProbeKey key;
  for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<uint8_t>(i * 7 + 1);
  return key;
}

// One edge on which `asking` probes `answering`.
inline void AddEdge(FakeHost* asking, FakeHost* answering) {
  ProbePlan plan{.plan_id = kTestPlan, .key = TestKey()};
  plan.edges = {{.edge_id = 1, .initiator = true, .peer = "b", .address = answering->address()}};
  ASSERT_TRUE(asking->endpoint().AddPlan(plan).ok());
  plan.edges[0].initiator = false;
  ASSERT_TRUE(answering->endpoint().AddPlan(plan).ok());
}

// Host 1 probes host 2, whose RAW clock is an hour ahead and 100 ppm fast.
class EndpointTest : public ::testing::Test {
 protected:
  EndpointTest() : local_(network_.AddHost()), remote_(network_.AddHost()) {
    local_->raw_offset_ns = 7'000'000'000;
    remote_->raw_offset_ns = 3'600'000'000'000;
    remote_->raw_rate_ppb = 100'000;
    plan_.plan_id = kTestPlan;
    plan_.key = TestKey();
    plan_.seed = 5;
  }

  void Begin() {
    plan_.edges = {{.edge_id = 9, .initiator = true, .peer = "b", .address = remote_->address()}};
    ASSERT_TRUE(local_->endpoint().AddPlan(plan_).ok());
    plan_.edges = {{.edge_id = 9, .initiator = false, .peer = "a"}};
    ASSERT_TRUE(remote_->endpoint().AddPlan(plan_).ok());
  }

  // Every stamp keeps the soundness rule against the true times. How far off the worst of this
  // source is, ns.
  int64_t ExpectSound(clocksync::StampSource of = clocksync::StampSource::kKernel) const {
    int64_t worst = 0;
    for (const EdgeSample& sample : local_->samples()) {
      // The exchange is the one whose request left last before t1 and not after it.
      const clocksync::ProbeSample& s = sample.sample;
      bool found = false;
      for (const auto& [sequence, truth] : network_.truths()) {
        if (truth.response_came_ns == 0) continue;
        const int64_t slack[] = {local_->RawAt(truth.request_left_ns) - s.t1_local_ns,
                                 s.t2_remote_ns - remote_->RawAt(truth.request_came_ns),
                                 remote_->RawAt(truth.response_left_ns) - s.t3_remote_ns,
                                 s.t4_local_ns - local_->RawAt(truth.response_came_ns)};
        const int64_t off = *std::max_element(std::begin(slack), std::end(slack));
        if (std::any_of(std::begin(slack), std::end(slack),
                        [](int64_t x) { return std::abs(x) > 40'000; })) {
          continue;  // another exchange: they are at least 50 us apart
        }
        found = true;
        if (s.source == of) worst = std::max(worst, off);
        for (int64_t x : slack) EXPECT_GE(x, 0) << "exchange " << sequence;
      }
      EXPECT_TRUE(found) << "no exchange fits the sample at " << s.t1_local_ns;
    }
    return worst;
  }

  size_t CountSource(clocksync::StampSource source) const {
    return static_cast<size_t>(
        std::count_if(local_->samples().begin(), local_->samples().end(),
                      [&](const EdgeSample& s) { return s.sample.source == source; }));
  }
  EdgeStatus LocalStatus() { return local_->endpoint().Status().front(); }

  FakeNetwork network_;
  FakeHost* local_;
  FakeHost* remote_;
  ProbePlan plan_;
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_ENDPOINT_FIXTURE_H_

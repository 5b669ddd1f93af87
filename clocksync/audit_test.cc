// SPDX-License-Identifier: Apache-2.0
// What a report says of steps that could hide and of the wander that the samples prove is true.
#include "clocksync/audit.h"

#include <gtest/gtest.h>

#include <functional>

#include "clocksync/builder.h"

namespace syncline::clocksync {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Two nodes that exchange every 100 ms for half a minute, `delay_ns` each way; offset(t) is what b
// is ahead of a.
BuildResult Build(int64_t delay_ns, const std::function<int64_t(int64_t)>& offset) {
  BuildInput input{.nodes = {"a", "b"}};
  Edge edge{.local = "a", .remote = "b"};
  for (int64_t t = 0; t < 30 * kSecond; t += kSecond / 10) {
    if (t > 20 * kSecond && t < 25 * kSecond) continue;
    const int64_t there = t + delay_ns, back = there + 1'000;
    edge.samples.push_back({kSecond + t, kSecond + there + offset(there),
                            kSecond + back + offset(back), kSecond + back + delay_ns,
                            StampSource::kKernel});
  }
  input.edges.push_back(std::move(edge));
  return BuildModel(input, {.reference = "a", .zero_reference_raw_ns = kSecond, .audit = true})
      .value();
}

const ClockEvent* Find(const BuildResult& built, ClockEvent::Kind kind) {
  for (const ClockEvent& event : built.events) {
    if (event.kind == kind) return &event;
  }
  return nullptr;
}

TEST(AuditTest, AStepThatIsSaidToBeSeenIsSeen) {
  const EdgeAudit quiet = Build(10'000, [](int64_t) { return 7; }).edges[0].audit;
  EXPECT_GT(quiet.unseen_step_ns_median, 19'000);
  EXPECT_LT(quiet.unseen_step_ns_median, 25'000);
  EXPECT_GE(quiet.unseen_step_ns_worst, quiet.unseen_step_ns_median);
  // Worst where there are no samples.
  EXPECT_GT(quiet.unseen_step_worst_at_ns, 21 * kSecond);
  EXPECT_LT(quiet.unseen_step_worst_at_ns, 26 * kSecond);
  for (int64_t sign : {1, -1}) {
    const int64_t step = sign * (quiet.unseen_step_ns_median * 21 / 20);
    const BuildResult built =
        Build(10'000, [step](int64_t t) { return t > 10 * kSecond + 50'000'000 ? step : 0; });
    const ClockEvent* const event = Find(built, ClockEvent::Kind::kInfeasible);
    ASSERT_NE(event, nullptr) << step;
    EXPECT_LE(event->step_ns_min, step);
    EXPECT_GE(event->step_ns_max, step);
    EXPECT_LE(event->begin_ns, 11 * kSecond + 50'000'000);
    EXPECT_GE(event->end_ns, 11 * kSecond + 50'000'000);
  }
}

TEST(AuditTest, HalfOfASymmetricRoundTripCannotBeSeen) {
  const BuildResult built = Build(10'000, [](int64_t t) { return t > 10 * kSecond ? 9'000 : 0; });
  EXPECT_EQ(Find(built, ClockEvent::Kind::kInfeasible), nullptr);
  EXPECT_GT(built.edges[0].audit.unseen_step_ns_median, 9'000);
}

TEST(AuditTest, WanderIsProvenButNeverMoreThanThereIs) {
  // Rate growing by 8 ppb a second: offset 4e-9 t^2 / s.
  const BuildResult built = Build(100, [](int64_t t) {
    const double s = static_cast<double>(t) * 1e-9;
    return static_cast<int64_t>(4.0 * s * s);
  });
  const int64_t proven = built.edges[0].audit.wander_needed_ppt_per_s;
  EXPECT_GT(proven, 5'000);
  EXPECT_LE(proven, 8'050);  // readings are whole nanoseconds
  EXPECT_EQ(Build(100, [](int64_t t) { return t / 50'000; }).edges[0].audit.wander_needed_ppt_per_s,
            0);
}

TEST(AuditTest, GapsAreTold) {
  const BuildResult built = Build(10'000, [](int64_t) { return 0; });
  const ClockEvent* const gap = Find(built, ClockEvent::Kind::kGap);
  ASSERT_NE(gap, nullptr);
  EXPECT_EQ(gap->node, "a--b");
  ASSERT_TRUE(gap->begin.has_value() && gap->end.has_value());
  EXPECT_NEAR(static_cast<double>(gap->begin->ns), 20e9, 1e6);
  EXPECT_NEAR(static_cast<double>(gap->end->ns), 25e9, 1e6);
  // And in the stored model, for whoever merges later.
  const auto stored = ClockModel::FromJson(built.model.ToJson());
  ASSERT_TRUE(stored.ok());
  ASSERT_EQ(stored->events().size(), built.events.size());
  EXPECT_EQ(stored->events()[0].text, built.events[0].text);
  EXPECT_EQ(stored->events()[0].begin, built.events[0].begin);
}

// As in CorridorTest.AContradictionFarAwayIsFoundWithoutOverflow.
TEST(AuditTest, BesideAContradictionFarAwayAnyStepCouldHide) {
  const int64_t far = 500'000'000 * kSecond;
  const Constraints constraints{.upper = {{0, 1000}, {far + 1, far + 1 + 1000}},
                                .lower = {{0, 900}, {far, far + 1100}}};
  const EdgeAudit audit = AuditEdge(constraints, {}, {.wander_ppb_per_s = 0});
  EXPECT_EQ(audit.unseen_step_ns_worst, kUnknownHi);
}

TEST(AuditTest, WithoutSamplesAnyStepCouldHide) {
  BuildInput input{.nodes = {"a", "b"}};
  input.edges.push_back({.local = "a", .remote = "b"});
  const auto built = BuildModel(input, {.reference = "a", .audit = true});
  ASSERT_TRUE(built.ok());
  EXPECT_EQ(built->edges[0].audit.unseen_step_ns_worst, kUnknownHi);
}

}  // namespace
}  // namespace syncline::clocksync

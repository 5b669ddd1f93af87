// SPDX-License-Identifier: Apache-2.0
// From traces on disk to what changed: a job of two ranks, in whose second recording rank 1
// computes longer by a known time in each step.
#include "coordinator/merge/against.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analysis/against/comparison.h"
#include "coordinator/merge/job_test.h"
#include "coordinator/merge/test_recording.h"
#include "coordinator/merge/why_job_test.h"

namespace syncline::merge {
namespace {

using analysis::against::Compare;
using analysis::against::Comparison;
using analysis::against::Per;
using analysis::against::Recording;
using analysis::against::RowChange;
using analysis::against::RowKind;
using State = RowChange::State;

class AgainstTest : public testing::JobTest {
 protected:
  Recording Read(const std::string& name, int64_t late_ns, Per per = Per::kStep) {
    FakeRank second = kSecond;
    second.late_ns = late_ns;
    const std::filesystem::path run = root_ / name;
    std::filesystem::remove_all(run);
    testing::WriteScenario(Job(kFirst, second), name, 0, run);
    ReportOptions options;
    options.input.inputs = {run.string()};
    const auto report = MakeReport(options);
    EXPECT_TRUE(report.ok()) << report.status();
    auto sums = ReadSums(options, *report, per);
    EXPECT_TRUE(sums.ok()) << sums.status();
    return sums.ok() ? *std::move(sums) : Recording{};
  }

  static RowChange Of(const Comparison& comparison, RowKind kind, const std::string& name) {
    for (const RowChange& row : comparison.rows) {
      if (row.name.kind == kind && row.name.name == name) return row;
    }
    ADD_FAILURE() << "no row " << name;
    return {};
  }
};

TEST_F(AgainstTest, ARankThatComputesLongerIsNamedByItsOperatorAndItsWait) {
  const Recording before = Read("before", 0);
  const Recording now = Read("now", kLateNs);
  EXPECT_GE(before.units.size(), static_cast<size_t>(kSteps) - 4);
  const Comparison comparison = Compare({before}, now);
  ASSERT_EQ(comparison.mismatch, analysis::against::Mismatch::kNone) << comparison.mismatch_text;
  EXPECT_EQ(comparison.period.now_ns, kPeriodNs);
  const RowChange conv = Of(comparison, RowKind::kTask, "aten::conv2d");
  EXPECT_EQ(conv.state, State::kChanged);
  EXPECT_NEAR(conv.time.before_ns, 990 * kUs, 100);
  EXPECT_NEAR(conv.time.change.est_ns, kLateNs / 2, 100);  // mean of two ranks
  EXPECT_EQ(conv.calls_now, 1);
  ASSERT_EQ(conv.where.changed, 1u);
  EXPECT_EQ(comparison.members[conv.where.most].rank, 1);
  EXPECT_NEAR(conv.where.most_ns, kLateNs, 100);
  // It waits less, from its own entry on, than rank 0 does.
  const RowChange in = Of(comparison, RowKind::kCollective, "allreduce");
  EXPECT_NEAR(in.time.before_ns, 1'400 * kUs, 100);
  EXPECT_NEAR(in.time.change.est_ns, -kLateNs / 2, 100);
  const RowChange together = Of(comparison, RowKind::kAllIn, "allreduce");
  EXPECT_NEAR(together.time.change.est_ns, -kLateNs, 20 * kUs);
  EXPECT_LT(together.time.change.lo_ns, -kLateNs);  // by the clocks' bounds
  EXPECT_GT(together.time.change.hi_ns, -kLateNs);
  EXPECT_EQ(Of(comparison, RowKind::kTask, "Optimizer.step#SGD.step").state, State::kSame);
}

TEST_F(AgainstTest, TheSameTwiceChangesNothing) {
  for (const Per per : {Per::kStep, Per::kSecond}) {
    const Recording one = Read("one", kLateNs, per);
    const Recording other = Read("other", kLateNs, per);
    const Comparison comparison = Compare({one}, other);
    EXPECT_EQ(comparison.changed(), 0u);
    EXPECT_GE(comparison.tested, 3u);
    EXPECT_TRUE(std::none_of(comparison.rows.begin(), comparison.rows.end(),
                             [](const RowChange& row) { return row.call_changed; }));
  }
}

TEST_F(AgainstTest, PerSecondTheCallsOfTheOperatorAreLonger) {
  const Comparison comparison =
      Compare({Read("before", 0, Per::kSecond)}, Read("now", kLateNs, Per::kSecond));
  const RowChange conv = Of(comparison, RowKind::kTask, "aten::conv2d");
  EXPECT_TRUE(conv.call_changed);
  EXPECT_NEAR(conv.call->before_ns, 990 * kUs, kUs);
  EXPECT_NEAR(conv.call->now_ns, (990 * kUs + kLateNs / 2), 20 * kUs);
}

}  // namespace
}  // namespace syncline::merge

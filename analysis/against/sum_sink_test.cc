// SPDX-License-Identifier: Apache-2.0
#include "analysis/against/sum_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncline::analysis::against {
namespace {

using ::testing::ElementsAre;
using timeline::TrackKind;

constexpr int64_t kUs = 1000;

// Two ranks on one node; rank 0 marks a step each ms.
Report ReportOf(size_t steps) {
  Report report;
  report.from_recording = true;
  report.ranks = 2;
  report.window_end.ns = 2000 * 1000 * kUs;
  NodeReport& node = report.nodes.emplace_back();
  for (int32_t rank = 0; rank < 2; ++rank) {
    ProcessReport& process = node.processes.emplace_back();
    process.name = "rank " + std::to_string(rank);
    process.rank = rank;
    process.command_line = "/usr/bin/python -u train.py --seed 3";
  }
  StepSeries& series = report.steps.emplace_back();
  series.process = "rank 0";
  series.name = "train_step";
  for (size_t i = 0; i < steps; ++i) {
    Step& step = series.steps.emplace_back();
    step.begin.ns = static_cast<int64_t>(i) * 1000 * kUs;
    step.end.ns = step.begin.ns + 900 * kUs;
  }
  report.common_coverage = {{{0}, {static_cast<int64_t>(steps) * 1000 * kUs}}};
  return report;
}

TEST(Periods, LastFromBeginToBeginWhereAllWereRecorded) {
  Report report = ReportOf(5);
  EXPECT_EQ(PeriodsOf(report).name, "train_step");
  EXPECT_EQ(PeriodsOf(report).intervals.size(), 4u);
  EXPECT_EQ(PeriodsOf(report).intervals[1].end.ns, 2000 * kUs);
  report.common_coverage = {{{1500 * kUs}, {5000 * kUs}}};
  EXPECT_EQ(PeriodsOf(report).intervals.size(), 2u);
}

TEST(Units, OfManyStepsTakeSeveralTogether) {
  const Units units = UnitsOf(ReportOf(1302), Per::kStep);
  EXPECT_EQ(units.steps, 3);
  EXPECT_EQ(units.size(), 433u);  // of 1,301 periods, two are left out
  EXPECT_EQ(units.lengths_ns[0], 3000 * kUs);
  EXPECT_EQ(units.PerOne(300), 100);
  EXPECT_EQ(units.Ones(), 1299);
  size_t hint = 0;
  EXPECT_EQ(units.At({3500 * kUs}, &hint), 1u);
  EXPECT_EQ(units.At({-1}, &hint), std::nullopt);
}

TEST(Units, WithoutStepsAreEqualPartsOfWhatWasRecorded) {
  Report report = ReportOf(0);
  report.common_coverage = {{{0}, {100'000 * kUs}}, {{500'000 * kUs}, {640'000 * kUs}}};
  const Units units = UnitsOf(report, Per::kSecond);
  EXPECT_EQ(units.size(), 240u);
  EXPECT_EQ(units.part_ns, 1000 * kUs);
  EXPECT_EQ(units.PerOne(500 * kUs), 500'000'000);  // half of the time
  EXPECT_NEAR(units.Ones(), 0.24, 1e-9);
}

// A track for each kind of thing that has a name and lasts.
class SumSinkTest : public testing::Test {
 protected:
  SumSinkTest() : report_(ReportOf(14)), recording_(RecordingOf(report_, Per::kStep)) {
    for (timeline::TextId id = 1; id <= kTexts.size(); ++id) sink_.OnText(id, kTexts[id - 1]);
    AddTrack(0, timeline::kNoTrack, TrackKind::kNode, "node");
    for (timeline::TrackId rank = 0; rank < 2; ++rank) {
      const timeline::TrackId process = 1 + 10 * rank;
      AddTrack(process, 0, TrackKind::kProcess, "rank " + std::to_string(rank));
      AddTrack(process + 1, process, TrackKind::kThread, "thread");
      AddTrack(process + 2, process, TrackKind::kAsync, "overlapped tasks");
      AddTrack(process + 3, process, TrackKind::kAsync, "waits");
      AddTrack(process + 4, process, TrackKind::kLane, "stream 7");
    }
  }

  void AddTrack(timeline::TrackId id, timeline::TrackId parent, TrackKind kind, std::string name) {
    timeline::Track track;
    track.id = id;
    track.parent = parent;
    track.kind = kind;
    track.name = std::move(name);
    sink_.OnTrack(track);
  }

  timeline::Span Span(timeline::TrackId track, timeline::TextId name, int64_t begin_us,
                      int64_t length_us, int64_t self_us) {
    timeline::Span span;
    span.track = track;
    span.name = name;
    span.category = kTorch;
    span.begin.ns = begin_us * kUs;
    span.end.ns = (begin_us + length_us) * kUs;
    span.self_ns = self_us * kUs;
    return span;
  }

  static constexpr timeline::TextId kTorch = 1, kConv = 2, kBatch = 3, kKernelCategory = 4,
                                    kKernel = 5;
  const std::vector<std::string> kTexts = {"torch", "conv", "batch 17", "Kineto kernel",
                                           "sgemm_128x64"};
  Report report_;
  Recording recording_;
  SumSink sink_{report_, &recording_};
};

TEST_F(SumSinkTest, AddsUpByNameStepAndRank) {
  ASSERT_EQ(recording_.units.size(), 13u);
  sink_.OnSpanEnd(Span(2, kConv, 10, 100, 80));
  sink_.OnSpanEnd(Span(2, kConv, 200, 50, 50));
  sink_.OnSpanEnd(Span(12, kConv, 1990, 30, 30));  // of rank 1, and counts where it begins
  sink_.OnSpanEnd(Span(2, kBatch, 100, 20, 20));
  sink_.OnSpanEnd(Span(3, kConv, 0, 70, 0));        // overlapping: from begin to end
  sink_.OnSpanEnd(Span(4, kConv, 0, 500, 0));       // a wait is no work
  sink_.OnSpanEnd(Span(2, kConv, 13'500, 50, 50));  // behind the last whole period
  timeline::Span clipped = Span(2, kConv, 300, 50, 50);
  clipped.clipped_end = true;
  sink_.OnSpanEnd(clipped);
  timeline::Span kernel = Span(5, kKernel, 3000, 40, 40);
  kernel.category = kKernelCategory;
  sink_.OnSpanEnd(kernel);
  ASSERT_TRUE(sink_.Finish().ok());
  ASSERT_EQ(recording_.rows.size(), 4u);
  const Sums& conv = recording_.rows.at({RowKind::kTask, "torch", "conv"});
  EXPECT_EQ(conv.ns[0], 130 * kUs);
  EXPECT_EQ(conv.ns[1], 30 * kUs);
  EXPECT_EQ(conv.calls, 3u);
  EXPECT_THAT(conv.member_ns, ElementsAre(130 * kUs, 30 * kUs));
  EXPECT_EQ(recording_.rows.at({RowKind::kTask, "torch", "batch #"}).ns[0], 20 * kUs);
  EXPECT_EQ(recording_.rows.at({RowKind::kRegion, "torch", "conv"}).ns[0], 70 * kUs);
  EXPECT_EQ(recording_.rows.at({RowKind::kDevice, "Kineto kernel", "sgemm_128x64"}).ns[3],
            40 * kUs);
  EXPECT_THAT(recording_.programs, ElementsAre("python train.py"));
}

TEST_F(SumSinkTest, PerSecondAlsoHasTheMeanOfACall) {
  report_.common_coverage = {{{0}, {240'000 * kUs}}};
  Recording recording = RecordingOf(report_, Per::kSecond);  // in parts of 1 ms
  SumSink sink(report_, &recording);
  sink.OnText(kConv, "conv");
  timeline::Track process;
  process.id = 1;
  process.kind = TrackKind::kProcess;
  process.name = "rank 0";
  sink.OnTrack(process);
  timeline::Track thread;
  thread.id = 2;
  thread.parent = 1;
  sink.OnTrack(thread);
  sink.OnSpanEnd(Span(2, kConv, 100, 30, 30));
  sink.OnSpanEnd(Span(2, kConv, 200, 50, 50));
  sink.OnSpanEnd(Span(2, kConv, 5200, 70, 70));
  ASSERT_TRUE(sink.Finish().ok());
  const Sums& conv = recording.rows.begin()->second;
  EXPECT_THAT(conv.call_ns, ElementsAre(40 * kUs, 70 * kUs));
  EXPECT_EQ(conv.ns[0], 80'000 * kUs);  // of a second
}

TEST_F(SumSinkTest, OfTooManyNamesTheLastAreLeftOut) {
  for (timeline::TextId id = 100; id < 100 + kNamesMax + 5; ++id) {
    // Digits that are part of a word: else they would all be one row.
    sink_.OnText(id, "name" + std::to_string(id));
    sink_.OnSpanEnd(Span(2, id, 10, 5, 5));
  }
  ASSERT_TRUE(sink_.Finish().ok());
  EXPECT_EQ(recording_.rows.size(), kNamesMax);
  EXPECT_TRUE(recording_.names_left_out);
}

TEST(RecordingOf, HasCollectivesByTheRanksOwnClocksAndOnceAllAreIn) {
  Report report = ReportOf(14);
  timeline::Collectives& found = report.collectives.found;
  timeline::CollectiveGroup& group = found.groups.emplace_back();
  group.description = "default_pg";
  group.size = 2;
  timeline::Collective& one = found.collectives.emplace_back();
  one.name = "allreduce";
  // Rank 0 is in from 100 to 400, rank 1 from 300 to 390.
  for (const auto& [entered_us, left_us] : {std::pair{100, 400}, std::pair{300, 390}}) {
    timeline::CollectiveMember& member = one.members.emplace_back();
    member.rank = static_cast<int32_t>(one.members.size()) - 1;
    member.entered.ns = entered_us * kUs;
    member.entered_at.ns = member.entered.ns;
    member.left = NodeTime{{}, left_us * kUs};
    member.left_at = TimelineTime{left_us * kUs};
  }
  const Recording recording = RecordingOf(report, Per::kStep);
  const Sums& in = recording.rows.at({RowKind::kCollective, "default_pg", "allreduce"});
  EXPECT_EQ(in.ns[0], (300 + 90) * kUs);
  EXPECT_THAT(in.member_ns, ElementsAre(300 * kUs, 90 * kUs));
  EXPECT_EQ(recording.rows.at({RowKind::kAllIn, "default_pg", "allreduce"}).ns[0], 100 * kUs);
  EXPECT_EQ(recording.steps.front().ns.size(), 14u);
  EXPECT_EQ(recording.steps.front().ns.front(), 900 * kUs);
}

}  // namespace
}  // namespace syncline::analysis::against

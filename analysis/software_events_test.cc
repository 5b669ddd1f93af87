// SPDX-License-Identifier: Apache-2.0
#include "analysis/software_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncline::analysis {
namespace {

using evidence::SoftwareKind;
using ::testing::SizeIs;

constexpr timeline::TextId kOuter = 1;
constexpr timeline::TextId kInner = 2;

// Two threads of one process: 28, which has tasks, and 29.
evidence::CodeSamples Code() {
  evidence::CodeSamples code;
  code.processes = {{.pid = 40, .start_ticks = 7, .pid_namespace_inode = 5, .own_pid = 4}};
  code.threads = {{.process = 0, .tid = 41, .own_tid = 28},
                  {.process = 0, .tid = 42, .own_tid = 29}};
  code.software.known = true;
  code.software.kernel = true;
  code.software.watched = evidence::SoftwareWatched{1000, 1000, 30, 1000};
  return code;
}

timeline::Span Ended(timeline::TextId name, uint16_t depth, int64_t begin, int64_t end) {
  timeline::Span span;
  span.track = 9;
  span.name = name;
  span.depth = depth;
  span.node_begin.ns = begin;
  span.node_end.ns = end;
  return span;
}

SoftwareReport PlacesOf(const evidence::CodeSamples& code,
                        const std::vector<timeline::Span>& ends) {
  SoftwarePlaces places;
  places.Add({.node = 0, .code = &code, .begin_ns = 0, .end_ns = 1000});
  timeline::Track track;
  track.id = 9;
  track.kind = timeline::TrackKind::kThread;
  track.process = {0, 5, 4, 7};
  track.tid = 28;
  places.OnTrack(track);
  for (const timeline::Span& span : ends) places.OnSpanEnd(span);
  return places.Take({"", "step 12", "conv"});
}

const SoftwareTask* Find(const SoftwareReport& report, std::string_view name) {
  for (const SoftwareTask& task : report.tasks) {
    if (task.name == name) return &task;
  }
  return nullptr;
}

TEST(SoftwarePlaces, AnEventBelongsToTheInnermostTaskOfItsThread) {
  evidence::CodeSamples code = Code();
  code.software.events = {
      {0, 5, SoftwareKind::kMajorFault, 1, 0},    {0, 100, SoftwareKind::kMinorFault, 16, 0},
      {0, 199, SoftwareKind::kMinorFault, 16, 0}, {0, 150, SoftwareKind::kPreempted, 1, 40},
      {0, 200, SoftwareKind::kBlocked, 1, 60},    {1, 150, SoftwareKind::kMoved, 1, 0},
      {0, 1000, SoftwareKind::kMoved, 1, 0}};
  const SoftwareReport report =
      PlacesOf(code, {Ended(kInner, 1, 100, 200), Ended(kInner, 1, 250, 260),
                      Ended(kOuter, 0, 50, 300), Ended(kInner, 1, 1000, 1100)});
  ASSERT_THAT(report.tasks, SizeIs(4)) << "two tasks, outside of them, and the other thread";
  const SoftwareTask* const inner = Find(report, "conv");
  ASSERT_NE(inner, nullptr);
  EXPECT_EQ(report.tasks.front().name, "conv") << "most faults first";
  EXPECT_EQ(inner->calls, 2U) << "not those behind the end";
  EXPECT_EQ(inner->Of(SoftwareKind::kMinorFault).count, 32);
  EXPECT_EQ(inner->Of(SoftwareKind::kMinorFault).half_width, 64)
      << "so many may not have been noted yet";
  EXPECT_EQ(inner->Of(SoftwareKind::kPreempted).count, 1);
  EXPECT_EQ(inner->Of(SoftwareKind::kPreempted).half_width, 0) << "each one is seen";
  EXPECT_EQ(inner->Of(SoftwareKind::kPreempted).away_ns, 40);
  const SoftwareTask* const outer = Find(report, "step #");
  ASSERT_NE(outer, nullptr);
  EXPECT_EQ(outer->Of(SoftwareKind::kBlocked).away_ns, 60);
  for (const SoftwareTask& task : report.tasks) {
    if (task.where == SoftwareTask::Where::kOutside) {
      EXPECT_EQ(task.Of(SoftwareKind::kMajorFault).count, 1);
    }
    if (task.where == SoftwareTask::Where::kWithoutTasks) {
      EXPECT_EQ(task.Of(SoftwareKind::kMoved).count, 1);
    }
  }
}

TEST(SoftwarePlaces, NothingIsSaidOfTheTimeBehindWatching) {
  evidence::CodeSamples code = Code();
  code.software.watched = {250, 1000, 30, 250};
  code.software.events = {{0, 100, SoftwareKind::kMinorFault, 300, 0},
                          {0, 240, SoftwareKind::kPreempted, 1, 10},
                          {0, 260, SoftwareKind::kPreempted, 1, 10}};
  code.software.totals = {{0, 500, 0, 0, 7}};
  const SoftwareReport report = PlacesOf(
      code, {Ended(kInner, 1, 100, 200), Ended(kOuter, 0, 50, 300), Ended(kOuter, 0, 400, 500)});
  EXPECT_EQ(Find(report, "conv")->Of(SoftwareKind::kMinorFault).count, 300);
  EXPECT_EQ(Find(report, "step #")->Of(SoftwareKind::kPreempted).count, 1);
  EXPECT_EQ(Find(report, "step #")->calls, 1U);
  EXPECT_EQ(report.nodes.at(0).table_ns, 250);
  EXPECT_EQ(report.nodes.at(0).kernels.at(0), 500U);
}

TEST(SoftwarePlaces, NorOfTheTimeBehindALoss) {
  evidence::CodeSamples code = Code();
  code.software.events = {{0, 100, SoftwareKind::kBlocked, 1, 0},
                          {0, 240, SoftwareKind::kBlocked, 1, 0},
                          {0, 260, SoftwareKind::kBlocked, 1, 0},
                          {1, 270, SoftwareKind::kBlocked, 1, 0}};
  code.software.losses = {{0, 250, 8}, {0, 900, 1}};
  const SoftwareReport report =
      PlacesOf(code, {Ended(kInner, 1, 100, 200), Ended(kOuter, 0, 50, 300)});
  EXPECT_EQ(Find(report, "conv")->Of(SoftwareKind::kBlocked).count, 1);
  EXPECT_EQ(report.nodes.at(0).table_ns, 240) << "the last record before it";
  EXPECT_EQ(report.nodes.at(0).lost, 9U);
  EXPECT_EQ(Find(report, "step #")->Of(SoftwareKind::kBlocked).count, 0);
}

TEST(SoftwarePlaces, CallsOfThreadsThatWereNotWatchedDoNotCount) {
  evidence::CodeSamples code = Code();
  code.software.events = {{1, 100, SoftwareKind::kBlocked, 1, 0}};
  const SoftwareReport report = PlacesOf(code, {Ended(kInner, 1, 100, 200)});
  EXPECT_EQ(Find(report, "conv"), nullptr);
}

TEST(SoftwarePlaces, ARecordingWithoutThemSaysNothing) {
  evidence::CodeSamples code = Code();
  code.software = {};
  const SoftwareReport report = PlacesOf(code, {Ended(kInner, 1, 100, 200)});
  EXPECT_TRUE(report.nodes.empty());
  EXPECT_TRUE(report.tasks.empty());
}

}  // namespace
}  // namespace syncline::analysis

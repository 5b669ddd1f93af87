// SPDX-License-Identifier: Apache-2.0
#include "analysis/hot_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace syncline::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr timeline::TextId kOuter = 1;
constexpr timeline::TextId kInner = 2;

// Two threads of one process: 28, which has tasks, and 29.
evidence::CodeSamples Code() {
  evidence::CodeSamples code;
  code.period_ns = 10;
  code.kernel = true;
  code.ended = true;
  code.processes = {{.pid = 40, .start_ticks = 7, .pid_namespace_inode = 5, .own_pid = 4}};
  code.threads = {{.process = 0, .tid = 41, .own_tid = 28},
                  {.process = 0, .tid = 42, .own_tid = 29}};
  code.modules = {"/usr/lib/libc.so.6", evidence::kKernelModule, "/opt/libgomp-a34.so.1"};
  code.frames = {{.module = 0, .function = "memcpy", .file = "/src/copy.c", .line = 3},
                 {.module = 1, .function = "do_sched_yield"},
                 {.module = 0, .function = "__sched_yield"},
                 {.module = 2}};
  code.stacks = {{0}, {1, 2}, {3}};
  return code;
}

class HotSinkTest : public ::testing::Test {
 protected:
  HotSink Filled(evidence::CodeSamples code, const std::vector<timeline::Span>& ends,
                 int64_t end_ns = 1000) {
    HotSink sink({{.node = 0, .code = std::move(code), .begin_ns = 0, .end_ns = end_ns}});
    sink.OnText(kOuter, "step 12");
    sink.OnText(kInner, "conv");
    timeline::Track track;
    track.id = 8;
    track.kind = timeline::TrackKind::kProcess;
    track.process = {0, 5, 4, 7};
    track.name = "a · rank 0";
    sink.OnTrack(track);
    track.id = 9;
    track.kind = timeline::TrackKind::kThread;
    track.tid = 28;
    track.name = "main";
    sink.OnTrack(track);
    for (const timeline::Span& span : ends) sink.OnSpanEnd(span);
    return sink;
  }
  HotCode Run(evidence::CodeSamples code, const std::vector<timeline::Span>& ends,
              int64_t end_ns = 1000) {
    return Filled(std::move(code), ends, end_ns).Take();
  }
  // Two threads of the process have tracks, which are called by their tids, and a span each.
  static HotCode RunTwo(evidence::CodeSamples code, timeline::Span first, int32_t first_tid,
                        timeline::Span second, int32_t second_tid) {
    HotSink sink({{.node = 0, .code = std::move(code), .begin_ns = 0, .end_ns = 1000}});
    sink.OnText(kOuter, "step 12");
    sink.OnText(kInner, "conv");
    timeline::Track track;
    track.kind = timeline::TrackKind::kThread;
    track.process = {0, 5, 4, 7};
    for (const int32_t tid : {first_tid, second_tid}) {
      track.id = track.tid = tid;
      sink.OnTrack(track);
    }
    first.track = first_tid;
    sink.OnSpanEnd(first);
    second.track = second_tid;
    sink.OnSpanEnd(second);
    return sink.Take();
  }
  static timeline::Span Ended(timeline::TextId name, uint16_t depth, int64_t begin, int64_t end) {
    timeline::Span span;
    span.track = 9;
    span.name = name;
    span.depth = depth;
    span.node_begin.ns = begin;
    span.node_end.ns = end;
    return span;
  }
};

TEST_F(HotSinkTest, ASampleBelongsToTheInnermostTaskOfItsThread) {
  evidence::CodeSamples code = Code();
  code.samples = {{0, 5, 0}, {0, 100, 0}, {0, 199, 0}, {0, 200, 0}, {1, 150, 2}};
  const HotCode hot = Run(code, {Ended(kInner, 1, 100, 200), Ended(kOuter, 0, 50, 300)});
  EXPECT_EQ(hot.samples, 5U);
  ASSERT_THAT(hot.tasks, SizeIs(4));
  EXPECT_EQ(hot.tasks[0].name, "conv");
  EXPECT_EQ(hot.tasks[0].samples, 2U);
  for (const HotTask& task : hot.tasks) {
    if (task.name == "conv") continue;
    EXPECT_EQ(task.samples, 1U) << task.name;
    if (task.where == HotTask::Where::kTask) {
      EXPECT_EQ(task.name, "step #");
    }
    if (task.where == HotTask::Where::kWithoutTasks) {
      EXPECT_EQ(task.waiting_samples, 1U);
    }
  }
  EXPECT_EQ(hot.nodes.at(0).threads, 2U);
}

TEST_F(HotSinkTest, HelpersStandUnderWhatTheOneThreadWithTasksDidMeanwhile) {
  evidence::CodeSamples code = Code();
  code.samples = {{1, 120, 2}, {1, 250, 0}, {1, 400, 0}};
  // The outer one is pushed late.
  const HotCode hot = Run(code, {Ended(kInner, 1, 100, 200), Ended(kOuter, 0, 50, 300)});
  ASSERT_THAT(hot.tasks, SizeIs(1));
  EXPECT_EQ(hot.tasks[0].where, HotTask::Where::kWithoutTasks);
  EXPECT_EQ(hot.tasks[0].samples, 3U);
  ASSERT_THAT(hot.helpers, SizeIs(3));
  for (const HotTask& task : hot.helpers) {
    EXPECT_EQ(task.samples, 1U);
    EXPECT_EQ(task.waiting_samples, task.name == "conv" ? 1U : 0U);
    EXPECT_EQ(task.where, task.name.empty() ? HotTask::Where::kOutside : HotTask::Where::kTask);
  }
}

TEST_F(HotSinkTest, WhereSeveralThreadsHaveATaskNothingIsSaidOfHelpers) {
  evidence::CodeSamples code = Code();
  code.samples = {{1, 120, 0}, {1, 220, 0}};
  const HotCode hot =
      RunTwo(std::move(code), Ended(kInner, 1, 100, 200), 28, Ended(kOuter, 0, 50, 300), 30);
  ASSERT_THAT(hot.helpers, SizeIs(2));
  for (const HotTask& task : hot.helpers) {
    EXPECT_EQ(task.samples, 1U);
    EXPECT_TRUE(task.where == HotTask::Where::kOutside || task.name == "step #");
  }
}

// As those of OpenMP, where oneDNN marks its own work on them.
TEST_F(HotSinkTest, HelpersMayHaveTasksAtOtherTimes) {
  evidence::CodeSamples code = Code();
  code.samples = {{1, 120, 0}, {1, 220, 0}, {0, 120, 0}};
  const HotCode hot =
      RunTwo(std::move(code), Ended(kInner, 0, 200, 300), 29, Ended(kOuter, 0, 50, 180), 28);
  ASSERT_THAT(hot.helpers, SizeIs(1));
  EXPECT_EQ(hot.helpers[0].name, "step #");
  EXPECT_EQ(hot.helpers[0].samples, 1U);
}

TEST_F(HotSinkTest, AMainThreadWithTasksIsNoHelper) {
  evidence::CodeSamples code = Code();
  code.threads[0].own_tid = code.processes[0].own_pid;
  code.samples = {{0, 220, 0}, {1, 120, 0}};
  const HotCode hot =
      RunTwo(std::move(code), Ended(kOuter, 0, 50, 180), 4, Ended(kInner, 0, 200, 300), 29);
  ASSERT_THAT(hot.helpers, SizeIs(1)) << "of the thread 29 alone";
  EXPECT_EQ(hot.helpers[0].name, "step #");
  EXPECT_EQ(hot.helpers[0].samples, 1U);
}

TEST_F(HotSinkTest, ATaskThatIsPushedLateStillHoldsWhatIsInIt) {
  evidence::CodeSamples code = Code();
  code.samples = {{0, 100, 0}, {0, 20, 0}};
  const HotCode hot = Run(code, {Ended(kOuter, 0, 0, 300), Ended(kInner, 1, 90, 110)});
  ASSERT_THAT(hot.tasks, SizeIs(2));
  EXPECT_EQ(hot.tasks[0].samples, 1U);
  EXPECT_EQ(hot.tasks[1].samples, 1U);
}

TEST_F(HotSinkTest, StacksHaveTheOpenTasksAndThenTheFunctions) {
  evidence::CodeSamples code = Code();
  code.threads[1].name = "pool";
  code.samples = {{0, 100, 1}, {0, 20, 0}, {1, 150, 2}};
  // The outer one is pushed late.
  const SampledStacks stacks =
      Filled(code, {Ended(kInner, 1, 90, 110), Ended(kOuter, 0, 0, 300)}).TakeStacks();
  ASSERT_THAT(stacks.threads, SizeIs(2));
  const auto named = [&](size_t thread, size_t sample) {
    std::vector<std::string> names;
    for (const uint32_t frame : stacks.threads[thread].samples.at(sample)) {
      names.push_back(stacks.frames[frame].name);
    }
    return names;
  };
  EXPECT_EQ(stacks.threads[0].process, "a · rank 0");
  EXPECT_EQ(stacks.threads[0].thread, "main");
  EXPECT_EQ(stacks.threads[0].period_ns, 10);
  EXPECT_THAT(named(0, 0), ElementsAre("step #", "memcpy"));
  EXPECT_THAT(named(0, 1), ElementsAre("step #", "conv", "__sched_yield", "do_sched_yield"));
  EXPECT_EQ(stacks.threads[1].thread, "pool") << "has no track";
  EXPECT_THAT(named(1, 0), ElementsAre("[libgomp-a34.so.1]"));
  EXPECT_EQ(stacks.frames[stacks.threads[0].samples[0][1]].file, "/src/copy.c");
  EXPECT_EQ(stacks.frames[stacks.threads[0].samples[1][3]].kind, SampledFrame::Kind::kKernel);
}

TEST_F(HotSinkTest, AnInnerTaskThatIsPushedLateStandsInsideOfTheOuter) {
  evidence::CodeSamples code = Code();
  code.samples = {{0, 100, 0}};
  const SampledStacks stacks =
      Filled(code, {Ended(kOuter, 0, 0, 300), Ended(kInner, 1, 90, 110)}).TakeStacks();
  ASSERT_THAT(stacks.frames, SizeIs(3));
  EXPECT_EQ(stacks.frames[0].name, "step #");
  EXPECT_EQ(stacks.frames[1].name, "conv");
}

TEST_F(HotSinkTest, WhatTheKernelDidIsCountedForTheFunctionThatAskedForIt) {
  evidence::CodeSamples code = Code();
  code.samples = {{0, 100, 1}, {0, 110, 1}, {0, 120, 0}};
  const HotCode hot = Run(code, {Ended(kInner, 0, 0, 300)});
  ASSERT_THAT(hot.tasks, SizeIs(1));
  ASSERT_THAT(hot.tasks[0].functions, SizeIs(2));
  const HotFunction& yield = hot.tasks[0].functions[0];
  EXPECT_EQ(yield.function, "__sched_yield");
  EXPECT_EQ(yield.library, "libc.so.6");
  EXPECT_EQ(yield.kernel_samples, 2U);
  EXPECT_EQ(yield.kernel_function, "do_sched_yield");
  EXPECT_TRUE(yield.waiting);
  EXPECT_EQ(hot.tasks[0].waiting_samples, 2U);
  ASSERT_THAT(hot.tasks[0].functions[1].lines, SizeIs(1));
  EXPECT_EQ(hot.tasks[0].functions[1].lines[0].line, 3);
}

TEST_F(HotSinkTest, WhatLiesOutsideOfTheWindowDoesNotCount) {
  evidence::CodeSamples code = Code();
  code.samples = {{0, 100, 0}, {0, 250, 0}};
  code.losses = {{0, 90, 3}};
  const HotCode hot = Run(code, {}, 200);
  EXPECT_EQ(hot.samples, 1U);
  EXPECT_EQ(hot.nodes.at(0).lost, 3U);
}

TEST(ShareOf, IsWilsons) {
  const Share share = ShareOf(50, 100);
  EXPECT_NEAR(share.lo, 0.4038, 0.0005);
  EXPECT_NEAR(share.hi, 0.5962, 0.0005);
  EXPECT_EQ(ShareOf(0, 10).lo, 0);
  EXPECT_GT(ShareOf(0, 10).hi, 0.2);
  EXPECT_EQ(ShareOf(0, 0).hi, 1);
}

TEST(IsWaitingCode, ByFunctionAndLibrary) {
  EXPECT_TRUE(IsWaitingCode("sched_yield", "libc.so.6"));
  EXPECT_TRUE(IsWaitingCode("__poll", "libc.so.6"));
  EXPECT_TRUE(IsWaitingCode("", "libgomp-a34b3233.so.1"));
  EXPECT_TRUE(IsWaitingCode("void __kmp_wait_template<...>(kmp_info*)", "libx.so"));
  EXPECT_FALSE(IsWaitingCode("polling", "libc.so.6"));
  EXPECT_FALSE(IsWaitingCode("at::native::add", "libtorch_cpu.so"));
}

TEST_F(HotSinkTest, PageFaultsAndGivingMemoryBackAreToldByTheKernelsFunctions) {
  evidence::CodeSamples code = Code();
  code.frames.push_back({.module = 1, .function = "clear_page_erms"});
  code.frames.push_back({.module = 1, .function = "exc_page_fault"});
  code.frames.push_back({.module = 1, .function = "do_vmi_munmap"});
  code.stacks.push_back({4, 5, 0});
  code.stacks.push_back({4, 6, 0});
  code.samples = {{0, 100, 3}, {0, 110, 3}, {0, 120, 4}, {0, 130, 0}};
  const HotCode hot = Run(code, {Ended(kInner, 1, 100, 200)});
  ASSERT_THAT(hot.tasks, SizeIs(1));
  EXPECT_EQ(hot.tasks[0].samples, 4U);
  EXPECT_EQ(hot.tasks[0].fault_samples, 2U);
  EXPECT_EQ(hot.tasks[0].release_samples, 1U);
}

}  // namespace
}  // namespace syncline::analysis

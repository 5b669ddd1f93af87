// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace syncline::analysis::why {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr timeline::TrackId kNode = 0;
constexpr timeline::TrackId kProcess = 1;
constexpr timeline::TrackId kDriver = 2;
constexpr timeline::TrackId kOther = 3;

class CollectorTest : public ::testing::Test {
 protected:
  CollectorTest() {
    AddTrack(kNode, timeline::kNoTrack, timeline::TrackKind::kNode);
    timeline::Track process;
    process.id = kProcess;
    process.parent = kNode;
    process.kind = timeline::TrackKind::kProcess;
    process.node = 3;
    process.process = {3, 5, 10, 7};
    process.facts = {{"job", "night"}, {"rank", "1"}};
    collector_.OnTrack(process);
    AddTrack(kDriver, kProcess, timeline::TrackKind::kThread, 10);
    AddTrack(kOther, kProcess, timeline::TrackKind::kThread, 11);
  }

  void AddTrack(timeline::TrackId id, timeline::TrackId parent, timeline::TrackKind kind,
                int32_t tid = 0) {
    timeline::Track track;
    track.id = id;
    track.parent = parent;
    track.kind = kind;
    track.node = 3;
    track.tid = tid;
    collector_.OnTrack(track);
  }
  timeline::TextId Text(const std::string& text) {
    const auto [found, is_new] =
        texts_.try_emplace(text, static_cast<timeline::TextId>(texts_.size() + 1));
    if (is_new) collector_.OnText(found->second, text);
    return found->second;
  }
  // On the timeline, 1000 ns behind the node's own clock.
  timeline::Span Span(timeline::TrackId track, const std::string& name, int64_t begin_ns,
                      int64_t end_ns, const std::string& category = "PyTorch") {
    timeline::Span span;
    span.track = track;
    span.name = Text(name);
    span.category = Text(category);
    span.node_begin.ns = begin_ns;
    span.node_end.ns = end_ns;
    span.begin.ns = begin_ns - 1000;
    span.end.ns = end_ns - 1000;
    return span;
  }
  void Hole(timeline::TrackId track, int64_t begin_ns) {
    collector_.OnHole({track, {begin_ns}, {begin_ns + 5}, {}});
  }
  static std::vector<std::string> Names(const Collected& collected, const CollectedThread& thread) {
    std::vector<std::string> names;
    for (const TaskSpan& span : thread.spans) names.push_back(collected.names[span.name]);
    return names;
  }

  std::map<std::string, timeline::TextId> texts_;
  Collector collector_;
};

TEST_F(CollectorTest, TasksByBeginAndTheOuterFirstInTheirOwnClock) {
  timeline::Span inner = Span(kDriver, "aten::add", 100, 150);
  inner.depth = 2;
  collector_.OnSpanEnd(inner);
  timeline::Span same = Span(kDriver, "aten::mul", 100, 200);
  same.depth = 1;
  collector_.OnSpanEnd(same);
  collector_.OnSpanEnd(Span(kDriver, "Optimizer.step#SGD.step", 100, 200));
  timeline::Span late = Span(kDriver, "c10d::allreduce_", 50, 90);
  late.late = true;
  late.clipped_begin = true;
  collector_.OnSpanEnd(late);

  const Collected collected = collector_.Take();
  ASSERT_THAT(collected.processes, SizeIs(1));
  const CollectedProcess& process = collected.processes[0];
  EXPECT_EQ(process.node, 3u);
  EXPECT_EQ(process.key.pid, 10);
  EXPECT_THAT(process.facts, ElementsAre(Pair("job", "night"), Pair("rank", "1")));
  EXPECT_EQ(process.launches(), 1u);
  EXPECT_EQ(process.steps(), 1u);
  ASSERT_THAT(process.threads, SizeIs(1));
  EXPECT_EQ(process.threads[0].tid, 10);
  EXPECT_THAT(Names(collected, process.threads[0]),
              ElementsAre("c10d::allreduce_", "Optimizer.step#SGD.step", "aten::mul", "aten::add"));
  const std::vector<TaskSpan> spans = process.threads[0].spans.Unpack();
  EXPECT_EQ(spans[0].begin_ns, 50);
  EXPECT_FALSE(spans[0].whole);
  EXPECT_TRUE(spans[1].whole);
}

TEST_F(CollectorTest, ThreadsThatNeitherLaunchNorStepNorTransferAreDropped) {
  collector_.OnSpanEnd(Span(kOther, "aten::add", 1, 2));
  collector_.OnSpanEnd(Span(kDriver, "gloo:all_reduce", 1, 2));
  collector_.OnSpanEnd(Span(99, "c10d::allreduce_", 1, 2));  // on no thread
  const Collected collected = collector_.Take();
  ASSERT_THAT(collected.processes[0].threads, SizeIs(1));
  EXPECT_EQ(collected.processes[0].threads[0].tid, 10);
  EXPECT_EQ(collected.processes[0].launches(), 0u);
}

// One that ends by a timeout, again and again.
TEST_F(CollectorTest, AWaitIsNoCallByWhichAJobMovesOn) {
  collector_.OnSpanEnd(Span(kDriver, "c10d::allreduce_", 1, 2));
  collector_.OnSpanEnd(Span(kDriver, "Work.wait", 3, 500));
  const Collected collected = collector_.Take();
  EXPECT_EQ(collected.processes[0].calls, 1u);
  EXPECT_EQ(collected.processes[0].last_call_ns, 2);
}

TEST_F(CollectorTest, WhereThreadsStandIsNoTask) {
  collector_.OnSpanEnd(Span(kOther, "python 10: g (a.py:9)", 700, 701, "syncline"));
  collector_.OnSpanEnd(Span(kOther, "python 10: f (a.py:3)", 650, 651, "syncline"));
  timeline::Span clipped = Span(kOther, "python 10: f (a.py:3)", 800, 801, "syncline");
  clipped.clipped_begin = true;
  collector_.OnSpanEnd(clipped);
  collector_.OnSpanEnd(Span(kOther, "python 10: f (a.py:3)", 800, 801, "mine"));
  const Collected collected = collector_.Take();
  const CollectedProcess& process = collected.processes[0];
  ASSERT_THAT(process.places, SizeIs(2));
  EXPECT_EQ(process.places[0].at_ns, 650);
  EXPECT_EQ(process.places[0].tid, 10);
  EXPECT_EQ(collected.names[process.places[0].name], "python 10: f (a.py:3)");
  EXPECT_EQ(process.places[1].at_ns, 700);
  EXPECT_THAT(process.threads, IsEmpty());
}

TEST_F(CollectorTest, APrimitivesShapeIsItsArgumentsWithoutTimes) {
  const auto primitive = [&](int64_t begin_ns, const std::string& shape, double took_ms) {
    timeline::Span span =
        Span(kDriver, "convolution", begin_ns, begin_ns + 5, "dnnl::primitive::execute");
    timeline::Argument argument;
    argument.key = Text("shape");
    argument.kind = timeline::Argument::Kind::kText;
    argument.text = Text(shape);
    span.arguments.push_back(argument);
    argument = {};
    argument.key = Text("exec_time_ms");
    argument.kind = timeline::Argument::Kind::kReal;
    argument.d = took_ms;
    span.arguments.push_back(argument);
    collector_.OnSpanEnd(span);
  };
  collector_.OnSpanEnd(Span(kDriver, "c10d::allreduce_", 0, 1));
  primitive(10, "mb32ic3", 1.5);
  primitive(20, "mb32ic3", 2.5);
  primitive(30, "mb40ic3", 1.5);
  timeline::Span other = Span(kDriver, "aten::add", 40, 50);  // says its size, but is no primitive
  other.arguments.resize(1);
  collector_.OnSpanEnd(other);

  const Collected collected = collector_.Take();
  const std::vector<TaskSpan> spans = collected.processes[0].threads[0].spans.Unpack();
  ASSERT_THAT(spans, SizeIs(5));
  EXPECT_EQ(spans[0].shape, 0u);
  EXPECT_EQ(spans[1].shape, spans[2].shape);
  EXPECT_NE(spans[1].shape, spans[3].shape);
  EXPECT_EQ(collected.names[spans[1].shape], "shape=mb32ic3;");
  EXPECT_EQ(collected.names[spans[3].shape], "shape=mb40ic3;");
  EXPECT_EQ(spans[4].shape, 0u);
}

TEST_F(CollectorTest, HolesOfTheNodeAreHolesOfItsProcesses) {
  collector_.OnSpanEnd(Span(kDriver, "c10d::allreduce_", 0, 1));
  Hole(kProcess, 300);
  Hole(kNode, 200);
  Hole(kDriver, 100);
  Hole(77, 1);  // of nothing that is known
  const Collected collected = collector_.Take();
  const CollectedProcess& process = collected.processes[0];
  ASSERT_THAT(process.holes, SizeIs(2));
  EXPECT_EQ(process.holes[0].begin.ns, 200);
  EXPECT_EQ(process.holes[1].begin.ns, 300);
  ASSERT_THAT(process.threads, SizeIs(1));
  ASSERT_THAT(process.threads[0].holes, SizeIs(1));
  EXPECT_EQ(process.threads[0].holes[0].begin.ns, 100);
}

TEST_F(CollectorTest, AnInitialisedAcceleratorIsSaidOnce) {
  for (const char* name : {"accelerator initialised: cuda", "accelerator initialised: xpu",
                           "accelerator initialised: cuda"}) {
    collector_.OnSpanEnd(Span(kOther, name, 1, 2, "syncline"));
  }
  collector_.OnSpanEnd(Span(kOther, "accelerator initialised: mine", 1, 2, "train.py"));
  EXPECT_THAT(collector_.Take().processes[0].accelerators, UnorderedElementsAre("cuda", "xpu"));
}

}  // namespace
}  // namespace syncline::analysis::why

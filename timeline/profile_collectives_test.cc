// SPDX-License-Identifier: Apache-2.0
// Collectives of TensorFlow's workers, as their profiles show them.
#include "timeline/profile_collectives.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "timeline/builder.h"
#include "timeline/placement.h"
#include "timeline/testing/dump_sink.h"
#include "xspace/space.h"
#include "xspace/testing/space_builder.h"

namespace syncline::timeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kWall = 1'795'000'000'000'000'000;  // the wall clocks at timeline zero
constexpr int64_t kMillisecond = 1'000'000;

// A worker's profile, as TensorFlow 2.21 writes it.
class Worker {
 public:
  explicit Worker(int64_t first_step) : step_(first_step) {}

  // The executor reaches the collective at `at_ns`, a thread works at it until `left_ns`.
  void Collective(const std::string& name, const std::string& type, int64_t instance, int64_t at_ns,
                  int64_t left_ns, std::string_view shape = "(float[8,32];int32[])") {
    Executor("ExecutorState::Process", at_ns - 10, 100, {Number("id", step_)});
    Executor("ExecutorState::ProcessAsync::Start", at_ns, 50,
             {Text("name", name), Text("kernel_type", type), Number("step_id", step_)});
    if (!shape.empty()) Executor(name + ":" + type, at_ns + 10, 20, {Text("shape", shape)});
    Thread("CollectiveExecutor::CompleteParams", at_ns + 100, 10,
           {Number("group_key", 1), Number("group_size", 3)});
    Thread(name + ":" + type, at_ns + 200, left_ns - at_ns - 200,
           {Number("step_id", step_), Number("iter_id", 0), Number("frame_id", 0),
            Number("instance_key", instance), Number("group_key", 1), Number("collective", 0)});
  }
  void NextStep() { ++step_; }
  std::string Bytes() {
    plane_.Add(executor_);
    plane_.Add(thread_);
    return xspace::SpaceBytes(
        {plane_.Bytes(), xspace::EnvironmentPlane(kWall, kWall + 1000 * kMillisecond)});
  }

 private:
  std::string Number(const char* key, int64_t value) {
    return xspace::IntStat(plane_.StatId(key), value);
  }
  std::string Text(const char* key, std::string_view value) {
    return xspace::TextStat(plane_.StatId(key), value);
  }
  void Executor(const std::string& name, int64_t at_ns, int64_t ns,
                std::vector<std::string> stats) {
    executor_.Event(plane_.EventId(name), {at_ns, ns}, stats);
  }
  void Thread(const std::string& name, int64_t at_ns, int64_t ns, std::vector<std::string> stats) {
    thread_.Event(plane_.EventId(name), {at_ns, ns}, stats);
  }

  int64_t step_;
  xspace::PlaneBuilder plane_{"/host:CPU"};
  xspace::LineBuilder executor_{"tf_Compute/1", 0};
  xspace::LineBuilder thread_{"collective_ops/2", 0};
};

struct Member {
  std::string task;
  std::string bytes;
};

struct Built {
  Collectives found;
  std::string text;
  std::vector<std::string> breaches;
};

// Each on a node of its own.
Built Build(const std::vector<Member>& members) {
  std::vector<std::unique_ptr<xspace::Space>> spaces;
  std::vector<std::unique_ptr<Placement>> placements;
  std::vector<std::unique_ptr<WallPlacement>> walls;
  std::vector<NodeInput> nodes;
  for (uint32_t i = 0; i < members.size(); ++i) {
    const std::string& bytes = members[i].bytes;
    spaces.push_back(
        xspace::Space::Of({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "a.pb"));
    placements.push_back(ShiftPlacement({i, ClockKind::kMonotonic}, 0));
    walls.push_back(std::make_unique<WallPlacement>(nullptr, placements.back().get(), kWall));
    ProfileInput profile;
    profile.process.pid = 7;
    profile.task = members[i].task;
    profile.covered = {kWall, kWall + 1000 * kMillisecond};
    profile.reader = spaces.back().get();
    NodeInput& node = nodes.emplace_back();
    node.name = "node-" + std::to_string(i);
    node.placement = placements.back().get();
    node.wall = walls.back().get();
    node.profiles.push_back(profile);
  }
  testing::DumpSink sink;
  TimelineSink* const sinks[] = {&sink};
  auto result = BuildTimeline(nodes, {.window = Interval{{0}, {1000 * kMillisecond}}}, sinks);
  EXPECT_TRUE(result.ok()) << result.status();
  return {std::move(result->collectives), sink.text(), sink.breaches()};
}

std::string Task(int number) { return "/job:worker/replica:0/task:" + std::to_string(number); }

TEST(ProfileCollectivesTest, WorkersMeetByTheirKeysThoughTheirStepsHaveOtherIds) {
  Worker one(100), other(-7);
  one.Collective("CollectiveReduceV2", "CollectiveReduceV2", 536, 1000, 9000);
  one.Collective("g/CollectiveGatherV2_1", "CollectiveGatherV2", 537, 10'000, 12'000);
  one.NextStep();
  one.Collective("CollectiveReduceV2", "CollectiveReduceV2", 538, 20'000, 25'000);
  other.Collective("CollectiveReduceV2", "CollectiveReduceV2", 536, 8000, 9500);
  other.Collective("g/CollectiveGatherV2_1", "CollectiveGatherV2", 537, 9900, 12'500);
  // Given in no order: ranks are by the tasks' numbers.
  const Built built = Build({{Task(10), other.Bytes()}, {Task(2), one.Bytes()}});
  EXPECT_THAT(built.breaches, IsEmpty());
  EXPECT_EQ(built.found.undecided.size(), 0u);
  ASSERT_THAT(built.found.groups, SizeIs(1));
  EXPECT_EQ(built.found.groups[0].name, "1");
  EXPECT_EQ(built.found.groups[0].ranks, "2,10");
  EXPECT_EQ(built.found.groups[0].size, 3u);  // as they say: one is not here
  ASSERT_THAT(built.found.collectives, SizeIs(3));
  const Collective& first = built.found.collectives[0];
  EXPECT_EQ(first.number, 536u);
  EXPECT_EQ(first.name, "allreduce");
  EXPECT_EQ(first.bytes, 8u * 32 * 4);
  EXPECT_FALSE(first.may_be_empty);
  ASSERT_THAT(first.members, SizeIs(2));
  EXPECT_EQ(first.members[0].node, 1u);
  EXPECT_EQ(first.members[0].entered_at.ns, 1000);  // reached, not: worked at
  EXPECT_EQ(first.members[0].left_at->ns, 9000);
  EXPECT_EQ(first.members[1].entered_at.ns, 8000);
  EXPECT_EQ(first.members[1].entered.ns, kWall + 8000);
  EXPECT_EQ(built.found.collectives[1].name, "allgather");
  EXPECT_THAT(built.found.collectives[2].members, SizeIs(1));  // the other's profile ended
  EXPECT_THAT(built.text, HasSubstr("TensorFlow group 1"));
}

TEST(ProfileCollectivesTest, WithoutAnInputNobodyIsSaidToWait) {
  Worker one(1), other(1);
  one.Collective("r", "CollectiveReduceV2", 5, 1000, 9000, "");
  other.Collective("r", "CollectiveReduceV2", 5, 1000, 9000, "(float[0];int32[])");
  const Built built = Build({{Task(0), one.Bytes()}, {Task(1), other.Bytes()}});
  ASSERT_THAT(built.found.collectives, SizeIs(1));
  EXPECT_TRUE(built.found.collectives[0].may_be_empty);
}

TEST(ProfileCollectivesTest, AKeyThatIsUsedAgainNeedsStepsThatAgree) {
  Worker one(1), other(1), third(1), fourth(9);
  for (int step = 0; step < 3; ++step) {
    const int64_t at_ns = 1000 + step * 10'000;
    for (Worker* worker : {&one, &other, &third, &fourth}) {
      worker->Collective("r", "CollectiveReduce", 5, at_ns, at_ns + 5000);
      worker->NextStep();
    }
  }
  const Built agree = Build({{Task(0), one.Bytes()}, {Task(1), other.Bytes()}});
  EXPECT_EQ(agree.found.undecided.size(), 0u);
  ASSERT_THAT(agree.found.collectives, SizeIs(3));
  for (const Collective& collective : agree.found.collectives) {
    EXPECT_THAT(collective.members, SizeIs(2));
  }
  const Built apart = Build({{Task(0), third.Bytes()}, {Task(1), fourth.Bytes()}});
  EXPECT_EQ(apart.found.undecided.size(), 6u);
  EXPECT_THAT(apart.found.collectives, IsEmpty());
}

TEST(ProfileCollectivesTest, OfTwoJobsInOneNobodyKnowsWhoIsWho) {
  Worker one(1), other(1);
  one.Collective("r", "CollectiveReduceV2", 5, 1000, 9000);
  other.Collective("r", "CollectiveReduceV2", 5, 1000, 9000);
  const Built built = Build({{Task(0), one.Bytes()}, {Task(0), other.Bytes()}});
  EXPECT_EQ(built.found.undecided.size(), 2u);
  EXPECT_THAT(built.found.collectives, IsEmpty());
}

TEST(ProfileCollectivesTest, WhatWasReachedBeforeTheProfileHasNoEntry) {
  ProfileCollectives matcher;
  const uint32_t process = matcher.AddProcess(0, "", Task(0));
  const auto at = [](int64_t ns) { return Moment{{{0, ClockKind::kRealtime}, ns}, {ns}}; };
  matcher.OnWork(process, "r", "allreduce", {1, 1, 5, at(10), at(20)});
  // A loop's reaches cannot be told apart: the works' own begins stand for them.
  matcher.OnLaunch(process, 2, "loop", at(30));
  matcher.OnLaunch(process, 2, "loop", at(31));
  matcher.OnWork(process, "loop", "allreduce", {2, 1, 6, at(40), at(50)});
  matcher.OnWork(process, "loop", "allreduce", {2, 1, 7, at(60), at(70)});
  Collectives found;
  matcher.Match(&found);
  std::vector<int64_t> entered;
  for (const Collective& collective : found.collectives) {
    for (const auto& member : collective.members) entered.push_back(member.entered_at.ns);
  }
  EXPECT_THAT(entered, ElementsAre(40, 60));
}

TEST(ProfileCollectivesTest, TypesAndShapesAreRead) {
  EXPECT_EQ(CollectiveOfType("CollectiveReduce"), "allreduce");
  EXPECT_EQ(CollectiveOfType("CollectiveReduceV3"), "allreduce");
  EXPECT_EQ(CollectiveOfType("CollectiveReduceScatterV2"), "reduce_scatter");
  EXPECT_EQ(CollectiveOfType("CollectiveBcastRecvV2"), "broadcast");
  EXPECT_EQ(CollectiveOfType("CollectiveInitializeCommunicator"), "");
  EXPECT_EQ(CollectiveOfType("Collective"), "");
  EXPECT_EQ(CollectiveOfType("MatMul"), "");
  EXPECT_EQ(BytesOfShape("(double[])"), 8u);
  EXPECT_EQ(BytesOfShape("(bfloat16[2,3])"), 12u);
  for (const char* unknown : {"", "()", "(float[", "(float]3[", "(string[3])", "(float[?,3])",
                              "(double[9999999999,9999999999])"}) {
    EXPECT_EQ(BytesOfShape(unknown), std::nullopt) << unknown;
  }
}

}  // namespace
}  // namespace syncline::timeline

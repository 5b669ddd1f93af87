// SPDX-License-Identifier: Apache-2.0
#include "coordinator/stacks/without_group.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::stacks {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr int64_t kS = 1'000'000'000;

void SetInfo(int32_t rank, v1::ProcessInfo* info) {
  info->set_pid(100 + rank);
  info->set_own_pid(100 + rank);
  info->set_rank(rank);
  info->set_world_size(3);
  info->set_job("night");
  info->set_has_control_block(true);
  info->set_started_monotonic_ns(10 * kS + rank);
}

// It waits for the others where the first group is made.
v1::ProcessStacks Waiting(int32_t rank) {
  v1::ProcessStacks stacks;
  SetInfo(rank, stacks.mutable_process());
  stacks.set_source(v1::ProcessStacks::HOOK);
  stacks.set_answered_twice(true);
  v1::PythonThreads& main = *stacks.add_threads();
  main.set_main(true);
  for (const auto& [function, file] :
       {std::pair("init_process_group", "/site-packages/torch/distributed/distributed_c10d.py"),
        std::pair("main", "/job/train.py")}) {
    main.add_frames()->set_function(function);
    main.mutable_frames(main.frames_size() - 1)->set_file(file);
  }
  return stacks;
}

std::vector<NodeLook> Looks(const std::vector<v1::EndedProcess>& ended) {
  v1::StacksResponse response;
  response.set_answered_monotonic_ns(100 * kS);
  *response.add_processes() = Waiting(0);
  *response.add_processes() = Waiting(2);
  for (const v1::EndedProcess& one : ended) *response.add_ended() = one;
  return {{"a", std::move(response), 0, 2 * kS}};
}

v1::EndedProcess Ended(int32_t rank, uint32_t exit_code) {
  v1::EndedProcess ended;
  SetInfo(rank, ended.mutable_process());
  ended.set_alive_monotonic_ns(60 * kS);
  ended.set_ended_monotonic_ns(60 * kS);
  ended.set_ending(v1::EndedProcess::IN_ORDER);
  ended.set_status_known(true);
  ended.set_exit_code(exit_code);
  return ended;
}

TEST(WithoutGroup, ARankThatEndedBeforeTheGroupWasMade) {
  const auto looks = Looks({Ended(1, 3)});
  const auto verdicts = JudgeWithoutGroups(looks);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].kind, GroupKind::kDead);
  EXPECT_EQ(verdicts[0].name, "");
  EXPECT_EQ(verdicts[0].size, 3u);
  EXPECT_EQ(verdicts[0].sentence,
            "rank 1 (node a, pid 101) has ended, with exit code 3, 40.000 s before the look. No "
            "rank that answered has a process group yet, and rank 0 waits for the others where one "
            "is made. Rank 0's main thread stood in main (train.py) at both looks.");
}

TEST(WithoutGroup, ARankThatIsNowhereIsMissing) {
  const auto looks = Looks({});
  const auto verdicts = JudgeWithoutGroups(looks);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].kind, GroupKind::kMissing);
  EXPECT_THAT(verdicts[0].absent.nowhere, ElementsAre(1));
  EXPECT_THAT(verdicts[0].sentence,
              StartsWith("rank 1: no process of it is known on any node that answered"));
}

// One that ended in good order may be none that the others wait for.
TEST(WithoutGroup, ThatARankEndedWellDecidesNothing) {
  const auto looks = Looks({Ended(1, 0)});
  EXPECT_EQ(JudgeWithoutGroups(looks)[0].kind, GroupKind::kUndecided);
}

TEST(WithoutGroup, NothingIsSaidOfProgramsThatMakeNone) {
  auto looks = Looks({});
  for (v1::ProcessStacks& process : *looks[0].answer->mutable_processes()) process.clear_threads();
  EXPECT_THAT(JudgeWithoutGroups(looks), IsEmpty());
  looks = Looks({});
  looks[0].answer->mutable_processes(1)->mutable_process()->set_world_size(4);
  EXPECT_THAT(JudgeWithoutGroups(looks), IsEmpty());
  looks = Looks({});
  looks[0].answer->mutable_processes(1)->add_groups();
  EXPECT_THAT(JudgeWithoutGroups(looks), IsEmpty());
}

}  // namespace
}  // namespace syncline::stacks

// SPDX-License-Identifier: Apache-2.0
#include "coordinator/stacks/absent.h"

#include "coordinator/stacks/testing/group.h"
#include "coordinator/stacks/verdict.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::stacks {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr int64_t kS = 1'000'000'000;
constexpr int64_t kAnsweredNs = 9'000 * kS;

void SetInfo(int32_t rank, int64_t age_ns, v1::ProcessInfo* info) {
  info->set_pid(100 + rank);
  info->set_own_pid(100 + rank);
  info->set_rank(rank);
  info->set_job("night");
  info->set_has_control_block(true);
  info->set_start_ticks(static_cast<uint64_t>((kAnsweredNs - age_ns) / (kS / 100)));
  info->set_started_monotonic_ns(kAnsweredNs - age_ns);
}

// A member of the group of three, which waits in all_reduce #42.
v1::ProcessStacks Waiting(int32_t rank, int64_t age_ns = 100 * kS, bool pending = true) {
  v1::ProcessStacks stacks;
  SetInfo(rank, age_ns, stacks.mutable_process());
  stacks.set_source(v1::ProcessStacks::HOOK);
  stacks.set_answered_twice(true);
  v1::PythonThreads& main = *stacks.add_threads();
  main.set_main(true);
  v1::StackFrame& frame = *main.add_frames();
  frame.set_function("backward");
  frame.set_file("/job/train.py");
  frame.set_line_number(54);
  AddGroup("0-2", rank, 42, pending, &stacks);
  return stacks;
}

v1::EndedProcess Ended(int32_t rank, int64_t age_ns = 100 * kS) {
  v1::EndedProcess ended;
  SetInfo(rank, age_ns, ended.mutable_process());
  ended.set_alive_monotonic_ns(kAnsweredNs - 42 * kS - kS / 4);
  ended.set_ended_monotonic_ns(kAnsweredNs - 42 * kS);
  ended.set_ending(v1::EndedProcess::ABRUPT);
  return ended;
}

NodeLook Node(const std::string& name, const std::vector<v1::ProcessStacks>& processes,
              const std::vector<v1::EndedProcess>& ended = {}) {
  v1::StacksResponse response;
  response.set_asked_monotonic_ns(kAnsweredNs - 2 * kS);
  response.set_first_look_end_monotonic_ns(kAnsweredNs - 19 * kS / 10);
  response.set_second_look_begin_monotonic_ns(kAnsweredNs - kS / 10);
  response.set_answered_monotonic_ns(kAnsweredNs);
  for (const v1::ProcessStacks& one : processes) *response.add_processes() = one;
  for (const v1::EndedProcess& one : ended) *response.add_ended() = one;
  return {name, std::move(response), 0, 2 * kS};
}

std::vector<NodeLook> With(const v1::EndedProcess& ended) {
  return {Node("a", {Waiting(0), Waiting(2)}), Node("b", {}, {ended})};
}

TEST(Absent, ARankThatWasKilledIsNamedWithThoseWhoWait) {
  v1::EndedProcess ended = Ended(1);
  ended.set_status_known(true);
  ended.set_signal_number(9);
  const auto looks = With(ended);
  const auto verdicts = Judge(looks);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].kind, GroupKind::kDead);
  EXPECT_EQ(verdicts[0].sentence,
            "rank 1 (node b, pid 101) has ended, killed by signal 9 (SIGKILL), 42.000 s before the "
            "look. All that answered (ranks 0, 2) have entered all_reduce #42, and it is over on "
            "none. Rank 0's main thread stood in backward (train.py:54) at both looks. Which "
            "collective rank 1 entered last is not known.");
  ASSERT_EQ(verdicts[0].absent.known.size(), 1u);
  EXPECT_EQ(verdicts[0].absent.known[0].state, AbsentState::kEnded);
  EXPECT_THAT(verdicts[0].absent.nowhere, IsEmpty());
}

TEST(Absent, HowItEndedIsSaidAsFarAsItIsKnown) {
  v1::EndedProcess ended = Ended(1);
  EXPECT_THAT(Judge(With(ended))[0].sentence, HasSubstr("has ended, by a signal or _exit"));
  ended.set_ending(v1::EndedProcess::IN_ORDER);
  EXPECT_THAT(Judge(With(ended))[0].sentence,
              HasSubstr("after its exit handlers ran, with an exit code that is not known"));
  ended.set_status_known(true);
  EXPECT_THAT(Judge(With(ended))[0].sentence, HasSubstr("has ended, with exit code 0"));
  ended.set_status_known(false);
  ended.set_ending(v1::EndedProcess::ENDING_UNSPECIFIED);
  EXPECT_THAT(Judge(With(ended))[0].sentence, HasSubstr("how is not known"));
}

TEST(Absent, WhenItEndedIsSaidAsFarAsItIsKnown) {
  v1::EndedProcess ended = Ended(1);
  ended.set_alive_monotonic_ns(kAnsweredNs - 90 * kS);
  EXPECT_THAT(Judge(With(ended))[0].sentence,
              HasSubstr("between 90.000 s and 42.000 s before the look"));
  ended.mutable_process()->set_pid(0);  // over before its agent looked
  EXPECT_THAT(Judge(With(ended))[0].sentence,
              AllOf(HasSubstr("pid 101"), HasSubstr("at most 90.000 s before the look")));
}

TEST(Absent, ItsLastCollectiveIsWhatAnEarlierLookSaw) {
  v1::EndedProcess ended = Ended(1);
  *ended.add_groups() = Waiting(1).groups(0);
  ended.mutable_groups(0)->set_collective_number(41);
  ended.set_groups_monotonic_ns(kAnsweredNs - 60 * kS);
  const auto looks = With(ended);
  EXPECT_THAT(Judge(looks)[0].sentence,
              AllOf(HasSubstr("the last collective that it was seen to have entered: all_reduce "
                              "#41, 60.000 s before the look"),
                    Not(HasSubstr("entered last is not known"))));
  EXPECT_EQ(Judge(looks)[0].absent.known[0].last_number, 41);
}

TEST(Absent, WithoutAProcessAnywhereNobodyIsSaidToBeDead) {
  std::vector<NodeLook> looks = {Node("a", {Waiting(0), Waiting(2)})};
  GroupVerdict verdict = Judge(looks)[0];
  EXPECT_EQ(verdict.kind, GroupKind::kMissing);
  EXPECT_THAT(
      verdict.sentence,
      StartsWith(
          "rank 1: no process of it is known on any node that answered. All that answered (ranks "
          "0, 2) have entered all_reduce #42"));
  EXPECT_THAT(verdict.absent.nowhere, ElementsAre(1));
  v1::ProcessStacks& other = *looks[0].answer->add_processes();
  other.set_source(v1::ProcessStacks::KERNEL);
  EXPECT_THAT(Judge(looks)[0].sentence,
              HasSubstr(", where 1 training program was not started under `syncline run`"));
  looks[0].answer->mutable_processes()->RemoveLast();
  looks.push_back({"b", absl::UnavailableError("no answer")});
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kMissing);
  EXPECT_THAT(Judge(looks)[0].sentence, StartsWith("rank 1: no process of it is known on any node "
                                                   "that answered, and node b did not answer"));
}

TEST(Absent, TheOnlyOneThatAnsweredIsNotAll) {
  const std::vector<NodeLook> looks = {Node("a", {Waiting(0)})};
  EXPECT_THAT(Judge(looks)[0].sentence,
              HasSubstr("Rank 0, the only one that answered, has entered all_reduce #42, and it is "
                        "not over there"));
}

TEST(Absent, AStoppedRankIsStoppedAndNotDead) {
  v1::ProcessStacks stopped;
  SetInfo(1, 100 * kS, stopped.mutable_process());
  stopped.mutable_process()->set_stopped(true);
  stopped.set_absence("it is stopped");
  const std::vector<NodeLook> looks = {Node("a", {Waiting(0), Waiting(2), stopped})};
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kStopped);
  EXPECT_THAT(Judge(looks)[0].sentence,
              AllOf(StartsWith("rank 1 (node a, pid 101) is stopped"), HasSubstr("kill -CONT"),
                    HasSubstr("#42, and it is over on none")));
}

TEST(Absent, AProcessOfAnEarlierStartOfTheJobIsNotTheRank) {
  // It had ended before the others began.
  v1::EndedProcess ended = Ended(1, 70 * kS);
  const auto judge = [&](int64_t age_ns) {
    const std::vector<NodeLook> looks = {Node("a", {Waiting(0, age_ns), Waiting(2, age_ns)}),
                                         Node("b", {}, {ended})};
    return Judge(looks)[0];
  };
  EXPECT_EQ(judge(30 * kS).kind, GroupKind::kMissing);
  EXPECT_THAT(judge(30 * kS).sentence, Not(HasSubstr("ended")));
  EXPECT_EQ(judge(50 * kS).kind, GroupKind::kDead);
  // Nobody knows when it ended, and it began long before them.
  ended = Ended(1, 3'000 * kS);
  ended.set_alive_monotonic_ns(kAnsweredNs - 3'000 * kS);
  ended.set_ended_monotonic_ns(kAnsweredNs);
  EXPECT_EQ(judge(1'000 * kS).kind, GroupKind::kMissing);
  EXPECT_THAT(judge(1'000 * kS).sentence,
              HasSubstr("a process that was rank 1 (node b, pid 101) of a job of this name has "
                        "ended, but may be of an earlier start"));
  // With them it began.
  EXPECT_EQ(judge(2'990 * kS).kind, GroupKind::kDead);
}

TEST(Absent, AChildThatOutlivesItsRankIsNotTheRank) {
  v1::ProcessStacks child;
  SetInfo(1, 80 * kS, child.mutable_process());
  child.mutable_process()->set_pid(777);
  child.set_source(v1::ProcessStacks::HOOK);
  std::vector<NodeLook> looks = With(Ended(1));
  *looks[1].answer->add_processes() = child;
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kDead);
  EXPECT_THAT(Judge(looks)[0].sentence,
              HasSubstr("process 777 there has its number, and began later"));
  // One that is silent may be the rank itself: it is stopped, or does not answer.
  looks[1].answer->mutable_processes(0)->clear_source();
  looks[1].answer->mutable_processes(0)->mutable_process()->set_stopped(true);
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kStopped);
  EXPECT_THAT(Judge(looks)[0].sentence, HasSubstr("rank 1 (node b, pid 777) is stopped"));
  // Unless an earlier look saw the other one in the group.
  *looks[1].answer->mutable_ended(0)->add_groups() = Waiting(1).groups(0);
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kDead);
  looks[1].answer->mutable_ended(0)->clear_groups();
  looks[1].answer->mutable_processes(0)->mutable_process()->set_stopped(false);
  // A rank that lives is not dead because an earlier one is.
  looks[1].answer->mutable_processes(0)->mutable_process()->set_start_ticks(1);
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kUndecided);
}

TEST(Absent, OneThatEndsWhileItIsLookedAtIsNoMember) {
  v1::ProcessStacks once = Waiting(1);
  once.set_answered_twice(false);
  const std::vector<NodeLook> looks = {Node("a", {Waiting(0), Waiting(2), once}, {Ended(1)})};
  const GroupVerdict verdict = Judge(looks)[0];
  EXPECT_EQ(verdict.kind, GroupKind::kDead);
  EXPECT_EQ(verdict.members.size(), 2u);
}

TEST(Absent, RanksOfOtherJobsAndUsersAreNone) {
  v1::EndedProcess ended = Ended(1);
  ended.mutable_process()->set_job("day");
  EXPECT_EQ(Judge(With(ended))[0].kind, GroupKind::kMissing);
  ended = Ended(1);
  ended.mutable_process()->set_uid(1001);
  EXPECT_EQ(Judge(With(ended))[0].kind, GroupKind::kMissing);
  ended = Ended(1);
  ended.mutable_process()->set_part("loader worker");
  EXPECT_EQ(Judge(With(ended))[0].kind, GroupKind::kMissing);
}

// Gloo tells the others, whose program may catch that: no collective is left that they wait in.
TEST(Absent, WhenNobodyWaitsTheRankIsDeadAllTheSame) {
  std::vector<NodeLook> looks = {Node("a", {Waiting(0, 100 * kS, false)}, {Ended(1), Ended(2)})};
  const GroupVerdict verdict = Judge(looks)[0];
  EXPECT_EQ(verdict.kind, GroupKind::kDead);
  EXPECT_THAT(verdict.sentence, AllOf(HasSubstr("rank 1 (node a, pid 101) has ended"),
                                      HasSubstr("; rank 2 (node a, pid 102) has ended"),
                                      HasSubstr("and does not wait in it")));
}

// A rank that has done its part and ended in order, while the others evaluate, alarms nobody.
TEST(Absent, WhoEndedInOrderIsNotDeadWhereNobodyWaits) {
  v1::EndedProcess ended = Ended(1);
  ended.set_ending(v1::EndedProcess::IN_ORDER);
  const auto judge = [&](bool pending) {
    return Judge(
        {Node("a", {Waiting(0, 100 * kS, pending), Waiting(2, 100 * kS, pending)}, {ended})})[0];
  };
  EXPECT_EQ(judge(true).kind, GroupKind::kDead) << "they wait for it";
  EXPECT_EQ(judge(false).kind, GroupKind::kIdle);
  EXPECT_THAT(judge(false).sentence, StartsWith("rank 1 (node a, pid 101) has ended, after its"));
}

}  // namespace
}  // namespace syncline::stacks

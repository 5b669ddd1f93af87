// SPDX-License-Identifier: Apache-2.0
#include "coordinator/stacks/verdict.h"

#include "coordinator/stacks/testing/group.h"
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

constexpr int64_t kMs = 1'000'000;

struct Rank {
  int32_t rank;
  int64_t number;
  bool pending = true;
  std::string collective = "all_reduce";
};

v1::ProcessStacks Process(const Rank& rank, const std::string& ranks) {
  v1::ProcessStacks stacks;
  stacks.mutable_process()->set_pid(100 + rank.rank);
  stacks.mutable_process()->set_rank(rank.rank);
  stacks.mutable_process()->set_job("night");
  stacks.mutable_process()->set_has_control_block(true);
  stacks.set_source(v1::ProcessStacks::HOOK);
  stacks.set_answered_twice(true);
  v1::PythonThreads& main = *stacks.add_threads();
  main.set_main(true);
  main.set_count(1);
  main.add_frames()->set_function("wait");
  main.mutable_frames(0)->set_file("/usr/lib/python3.11/threading.py");
  v1::StackFrame& frame = *main.add_frames();
  frame.set_function("load_batch");
  frame.set_file("/job/train.py");
  frame.set_line_number(23);
  v1::ProcessGroupState& group = AddGroup(ranks, rank.rank, rank.number, rank.pending, &stacks);
  group.set_sequence_number(rank.number + 5);  // transfers
  group.set_first_look_sequence_number(rank.number + 5);
  group.set_collective(rank.collective);
  return stacks;
}

// Asked at 0 s, looked from 0.05 s to 2 s of its own time, answered at 2.1 s of the caller's.
NodeLook Node(const std::string& name, std::vector<v1::ProcessStacks> processes) {
  v1::StacksResponse response;
  response.set_asked_monotonic_ns(7'000 * kMs);
  response.set_first_look_end_monotonic_ns(7'050 * kMs);
  response.set_second_look_begin_monotonic_ns(9'000 * kMs);
  response.set_answered_monotonic_ns(9'050 * kMs);
  for (v1::ProcessStacks& process : processes) *response.add_processes() = std::move(process);
  return {name, std::move(response), 0, 2'100 * kMs};
}

void SetBackend(const std::string& backend, std::vector<NodeLook>* looks) {
  for (NodeLook& look : *looks) {
    look.answer->mutable_processes(0)->mutable_groups(0)->set_backend(backend);
  }
}

std::vector<NodeLook> Nodes(const std::vector<Rank>& ranks, const std::string& all) {
  std::vector<NodeLook> looks;
  for (const Rank& rank : ranks) {
    looks.push_back(Node("node-" + std::to_string(rank.rank), {Process(rank, all)}));
  }
  return looks;
}

TEST(Verdict, TheRankWithTheLowerNumberIsBehind) {
  const auto looks = Nodes({{0, 42}, {1, 41, false}}, "0-1");
  const auto verdicts = Judge(looks);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].kind, GroupKind::kBehind);
  EXPECT_THAT(verdicts[0].behind, ElementsAre(1));
  EXPECT_EQ(verdicts[0].sentence,
            "rank 1 (node node-1, pid 101) has not entered all_reduce #42, which rank 0 has "
            "entered, and which is not over there; its last: #41. Rank 1's main thread stood in "
            "load_batch (train.py:23) at both looks.");
}

TEST(Verdict, ARankThatNeverEnteredAny) {
  auto looks = Nodes({{0, 1}, {1, -1, false}}, "0-1");
  v1::ProcessGroupState& group = *looks[1].answer->mutable_processes(0)->mutable_groups(0);
  group.set_sequence_number(0);
  group.set_first_look_sequence_number(0);
  const auto verdicts = Judge(looks);
  EXPECT_EQ(verdicts[0].kind, GroupKind::kBehind);
  EXPECT_THAT(verdicts[0].sentence, HasSubstr("its last: none so far"));
}

TEST(Verdict, EqualNumbersNameNobody) {
  const auto waiting = Nodes({{0, 42}, {1, 42}}, "0-1");
  EXPECT_EQ(Judge(waiting)[0].kind, GroupKind::kWaiting);
  EXPECT_THAT(Judge(waiting)[0].sentence, HasSubstr("nobody is behind"));
  EXPECT_THAT(Judge(waiting)[0].behind, IsEmpty());
  const auto idle = Nodes({{0, 42, false}, {1, 42, false}}, "0-1");
  EXPECT_EQ(Judge(idle)[0].kind, GroupKind::kIdle);
}

TEST(Verdict, DifferentCollectivesUnderOneNumber) {
  const auto looks = Nodes({{0, 42}, {1, 42, true, "broadcast"}}, "0-1");
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kMismatch);
  EXPECT_THAT(Judge(looks)[0].sentence,
              AllOf(HasSubstr("rank 0: all_reduce"), HasSubstr("rank 1: broadcast")));
}

TEST(Verdict, WhatMovesIsNotStuck) {
  auto looks = Nodes({{0, 42}, {1, 41, false}}, "0-1");
  looks[1].answer->mutable_processes(0)->mutable_groups(0)->set_first_look_collective_number(40);
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kMoves);
  EXPECT_THAT(Judge(looks)[0].behind, IsEmpty());
}

TEST(Verdict, NothingIsSaidOfLooksThatShareNoInstant) {
  auto looks = Nodes({{0, 42}, {1, 41, false}}, "0-1");
  looks[1].asked_ns += 2'000 * kMs;
  looks[1].answered_ns += 2'000 * kMs;
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kUndecided);
  EXPECT_THAT(Judge(looks)[0].sentence, HasSubstr("at the same time"));
  looks[1].asked_ns -= 200 * kMs;  // they overlap
  looks[1].answered_ns -= 200 * kMs;
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kBehind);
}

TEST(Verdict, GloosOwnCounterIsNotBelieved) {
  auto looks = Nodes({{0, 42}, {1, 41, false}}, "0-1");
  for (NodeLook& look : looks) {
    v1::ProcessGroupState& group = *look.answer->mutable_processes(0)->mutable_groups(0);
    group.set_collective_number(-1);
    group.set_first_look_collective_number(-1);
  }
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kUndecided);
  SetBackend("nccl", &looks);
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kBehind);
}

TEST(Verdict, ARankThatDoesNotAnswerIsNamedWithItsReason) {
  auto looks = Nodes({{0, 42}, {1, 42}}, "0-2");
  v1::ProcessStacks& silent = *looks[1].answer->add_processes();
  silent.mutable_process()->set_pid(55);
  silent.mutable_process()->set_rank(2);
  silent.mutable_process()->set_job("night");
  silent.mutable_process()->set_has_control_block(true);
  silent.set_absence("it did not answer within 1.5 s");
  const auto verdicts = Judge(looks);
  EXPECT_EQ(verdicts[0].kind, GroupKind::kUndecided);
  EXPECT_THAT(verdicts[0].unknown, ElementsAre(2));
  EXPECT_THAT(verdicts[0].sentence,
              AllOf(StartsWith("all that answered (ranks 0, 1) have entered all_reduce #42"),
                    HasSubstr("rank 2 (node node-1, pid 55): it did not answer")));
  // Who is behind is so whatever the others do.
  auto behind = Nodes({{0, 42}, {1, 41, false}}, "0-2");
  behind.push_back({"node-2", absl::UnavailableError("nobody listens")});
  EXPECT_EQ(Judge(behind)[0].kind, GroupKind::kBehind);
  EXPECT_THAT(
      Judge(behind)[0].sentence,
      HasSubstr(
          "Rank 2: no process of it is known on any node that answered, and node node-2 did not"));
}

TEST(Verdict, JobsThatCannotBeToldApartAndSuchThatCan) {
  auto looks = Nodes({{0, 42}, {0, 41, false}}, "0-1");
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kUndecided);
  EXPECT_THAT(Judge(looks)[0].sentence, HasSubstr("SYNCLINE_JOB"));
  looks[1].answer->mutable_processes(0)->mutable_process()->set_job("day");
  EXPECT_EQ(Judge(looks).size(), 2u);
}

TEST(Verdict, ThatOneOfTwoJobsMovesSaysNothingOfTheOther) {
  auto looks = Nodes({{0, 42}, {0, 41, false}}, "0-1");
  looks[1].answer->mutable_processes(0)->mutable_groups(0)->set_first_look_collective_number(40);
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kUndecided);
  EXPECT_THAT(Judge(looks)[0].sentence, HasSubstr("SYNCLINE_JOB"));
}

TEST(Verdict, NobodySpeaksForAnotherUsersJob) {
  auto looks = Nodes({{0, 42}, {1, 41, false}, {1, 42}}, "0-1");
  looks[2].answer->mutable_processes(0)->mutable_process()->set_uid(1001);
  const auto verdicts = Judge(looks);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].kind, GroupKind::kBehind);
  EXPECT_THAT(verdicts[0].behind, ElementsAre(1));
  EXPECT_EQ(verdicts[1].kind, GroupKind::kMissing);
  EXPECT_THAT(verdicts[1].sentence,
              HasSubstr("rank 0: no process of it is known on any node that answered"));
}

// Gloo's record has nothing of what the group does with its other backend.
TEST(Verdict, AGroupWithTwoBackendsIsNotJudgedByOneOfThem) {
  auto looks = Nodes({{0, 2, false}, {1, 2, false}}, "0-1");
  SetBackend("cpu:gloo,cuda:nccl", &looks);
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kUndecided);
  EXPECT_THAT(Judge(looks)[0].sentence, HasSubstr("a group with one backend"));
}

TEST(Verdict, NcclDoesNotTellWhetherACollectiveIsOver) {
  auto looks = Nodes({{0, 7, false}, {1, 7, false}}, "0-1");
  SetBackend("nccl", &looks);
  for (NodeLook& look : looks) {
    v1::ProcessGroupState& group = *look.answer->mutable_processes(0)->mutable_groups(0);
    group.set_collective_number(-1);
    group.set_first_look_collective_number(-1);
    group.clear_collective();
  }
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kUndecided);
  EXPECT_THAT(Judge(looks)[0].sentence, HasSubstr("all have entered collective #12; whether"));
}

// PyTorch keeps the record of a group that was destroyed; a new one of the same name counts anew.
TEST(Verdict, ARecordOfAnEarlierGroupIsNoNumber) {
  auto looks = Nodes({{0, 42, false}, {1, 41, false, "broadcast"}}, "0-1");
  const auto count = [&](int64_t number) {
    for (NodeLook& look : looks) {
      v1::ProcessGroupState& group = *look.answer->mutable_processes(0)->mutable_groups(0);
      group.set_sequence_number(number);
      group.set_first_look_sequence_number(number);
    }
  };
  count(0);
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kIdle);
  EXPECT_EQ(Judge(looks)[0].sentence, "no rank has entered a collective so far");
  count(3);
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kUndecided);
}

TEST(Verdict, ARankThatAnsweredWithoutTheGroup) {
  auto looks = Nodes({{0, 42}, {1, 42, false}}, "0-1");
  looks[1].answer->mutable_processes(0)->clear_groups();
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kUndecided);
  EXPECT_THAT(Judge(looks)[0].sentence,
              HasSubstr("rank 1 (node node-1, pid 101): it answered without this group"));
  // Its loader worker has its number, too.
  looks[1].answer->mutable_processes(0)->mutable_process()->set_part("loader worker");
  EXPECT_THAT(Judge(looks)[0].sentence,
              HasSubstr("rank 1: no process of it is known on any node that answered"));
}

TEST(Verdict, WhatAProcessSaysTakesNoBoundlessMemory) {
  std::vector<v1::ProcessStacks> processes = {Process({0, 1}, "0-65535")};
  for (int i = 1; i < 40; ++i) {
    *processes[0].add_groups() = processes[0].groups(0);
    processes[0].mutable_groups(i)->set_name(std::to_string(i));
  }
  const std::vector<NodeLook> looks = {Node("a", std::move(processes))};
  size_t unknown = 0;
  size_t refused = 0;
  for (const GroupVerdict& verdict : Judge(looks)) {
    unknown += verdict.unknown.size();
    const bool too_many =
        verdict.sentence == "the processes name more ranks than are judged at once";
    EXPECT_EQ(verdict.kind, too_many ? GroupKind::kUndecided : GroupKind::kMissing);
    refused += too_many ? 1 : 0;
  }
  EXPECT_EQ(refused, 40u - 16u);
  EXPECT_EQ(unknown, 16u * 65'535u);
}

TEST(Verdict, AProcessThatAnsweredOnceSaysNothingOfItsGroup) {
  auto looks = Nodes({{0, 42}, {1, 41, false}}, "0-1");
  looks[1].answer->mutable_processes(0)->set_answered_twice(false);
  EXPECT_EQ(Judge(looks)[0].kind, GroupKind::kUndecided);
}

TEST(Verdict, ListsOfRanks) {
  EXPECT_THAT(*ParseRanks("0-2,8"), ElementsAre(0, 1, 2, 8));
  EXPECT_THAT(*ParseRanks("3,1"), ElementsAre(3, 1));
  for (const char* wrong : {"", "x", "-1", "3-1", "1-2-3", "0-99999999", "0-1048575,0-1048575"}) {
    EXPECT_FALSE(ParseRanks(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace syncline::stacks

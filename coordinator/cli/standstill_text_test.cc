// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/standstill_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr int64_t kSecondNs = 1'000'000'000;

stacks::NodeLook Node(int32_t rank, int64_t number) {
  v1::StacksResponse response;
  response.set_second_look_begin_monotonic_ns(kSecondNs);
  response.set_answered_monotonic_ns(kSecondNs);
  v1::ProcessStacks& process = *response.add_processes();
  process.mutable_process()->set_pid(100 + rank);
  process.mutable_process()->set_rank(rank);
  process.mutable_process()->add_sources("python");
  process.set_source(v1::ProcessStacks::HOOK);
  process.set_answered_twice(true);
  for (const bool main : {true, false}) {
    v1::PythonThreads& threads = *process.add_threads();
    threads.set_main(main);
    threads.set_count(1);
    v1::StackFrame& frame = *threads.add_frames();
    frame.set_function(main ? "read_batch" : "idle");
    frame.set_file("/job/train.py");
  }
  v1::ProcessGroupState& group = *process.add_groups();
  group.set_name("0");
  group.set_ranks("0-1");
  group.set_rank(rank);
  group.set_backend("gloo");
  for (auto set : {&v1::ProcessGroupState::set_sequence_number,
                   &v1::ProcessGroupState::set_first_look_sequence_number,
                   &v1::ProcessGroupState::set_collective_number,
                   &v1::ProcessGroupState::set_first_look_collective_number}) {
    (group.*set)(number);
  }
  group.set_collective("all_reduce");
  return {rank == 0 ? "a" : "b", std::move(response), 0, kSecondNs};
}

stacks::KeptLook Stuck() {
  stacks::KeptLook look;
  look.no_step.window_ns = 5 * kSecondNs;
  look.no_step.ranks = {{.node = "a", .rank = 0, .job = "", .quiet_ns = 5 * kSecondNs},
                        {.node = "b", .rank = 1, .job = "", .quiet_ns = 5 * kSecondNs}};
  look.looks = {Node(0, 42), Node(1, 41)};
  return look;
}

TEST(StandstillText, TheSentenceThenWhoIsBehindThenItsStack) {
  const std::string text = StandstillText(Stuck(), {.width = 200});
  EXPECT_THAT(text, StartsWith("STILL      no step ended in the window of 5.000 s, and no rank"));
  EXPECT_THAT(text, HasSubstr("\nBEHIND     group 0 of 2 ranks: rank 1 (node b, pid 101) has not "
                              "entered all_reduce #42"));
  EXPECT_THAT(text, AllOf(HasSubstr("RANK 1 · node b"), HasSubstr("read_batch  /job/train.py"),
                          Not(HasSubstr("RANK 0")), Not(HasSubstr("idle"))));
  EXPECT_THAT(StandstillText(Stuck(), {.stacks = false}), Not(HasSubstr("RANK 1 ·")));
}

TEST(StandstillText, AJobThatMovesIsNotSaidToStandStill) {
  stacks::KeptLook look = Stuck();
  look.no_step.ranks[1].calls = 7;
  look.no_step.ranks[1].quiet_ns = kSecondNs / 10;
  EXPECT_THAT(StandstillText(look, {.width = 200}),
              AllOf(StartsWith("NO STEP    no step ended in the window of 5.000 s, but the job "
                               "moved on meanwhile: rank 1"),
                    Not(HasSubstr("STILL"))));
}

TEST(StandstillText, WhoDidNotSayIsNamed) {
  stacks::KeptLook look = Stuck();
  look.looks[1].answer = absl::UnavailableError("nobody listens");
  EXPECT_THAT(StandstillText(look, {.width = 200}),
              AllOf(HasSubstr("MISSING    group 0 of 2 ranks: rank 1: no process of it is known"),
                    HasSubstr("UNKNOWN    node b did not say where its "
                              "processes stand: nobody listens")));
}

TEST(StandstillText, WithoutGroupsOneLineAndTheStacks) {
  stacks::KeptLook look = Stuck();
  for (stacks::NodeLook& node : look.looks) node.answer->mutable_processes(0)->clear_groups();
  EXPECT_THAT(StandstillText(look, {.width = 200}),
              AllOf(HasSubstr("UNDECIDED  no process told of a PyTorch process group"),
                    HasSubstr("RANK 0 ·"), HasSubstr("RANK 1 ·")));
}

}  // namespace
}  // namespace syncline::cli

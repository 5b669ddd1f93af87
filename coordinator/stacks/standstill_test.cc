// SPDX-License-Identifier: Apache-2.0
#include "coordinator/stacks/standstill.h"

#include <nlohmann/json.hpp>

#include "coordinator/stacks/testing/group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::stacks {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr int64_t kMs = 1'000'000;

v1::ProcessStacks Process(int32_t rank, int64_t number, bool pending) {
  v1::ProcessStacks stacks;
  stacks.mutable_process()->set_pid(100 + rank);
  stacks.mutable_process()->set_rank(rank);
  stacks.mutable_process()->set_job("night");
  stacks.mutable_process()->set_incarnation("3f2a");
  stacks.set_source(v1::ProcessStacks::HOOK);
  stacks.set_answered_twice(true);
  v1::PythonThreads& main = *stacks.add_threads();
  main.set_main(true);
  main.set_count(1);
  v1::StackFrame& frame = *main.add_frames();
  frame.set_function(rank == 1 ? "read_batch" : "step");
  frame.set_file("/job/train.py");
  frame.set_line_number(23);
  AddGroup("0-1", rank, number, pending, &stacks);
  return stacks;
}

NodeLook Node(const std::string& name, const v1::ProcessStacks& process) {
  v1::StacksResponse response;
  response.set_asked_monotonic_ns(7'000 * kMs);
  response.set_first_look_end_monotonic_ns(7'050 * kMs);
  response.set_second_look_begin_monotonic_ns(8'000 * kMs);
  response.set_answered_monotonic_ns(8'050 * kMs);
  *response.add_processes() = process;
  return {name, std::move(response), 0, 1'100 * kMs};
}

// Rank 1 is behind, in a window of 10 s without a call.
KeptLook Stuck() {
  KeptLook look;
  look.no_step.window_ns = 10'000 * kMs;
  for (int32_t rank = 0; rank < 2; ++rank) {
    analysis::why::RankActivity& activity = look.no_step.ranks.emplace_back();
    activity.node = rank == 0 ? "a" : "b";
    activity.pid = 10 + rank;
    activity.rank = rank;
    activity.job = "night";
    activity.quiet_ns = 10'000 * kMs;
  }
  look.looks = {Node("a", Process(0, 1'182, true)), Node("b", Process(1, 1'181, false))};
  return look;
}

std::string Sentence(const KeptLook& look) {
  return StandstillSentence(look, JudgeStandstill(look));
}

TEST(Standstill, AJobThatStandsStill) {
  const KeptLook look = Stuck();
  const Standstill standstill = JudgeStandstill(look);
  EXPECT_FALSE(standstill.moves);
  EXPECT_TRUE(standstill.answered());
  EXPECT_THAT(standstill.groups[0].sentence,
              HasSubstr("rank 1 (node b, pid 101) has not entered all_reduce #1182"));
  EXPECT_EQ(Sentence(look),
            "no step ended in the window of 10.000 s, and no rank made a call that is recorded in "
            "it: the job stands still, or is inside of calls that take longer");
}

TEST(Standstill, ARankThatMakesCallsMoves) {
  KeptLook look = Stuck();
  look.no_step.ranks[1].calls = 5'310;
  look.no_step.ranks[1].quiet_ns = 20 * kMs;
  const Standstill standstill = JudgeStandstill(look);
  EXPECT_TRUE(standstill.moves);
  EXPECT_FALSE(standstill.answered());
  EXPECT_THAT(Sentence(look), AllOf(HasSubstr("but the job moved on meanwhile: rank 1 (pid 11 on "
                                              "b) made 5310 calls, the last one 20.0 ms before"),
                                    Not(HasSubstr("stands still"))));
}

TEST(Standstill, CallsAtTheBeginOfTheWindowAreNone) {
  KeptLook look = Stuck();
  for (analysis::why::RankActivity& rank : look.no_step.ranks) {
    rank.calls = 40;
    rank.quiet_ns = 7'000 * kMs;
  }
  EXPECT_TRUE(JudgeStandstill(look).answered());
  EXPECT_THAT(Sentence(look), HasSubstr("no rank made a call that is recorded in its last 7.000"));
  look.no_step.steps = 12;
  EXPECT_THAT(Sentence(look),
              HasSubstr("no step ended in the last 7.000 s of the window of 10.000 s"));
}

TEST(Standstill, RanksThatEndedAreSaidToHave) {
  KeptLook look = Stuck();
  look.no_step.ranks[1].ended = true;
  EXPECT_THAT(Sentence(look), AllOf(HasSubstr("in it. Ended meanwhile: rank 1 (pid 11 on b). The "
                                              "others stand still, or are inside of calls"),
                                    Not(HasSubstr("the job stands"))));
  look.no_step.ranks[0].calls = 5'310;
  look.no_step.ranks[0].quiet_ns = 20 * kMs;
  EXPECT_THAT(Sentence(look), AllOf(HasSubstr("moved on meanwhile: rank 0"),
                                    HasSubstr("; ended meanwhile: rank 1 (pid 11 on b). Either")));
  look.no_step.ranks.resize(6, look.no_step.ranks[1]);
  EXPECT_THAT(Sentence(look), HasSubstr("rank 1 (pid 11 on b) and 2 more ranks. Either"));
}

TEST(Standstill, NumbersThatChangeBetweenTheLooksMove) {
  KeptLook look = Stuck();
  look.looks[0].answer->mutable_processes(0)->mutable_groups(0)->set_first_look_collective_number(
      1'180);
  EXPECT_TRUE(JudgeStandstill(look).moves);
  EXPECT_THAT(Sentence(look),
              HasSubstr("after the window the numbers of group 0 changed between two looks"));
}

TEST(Standstill, CallsThatWereLostAreMovement) {
  KeptLook look = Stuck();
  look.no_step.certain = false;
  look.no_step.ranks[0].lost = 3;
  EXPECT_TRUE(JudgeStandstill(look).moves);
  EXPECT_THAT(Sentence(look), AllOf(HasSubstr("no step was seen to end"), HasSubstr("is missing"),
                                    HasSubstr("rank 0 (pid 10 on a) made 3 calls that were not")));
}

TEST(Standstill, WithoutGroupsThereIsNoAnswer) {
  KeptLook look = Stuck();
  for (NodeLook& node : look.looks) node.answer->mutable_processes(0)->clear_groups();
  const Standstill standstill = JudgeStandstill(look);
  EXPECT_FALSE(standstill.moves);
  EXPECT_FALSE(standstill.answered());
}

TEST(Standstill, OfOneJob) {
  KeptLook look = Stuck();
  EXPECT_THAT(JudgeStandstill(OnlyJob(look, "night/3f2a")).groups, SizeIs(1));
  EXPECT_THAT(JudgeStandstill(OnlyJob(look, "noon")).groups, SizeIs(0));
}

TEST(Standstill, JsonSaysTheSame) {
  const KeptLook look = Stuck();
  const auto json = nlohmann::json::parse(StandstillJson(look, JudgeStandstill(look)));
  EXPECT_EQ(json["moves"], false);
  EXPECT_EQ(json["groups"][0]["verdict"], "behind");
  EXPECT_EQ(json["groups"][0]["behind"], nlohmann::json({1}));
  EXPECT_EQ(json["ranks"][1]["quiet_ns"], 10'000 * kMs);
}

TEST(KeptLookFile, IsReadAsItWasWritten) {
  KeptLook look = Stuck();
  look.no_step.steps = 3;
  look.looks.push_back({"c", absl::UnavailableError("nobody listens"), 5, 6});
  const auto read = ParseKeptLook(FormatKeptLook(look));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(FormatKeptLook(*read), FormatKeptLook(look));
  EXPECT_EQ(read->no_step.steps, 3u);
  EXPECT_EQ(read->looks[2].answer.status().message(), "nobody listens");
  EXPECT_EQ(JudgeStandstill(*read).groups[0].sentence, JudgeStandstill(look).groups[0].sentence);
}

TEST(KeptLookFile, OthersAreRefused) {
  const std::string text = FormatKeptLook(Stuck());
  const auto with = [&](const char* pointer, nlohmann::json value) {
    nlohmann::json json = nlohmann::json::parse(text);
    json[nlohmann::json::json_pointer(pointer)] = std::move(value);
    return ParseKeptLook(json.dump()).status().code();
  };
  EXPECT_EQ(with("/format_version", 1), absl::StatusCode::kOk);
  EXPECT_EQ(with("/format_version", 2), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(with("/window", nullptr), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(with("/window/ranks", nlohmann::json::array()), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(with("/window/ranks/0/quiet_ns", "x"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(with("/window/ranks/0/pid", 1ll << 40), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(with("/nodes/0/asked_ns", ~0ull), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(with("/nodes/0/stacks", 7), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(with("/nodes/0/stacks/asked_monotonic_ns", -1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseKeptLook("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseKeptLook("[]").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace syncline::stacks

// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/stacks_text.h"

#include <nlohmann/json.hpp>

#include "coordinator/stacks/stacks_json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

v1::ProcessStacks Rank(int32_t rank, bool has_group) {
  v1::ProcessStacks stacks;
  stacks.mutable_process()->set_pid(has_group ? 100 + rank : 200 + rank);
  stacks.mutable_process()->set_rank(rank);
  stacks.mutable_process()->set_command_line("python train.py");
  stacks.set_source(v1::ProcessStacks::HOOK);
  stacks.set_answered_twice(true);
  v1::PythonThreads& main = *stacks.add_threads();
  main.set_main(true);
  main.set_count(1);
  main.add_names("MainThread");
  v1::StackFrame& frame = *main.add_frames();
  frame.set_function("step\x1b[31m");
  frame.set_file("/job/train.py");
  frame.set_line_number(23);
  if (has_group) {
    v1::ProcessGroupState& group = *stacks.add_groups();
    group.set_name("0");
    group.set_description("default_pg");
    group.set_backend("gloo");
    group.set_ranks("0-1");
    group.set_rank(rank);
    group.set_sequence_number(9);
    group.set_first_look_sequence_number(9);
    group.set_collective_number(8);
    group.set_first_look_collective_number(8);
    group.set_collective("all_reduce");
    group.set_collective_pending(true);
    group.set_pending_number(7);
    group.set_first_look_pending_number(7);
    group.set_pending("broadcast");
  }
  return stacks;
}

std::vector<stacks::NodeLook> OneNode(std::vector<v1::ProcessStacks> processes) {
  v1::StacksResponse response;
  for (v1::ProcessStacks& process : processes) *response.add_processes() = std::move(process);
  return {{"alpha", response, 0, 0}};
}

std::string Text(const std::vector<stacks::NodeLook>& looks, bool all = false) {
  return StacksText(looks, stacks::Judge(looks), {.width = 100, .all = all});
}

TEST(StacksText, ARankHasItsGroupsAndStacks) {
  const std::string text = Text(OneNode({Rank(1, true)}));
  EXPECT_THAT(text, HasSubstr("RANK 1 · node alpha · pid 101 · python train.py\n"));
  EXPECT_THAT(text, HasSubstr("  group 0 (default_pg, gloo, ranks 0-1): last collective all_reduce "
                              "#8, not over; the oldest that is not over: broadcast #7\n"));
  EXPECT_THAT(text, HasSubstr("  main thread\n    step?[31m  /job/train.py:23\n"));
}

TEST(StacksText, WorkersOfARankAreALineUnlessAllIsWanted) {
  const auto looks = OneNode({Rank(1, true), Rank(1, false)});
  EXPECT_THAT(Text(looks), HasSubstr("  also of this rank: pid 201, its main thread in step"));
  EXPECT_THAT(Text(looks), Not(HasSubstr("pid 201 · python")));
  EXPECT_THAT(Text(looks, true), HasSubstr("pid 201 · python"));
}

TEST(StacksText, WithoutGroupsNobodyIsSaidToBeBehind) {
  const std::string text = Text(OneNode({Rank(1, false)}));
  EXPECT_THAT(text, HasSubstr("UNDECIDED  no process told of a PyTorch process group"));
  EXPECT_THAT(text, HasSubstr("RANK 1 · node alpha · pid 201"));
}

TEST(StacksText, TheKernelsWordsForAProcessThatDoesNotAnswer) {
  v1::ProcessStacks silent;
  silent.mutable_process()->set_pid(7);
  silent.mutable_process()->set_rank(-1);
  silent.set_source(v1::ProcessStacks::KERNEL);
  silent.set_absence("it did not answer within 1.5 s");
  silent.set_py_spy_absence("py-spy is not installed");
  for (const char* state : {"D", "S", "S"}) {
    v1::KernelThread& thread = *silent.add_kernel_threads();
    thread.set_state(state);
    thread.set_system_call("202");
    thread.set_wait_channel("futex_do_wait");
  }
  const std::string text = Text(OneNode({silent}));
  EXPECT_THAT(text, HasSubstr("PROCESS · node alpha · pid 7"));
  EXPECT_THAT(text, HasSubstr("no Python stacks: it did not answer within 1.5 s; not by py-spy"));
  EXPECT_THAT(text, HasSubstr("  main thread: in an uninterruptible wait (disk, driver), in system "
                              "call futex, in futex_do_wait\n"));
  EXPECT_THAT(text, HasSubstr("  2 threads: asleep, in system call futex"));
}

TEST(StacksText, JsonHasTheVerdictAndWhatTheAgentsSaid) {
  auto looks = OneNode({Rank(0, true), Rank(1, true)});
  looks.push_back({"beta", absl::UnavailableError("nobody listens")});
  const auto json = nlohmann::json::parse(stacks::StacksJson(looks, stacks::Judge(looks)));
  EXPECT_EQ(json["format_version"], 1);
  EXPECT_EQ(json["groups"][0]["members"].size(), 2u);
  EXPECT_EQ(json["groups"][0]["members"][1]["last_collective_number"], 8);
  EXPECT_EQ(json["nodes"][0]["stacks"]["processes"][0]["threads"][0]["frames"][0]["line_number"],
            23);
  EXPECT_EQ(json["nodes"][1]["reachable"], false);
  EXPECT_EQ(json["nodes"][1]["failure"], "nobody listens");
}

}  // namespace
}  // namespace syncline::cli

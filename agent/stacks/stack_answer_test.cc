// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_answer.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::HasSubstr;

constexpr char kAnswer[] = R"({
  "format_version": 1, "number": 7, "begin_ns": 5000000000, "threads_left_out": 2,
  "threads": [
    {"names": ["MainThread"], "count": 1, "main": true, "left_out": 5, "left_out_behind": 0,
     "frames": [["wait", "/lib/threading.py", 320], ["<module>", "train.py", 9]]},
    {"names": ["a", "b"], "count": 2, "main": false, "frames": [["run", "x.py", 0]]}],
  "groups": [{"name": "0", "description": "default_pg", "ranks": "0-1", "rank": 1,
              "backend": "gloo", "sequence_number": 9, "collective_number": 8,
              "collective": "all_reduce", "collective_pending": true, "pending_number": 7,
              "pending": "broadcast"}]})";

TEST(StackAnswer, IsReadWhole) {
  const auto answer = ParseStackAnswer(kAnswer);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->number, 7u);
  EXPECT_EQ(answer->begin_ns, 5'000'000'000);
  const v1::ProcessStacks& stacks = answer->stacks;
  EXPECT_EQ(stacks.source(), v1::ProcessStacks::HOOK);
  EXPECT_EQ(stacks.threads_left_out_count(), 2u);
  ASSERT_EQ(stacks.threads_size(), 2);
  EXPECT_TRUE(stacks.threads(0).main());
  EXPECT_EQ(stacks.threads(0).frames(0).function(), "wait");
  EXPECT_EQ(stacks.threads(0).frames(0).line_number(), 320u);
  EXPECT_TRUE(stacks.threads(0).frames(0).left_out_behind());
  EXPECT_FALSE(stacks.threads(0).frames(1).left_out_behind());
  EXPECT_EQ(stacks.threads(1).count(), 2u);
  ASSERT_EQ(stacks.groups_size(), 1);
  EXPECT_EQ(stacks.groups(0).collective_number(), 8);
  EXPECT_TRUE(stacks.groups(0).collective_pending());
  EXPECT_EQ(stacks.groups(0).pending_number(), 7);
  EXPECT_EQ(stacks.groups(0).first_look_collective_number(), -1);
}

TEST(StackAnswer, WhatIsUnknownIsNotZero) {
  const auto answer = ParseStackAnswer(
      R"({"format_version": 1, "number": 1, "groups": [{"name": "0", "collective_number": "x"}]})");
  ASSERT_TRUE(answer.ok());
  const v1::ProcessGroupState& group = answer->stacks.groups(0);
  EXPECT_EQ(group.rank(), -1);
  EXPECT_EQ(group.sequence_number(), -1);
  EXPECT_EQ(group.collective_number(), -1);
  EXPECT_EQ(group.pending_number(), -1);
}

TEST(StackAnswer, HostileTextIsBoundedOrRefused) {
  EXPECT_FALSE(ParseStackAnswer("").ok());
  EXPECT_FALSE(ParseStackAnswer("[1, 2").ok());
  EXPECT_FALSE(ParseStackAnswer(std::string(100'000, '[')).ok());
  EXPECT_FALSE(ParseStackAnswer(R"({"format_version": 2, "number": 1})").ok());
  EXPECT_THAT(ParseStackAnswer(R"({"format_version": 2})").status().message(),
              HasSubstr("version 2"));
  std::string many = R"({"format_version": 1, "number": 1, "threads": [)";
  for (int i = 0; i < 2'000; ++i) many += "{},";
  const auto bounded = ParseStackAnswer(many + "{}]}");
  ASSERT_TRUE(bounded.ok());
  EXPECT_EQ(bounded->stacks.threads_size(), 256);
  EXPECT_EQ(bounded->stacks.threads_left_out_count(), 2'001u - 256);
  const auto odd = ParseStackAnswer(
      R"({"format_version": 1, "number": 18446744073709551615, "threads": [{"count": -4, "frames":)"
      R"( [[1, 2], ["f", 3, 1e30], 7], "names": [1]}, 5], "groups": [{"rank": 99999999999}, 1]})");
  ASSERT_TRUE(odd.ok());
  EXPECT_EQ(odd->number, 0u);
  EXPECT_EQ(odd->stacks.threads(0).count(), 1u);
  EXPECT_EQ(odd->stacks.threads(0).frames_size(), 1);
  EXPECT_EQ(odd->stacks.groups(0).rank(), -1);
  const auto long_text =
      ParseStackAnswer(R"({"format_version": 1, "number": 1, "groups": [{"name": ")" +
                       std::string(9'000, 'x') + "\"}]}");
  ASSERT_TRUE(long_text.ok());
  EXPECT_LE(long_text->stacks.groups(0).name().size(), 1024u);
}

TEST(StackAnswer, TwoLooksSayWhatMoved) {
  auto first = ParseStackAnswer(kAnswer)->stacks;
  auto second = first;
  AddFirstLook(first, &second);
  EXPECT_TRUE(second.answered_twice());
  EXPECT_FALSE(second.main_thread_moved());
  EXPECT_EQ(second.groups(0).first_look_collective_number(), 8);
  EXPECT_EQ(second.groups(0).first_look_sequence_number(), 9);
  EXPECT_EQ(second.groups(0).first_look_pending_number(), 7);
  first.mutable_threads(0)->mutable_frames(0)->set_line_number(321);
  AddFirstLook(first, &second);
  EXPECT_TRUE(second.main_thread_moved());
}

}  // namespace
}  // namespace syncline::agent

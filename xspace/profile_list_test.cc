// SPDX-License-Identifier: Apache-2.0
#include "xspace/profile_list.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::xspace {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ProfileList, WhatIsWrittenIsRead) {
  ProfileRecord whole;
  whole.file = "1-26-5-0.xspace.pb";
  whole.own_pid = 26;
  whole.pid_namespace_inode = 4026532281;
  whole.start_ticks = 5;
  whole.port = 2222;
  whole.address = "::";
  whole.task = "/job:worker/replica:0/task:0";
  whole.incarnation = "1bd0afbd57abbcac";
  whole.session = "syncline-r1";
  whole.piece = 1;
  whole.host_tracer_level = 3;
  whole.asked_start_realtime_ns = 1'795'000'000'000'000'001;
  whole.asked_duration_ns = 5;
  whole.begin_realtime_ns = 7;
  whole.end_realtime_ns = 8;
  whole.begin_monotonic_ns = 6;
  whole.state = ProfileState::kCut;
  whole.bytes = 9;
  ProfileRecord missing = whole;
  missing.piece = 0;
  missing.file.clear();
  missing.state = ProfileState::kMissing;
  missing.failure = "no port";

  const std::string text = FormatProfileList({whole, missing});
  const auto read = ParseProfileList(text);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].state, ProfileState::kMissing);  // by piece, not by age
  EXPECT_EQ((*read)[0].failure, "no port");
  EXPECT_EQ((*read)[1].asked_start_realtime_ns, whole.asked_start_realtime_ns);
  EXPECT_EQ((*read)[1].begin_monotonic_ns, whole.begin_monotonic_ns);
  EXPECT_EQ(FormatProfileList(*read), text);  // every key
}

TEST(ProfileList, OfALaterVersionItReadsWhatItUnderstands) {
  const auto read = ParseProfileList(R"({"format_version": 1, "more": [], "profiles": [
      {"own_pid": "26", "piece": 3, "state": "new", "asked_duration_ns": -5, "x": {}}, 7]})");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ((*read)[0].own_pid, 0);
  EXPECT_EQ((*read)[0].piece, 3);
  EXPECT_EQ((*read)[0].state, ProfileState::kFailed);
  EXPECT_EQ((*read)[0].asked_duration_ns, 0);
}

TEST(ProfileList, WhatIsNoListIsRefused) {
  for (const char* text :
       {"", "[]", "{}", R"({"format_version": 2, "profiles": []})", R"({"format_version": 1})"}) {
    EXPECT_EQ(ParseProfileList(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(ProfileList, OneThatRanAndDidNotComeWasLost) {
  ProfileRecord record;
  record.state = ProfileState::kFailed;
  EXPECT_FALSE(WasLost(record)) << "nobody could begin it";
  record.asked_start_realtime_ns = 1000;
  record.end_realtime_ns = 2000;
  EXPECT_TRUE(WasLost(record));
  record.state = ProfileState::kBusy;
  EXPECT_FALSE(WasLost(record));
  record.state = ProfileState::kCut;
  EXPECT_TRUE(WasLost(record));
  record.file = "7-1-0.xspace.pb";
  EXPECT_FALSE(WasLost(record));
}

TEST(ProfileList, AnEntryWithoutAFileNamesNone) {
  EXPECT_THAT(FormatProfileList({ProfileRecord()}), Not(HasSubstr("\"file\"")));
}

}  // namespace
}  // namespace syncline::xspace

// SPDX-License-Identifier: Apache-2.0
#include "vtune/result_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncline::vtune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ResultRecord, IsReadAsItWasWritten) {
  ResultRecord record;
  record.analysis = "hotspots";
  record.version = "2025.0";
  record.pid = 17;
  record.own_pid = 5;
  record.pid_namespace_inode = 4026531836;
  record.start_ticks = 99;
  record.uid = 1000;
  record.rank = 3;
  record.ready_raw_ns = 150;
  record.bytes = 4096;
  record.problem = "slow";
  record.collect = {{"vtune", "-collect", "hotspots"}, 100, 900, 0};
  record.resume = {{"vtune", "-command", "resume"}, 200, 300, 0};
  record.stop = {{"vtune", "-command", "stop"}, 700, 800, 1};
  const std::string text = FormatRecord(record);
  const auto read = ParseRecord(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(FormatRecord(*read), text);
  EXPECT_EQ(read->rank, 3);
  EXPECT_EQ(read->ready_raw_ns, 150);
  EXPECT_EQ(read->pid_namespace_inode, 4026531836);
  EXPECT_THAT(read->collect.arguments, ElementsAre("vtune", "-collect", "hotspots"));
  EXPECT_EQ(read->stop.begin_raw_ns, 700);
  EXPECT_EQ(read->stop.exit_code, 1);
}

TEST(ResultRecord, WhatIsNoneIsRefused) {
  for (const char* bad : {"", "[]", "{", "{}", R"({"format_version":2})", R"({"format_version":1,
       "resume":{"begin_raw_ns":5,"end_raw_ns":4}})",
                          R"({"format_version":1,"ready_raw_ns":-1})"}) {
    EXPECT_EQ(ParseRecord(bad).status().code(), absl::StatusCode::kDataLoss) << bad;
  }
  EXPECT_THAT(ParseRecord(R"({"format_version":2})").status().message(), HasSubstr("version 2"));
}

TEST(ResultRecord, KeysOfOtherKindsAreLeftOut) {
  const auto read = ParseRecord(
      R"({"format_version":1,"rank":"x","analysis":7,"problem":"a\nb","collect":[],"new":1})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->rank, -1);
  EXPECT_EQ(read->analysis, "");
  EXPECT_EQ(read->problem, "a?b");
}

}  // namespace
}  // namespace syncline::vtune

// SPDX-License-Identifier: Apache-2.0
#include "agent/options.h"

#include "agent/host/log.h"
#include "agent/recording/fakes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

TEST(CompleteOptions, NeverPlainText) {
  EXPECT_EQ(CompleteOptions({.listen = "127.0.0.1:0", .data_dir = "/d"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CompleteOptions, FillsInThePort) {
  const auto listen = [](const std::string& given) {
    return CompleteOptions({.listen = given, .data_dir = "/d", .tls_dir = "/t"})->listen;
  };
  EXPECT_EQ(listen(""), "[::]:7611");
  EXPECT_EQ(listen("10.0.0.1"), "10.0.0.1:7611");
  EXPECT_EQ(listen("10.0.0.1:80"), "10.0.0.1:80");
  EXPECT_EQ(listen("::1"), "[::1]:7611");
  EXPECT_EQ(listen("[::1]"), "[::1]:7611");
  EXPECT_EQ(listen("[::1]:80"), "[::1]:80");
}

TEST(CompleteOptions, TheSocketIsBelowTheDataDirectory) {
  EXPECT_EQ(CompleteOptions({.data_dir = "/d/e/"})->socket, "/d/e/agent.sock");
  EXPECT_EQ(CompleteOptions({.socket = "/s", .data_dir = "/d"})->socket, "/s");
  EXPECT_TRUE(CompleteOptions({.data_dir = "/d"})->listen.empty());
}

TEST(FormatLogLine, OneLineWhateverThePeerSends) {
  EXPECT_EQ(FormatLogLine(1'000, LogLevel::kWarning, "call",
                          {{"peer", "a b\n\"c\""}, {"empty", ""}, {"plain", "x"}}),
            "1970-01-01T00:00:00.000001Z warning call peer=\"a b?\\\"c\\\"\" empty=\"\" plain=x");
}

TEST(CpuCountOfRange, IsTheHighestPlusOne) {
  EXPECT_EQ(CpuCountOfRange("0-3\n"), 4u);
  EXPECT_EQ(CpuCountOfRange("0,2-5,9"), 10u);
  EXPECT_EQ(CpuCountOfRange(""), 1u);
}

}  // namespace
}  // namespace syncline::agent

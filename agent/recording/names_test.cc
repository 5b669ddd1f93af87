// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/names.h"

#include <string>

#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

TEST(CheckRecordingId, TakesTheAlphabetOnly) {
  EXPECT_TRUE(CheckRecordingId("20261121-093012-7f3a").ok());
  EXPECT_TRUE(CheckRecordingId(std::string(64, 'a')).ok());
  for (const std::string bad : {"", "..", "a/b", "A", "-rf", "a b", "a\n"}) {
    EXPECT_FALSE(CheckRecordingId(bad).ok()) << bad;
  }
  EXPECT_FALSE(CheckRecordingId(std::string(65, 'a')).ok());
  EXPECT_FALSE(CheckRecordingId(std::string("a\0b", 3)).ok());
}

TEST(IsFetchablePath, StaysInsideTheRecording) {
  for (const std::string good :
       {"clock.tuples", "node.json", "agent.log", "processes/1-2-3.block",
        "trace/ust/uid/0/64-bit/index/syncline_0.idx", "xspace/profiles.json",
        "xspace/17-26-5-0.xspace.pb", "kineto/17-26-5-0.kineto.json", "evidence/samples.txt",
        "vtune/17/result/result.vtune"}) {
    EXPECT_TRUE(IsFetchablePath(good)) << good;
  }
  for (const std::string bad :
       {"", "journal", "trace", "trace/", "/etc/passwd", "../x", "trace/../journal", "trace//x",
        "trace/./x", "processes/..", "xspace", "node.json/x", "other/x"}) {
    EXPECT_FALSE(IsFetchablePath(bad)) << bad;
  }
  EXPECT_FALSE(IsFetchablePath(std::string("trace/a\0b", 9)));
  EXPECT_FALSE(IsFetchablePath("trace/" + std::string(2000, 'a')));
}

TEST(CheckEventPattern, TakesProviderAndName) {
  EXPECT_TRUE(CheckEventPattern("lttng_ust_libc:*").ok());
  EXPECT_TRUE(CheckEventPattern("a:b_c").ok());
  for (const std::string bad : {"", "*", ":x", "x:", "a:b c", "a:b\n"}) {
    EXPECT_FALSE(CheckEventPattern(bad).ok()) << bad;
  }
}

TEST(ForLog, KeepsOneLine) {
  EXPECT_EQ(ForLog("a\nb\x1b"), "a?b?");
  EXPECT_EQ(ForLog(std::string(500, 'x')).size(), 200u);
}

}  // namespace
}  // namespace syncline::agent

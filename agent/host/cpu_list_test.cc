// SPDX-License-Identifier: Apache-2.0
#include "agent/host/cpu_list.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace syncline::agent {
namespace {

TEST(CpuList, RangesAndSingleCpus) {
  EXPECT_EQ(ParseCpuList(" 0-2,5\n"), (CpuSet{0, 1, 2, 5}));
  EXPECT_EQ(ParseCpuList(""), CpuSet());
  for (const char* bad : {"0-", "3-1", "a", "0,,1", "0-99999999"}) {
    EXPECT_EQ(ParseCpuList(bad), std::nullopt) << bad;
  }
}

TEST(CpuList, IsWrittenAsTheKernelDoes) {
  for (const char* list : {"", "3", "0-2,5", "0-1,4-5,7"}) {
    EXPECT_EQ(CpuListOf(*ParseCpuList(list)), list);
  }
}

TEST(CpuList, ThisProcessMayRunSomewhere) {
  const auto cpus = CpusAllowed("/proc", ::getpid());
  ASSERT_TRUE(cpus.has_value());
  EXPECT_FALSE(cpus->empty());
  EXPECT_EQ(CpusAllowed("/nowhere", ::getpid()), std::nullopt);
}

TEST(CpuList, OpenMpTakesLists) {
  EXPECT_EQ(ThreadsAskedBy("8"), 8u);
  EXPECT_EQ(ThreadsAskedBy("8,2"), 8u);
  EXPECT_EQ(ThreadsAskedBy(""), 0u);
  EXPECT_EQ(ThreadsAskedBy("many"), 0u);
}

}  // namespace
}  // namespace syncline::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/proc_text.h"

#include <gtest/gtest.h>

namespace syncline::agent {
namespace {

TEST(ProcText, SchedStat) {
  const auto stat = ParseSchedStat("5012345678 912345 4711\n");
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->on_cpu_ns, 5012345678);
  EXPECT_EQ(stat->run_queue_ns, 912345);
  EXPECT_FALSE(ParseSchedStat("").has_value());
  EXPECT_FALSE(ParseSchedStat("12").has_value());
  EXPECT_FALSE(ParseSchedStat("a b c").has_value());
}

TEST(ProcText, ProcStat) {
  // A name may hold blanks and parentheses.
  const std::string text =
      "4711 (tmux: (x) y) S 1 4711 4711 0 -1 4194560 1000 8 2 9 150 50 0 0 20 0 1 0 2345 1 2 3 4 5 "
      "6 7 8 9 10 11 12 13 14 15 17 7 0 0 0\n";
  const auto stat = ParseProcStat(text, 100);
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->cpu_ns, 2'000'000'000);
  EXPECT_EQ(stat->cpu, 7);
  EXPECT_EQ(stat->threads, 1);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->major_faults, 2);
  EXPECT_FALSE(ParseProcStat("4711 (x) S 1 2 3", 100).has_value());
  EXPECT_FALSE(ParseProcStat("", 100).has_value());
}

constexpr char kBehindTheName[] =
    " 1 2 3 0 -1 4 5 6 7 8 150 50 0 0 20 0 1 0 2345 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 17 3 0 0\n";

TEST(ProcText, SwitchesOfAThread) {
  const auto counts =
      ParseSwitchCounts("Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n");
  ASSERT_TRUE(counts.has_value());
  EXPECT_EQ(counts->voluntary, 12);
  EXPECT_EQ(counts->involuntary, 3);
  EXPECT_FALSE(ParseSwitchCounts("voluntary_ctxt_switches:\t12\n").has_value());
}

TEST(ProcText, ANameThatLooksLikeAStateIsNone) {
  const auto stat = ParseProcStat(std::string("9 (x) D 1 () R") + kBehindTheName, 100);
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->major_faults, 7);
  EXPECT_EQ(stat->cpu, 3);
  // Cut within the name, or anywhere before the last field that is wanted.
  const std::string whole = std::string("9 (x) D 1 () R") + kBehindTheName;
  for (size_t size = 0; size < whole.find(" 3 0 0\n") + 1; ++size) {
    EXPECT_FALSE(ParseProcStat(whole.substr(0, size), 100).has_value()) << size;
  }
  for (const char* state : {"DD", "7", "-", ""}) {
    EXPECT_FALSE(ParseProcStat(std::string("9 (x) ") + state + kBehindTheName, 100).has_value());
  }
}

TEST(ProcText, ReadBytes) {
  const std::string text =
      "rchar: 323934931\nwchar: 323929600\nsyscr: 632687\nsyscw: 632675\nread_bytes: 4096\n"
      "write_bytes: 323932160\ncancelled_write_bytes: 7\n";
  EXPECT_EQ(*ParseReadBytes(text), 4096);
  EXPECT_FALSE(ParseReadBytes(text.substr(0, text.find("96\nwrite"))).has_value());
  EXPECT_FALSE(ParseReadBytes("read_bytes: -1\n").has_value());
  EXPECT_FALSE(ParseReadBytes("read_bytes:\n").has_value());
  EXPECT_FALSE(ParseReadBytes("not_read_bytes: 3\n").has_value());
  EXPECT_FALSE(ParseReadBytes("").has_value());
}

TEST(ProcText, CpuStatOfBothVersions) {
  const auto v1 = ParseCpuStat("nr_periods 120\nnr_throttled 88\nthrottled_time 2980123456\n");
  ASSERT_TRUE(v1.has_value());
  EXPECT_EQ(v1->throttled_periods, 88);
  EXPECT_EQ(v1->throttled_ns, 2980123456);
  const auto v2 = ParseCpuStat(
      "usage_usec 64209\nuser_usec 43011\nsystem_usec 21198\nnr_periods 7\nnr_throttled 5\n"
      "throttled_usec 321\nnr_bursts 0\nburst_usec 0\n");
  ASSERT_TRUE(v2.has_value());
  EXPECT_EQ(v2->periods, 7);
  EXPECT_EQ(v2->throttled_ns, 321'000);
  EXPECT_FALSE(ParseCpuStat("usage_usec 64209\nuser_usec 43011\n").has_value());
}

TEST(ProcText, Quotas) {
  EXPECT_EQ(ParseCpuMax("50000 100000\n")->quota_ns, 50'000'000);
  EXPECT_EQ(ParseCpuMax("max 100000\n")->quota_ns, -1);
  EXPECT_FALSE(ParseCpuMax("").has_value());
  EXPECT_EQ(*ParseMicroseconds("-1\n"), -1);
  EXPECT_EQ(*ParseMicroseconds("70000\n"), 70000);
}

TEST(ProcText, HowOftenMemoryWasFull) {
  EXPECT_EQ(ParseMemoryFull(1, "12345\n"), 12345);
  EXPECT_EQ(ParseMemoryFull(1, ""), std::nullopt);
  EXPECT_EQ(ParseMemoryFull(2, "low 1\nhigh 20\nmax 300\noom 4\noom_kill 4\n"), 320);
  EXPECT_EQ(ParseMemoryFull(2, "low 1\n"), std::nullopt);
  EXPECT_EQ(ParseMemoryLimit("314572800\n"), 314572800);
  EXPECT_EQ(ParseMemoryLimit("0\n"), 0);
  EXPECT_EQ(ParseMemoryLimit("max\n"), -1);
  EXPECT_EQ(ParseMemoryLimit("9223372036854771712\n"), -1) << "no limit, in v1's words";
  EXPECT_EQ(ParseMemoryLimit(""), -1);
}

// Kept copies of real files: a host with the controllers of v1, and one with v2 alone.
constexpr char kHostV1[] =
    "22 1 0:20 / /proc rw,nosuid shared:5 - proc proc rw\n"
    "33 25 0:28 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw\n"
    "36 25 0:31 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:16 - cgroup cgroup "
    "rw,cpu,cpuacct\n"
    "37 25 0:32 / /sys/fs/cgroup/cpuset rw shared:17 - cgroup cgroup rw,cpuset\n"
    "38 25 0:33 / /sys/fs/cgroup/memory rw shared:18 - cgroup cgroup rw,memory\n";
constexpr char kHostV2[] =
    "29 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 "
    "rw,nsdelegate,memory_recursiveprot\n";

std::vector<std::string> Directories(const char* cgroup, const char* mountinfo,
                                     const char* controller = "cpu") {
  std::vector<std::string> directories;
  for (const SeenGroup& group :
       GroupsOf(ParseCgroups(cgroup, controller), ParseMounts(mountinfo, controller))) {
    directories.push_back(group.directory);
  }
  return directories;
}

using Paths = std::vector<std::string>;

TEST(ProcText, AGroupAndAllItsAncestors) {
  EXPECT_EQ(Directories("5:cpuset:/x\n4:cpu,cpuacct:/job/rank1\n", kHostV1),
            (Paths{"/sys/fs/cgroup/cpu,cpuacct/job/rank1", "/sys/fs/cgroup/cpu,cpuacct/job",
                   "/sys/fs/cgroup/cpu,cpuacct"}));
  EXPECT_EQ(Directories("0::/system.slice/slurm/job_7/step_0\n", kHostV2),
            (Paths{"/sys/fs/cgroup/system.slice/slurm/job_7/step_0",
                   "/sys/fs/cgroup/system.slice/slurm/job_7", "/sys/fs/cgroup/system.slice/slurm",
                   "/sys/fs/cgroup/system.slice", "/sys/fs/cgroup"}));
}

TEST(ProcText, TheGroupsOfAnotherController) {
  EXPECT_EQ(Directories("4:cpu,cpuacct:/job/rank1\n3:memory:/job\n", kHostV1, "memory"),
            (Paths{"/sys/fs/cgroup/memory/job", "/sys/fs/cgroup/memory"}));
  EXPECT_EQ(Directories("0::/job\n", kHostV2, "memory"),
            (Paths{"/sys/fs/cgroup/job", "/sys/fs/cgroup"}));
}

TEST(ProcText, InAContainerTheMountShowsAPart) {
  // The mount's root is the container's own group; /proc/PID/cgroup says the whole path.
  constexpr char kMount[] =
      "700 699 0:31 /docker/4f0c /sys/fs/cgroup/cpu ro,nosuid master:16 - cgroup cgroup rw,cpu\n";
  EXPECT_EQ(Directories("4:cpu:/docker/4f0c/inner\n", kMount),
            (Paths{"/sys/fs/cgroup/cpu/inner", "/sys/fs/cgroup/cpu"}));
  EXPECT_EQ(Directories("4:cpu:/docker/4f0c\n", kMount), (Paths{"/sys/fs/cgroup/cpu"}));
  // A neighbour whose name begins alike is none of it.
  EXPECT_TRUE(Directories("4:cpu:/docker/4f0cd\n", kMount).empty());
  // With a namespace of its own, what is outside begins with "..".
  EXPECT_TRUE(Directories("0::/../../init.scope\n", kHostV2).empty());
  EXPECT_EQ(Directories("0::/\n", kHostV2), (Paths{"/sys/fs/cgroup"}));
}

TEST(ProcText, OwnTid) {
  EXPECT_EQ(*ParseOwnTid("Name:\tpython\nNSpid:\t4711\t26\n"), 26);
  EXPECT_EQ(*ParseOwnTid("NSpid:\t4711\n"), 4711);
  EXPECT_FALSE(ParseOwnTid("Name:\tx\n").has_value());
}

}  // namespace
}  // namespace syncline::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/cpu/cpu_rules.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Eight CPUs on four cores, one NUMA node.
class CpuRules : public testing::Test {
 protected:
  CpuRules() {
    for (uint32_t cpu = 0; cpu < 8; ++cpu) {
      facts_.online.insert(cpu);
      facts_.core_of[cpu] = cpu % 4;
    }
    facts_.flags = {"sse4_1", "avx", "avx2"};
  }
  CpuProcessFacts& Add(int32_t rank, std::map<std::string, std::string> settings,
                       CpuSet allowed = {0, 1, 2, 3, 4, 5, 6, 7}) {
    CpuProcessFacts& process = facts_.processes.emplace_back();
    process.pid = 100 + rank;
    process.rank = rank;
    process.settings = std::move(settings);
    process.allowed = std::move(allowed);
    return process;
  }
  std::vector<std::string> Kinds() {
    std::vector<std::string> kinds;
    check_ = CheckFacts(facts_);
    for (const v1::CpuFinding& finding : check_.findings()) kinds.push_back(finding.kind());
    return kinds;
  }

  CpuFacts facts_;
  v1::CpuCheck check_;
};

TEST_F(CpuRules, NothingIsSaidOfWhatIsAsItShouldBe) {
  Add(0, {{"OMP_NUM_THREADS", "2"}, {"ONEDNN_MAX_CPU_ISA", "AVX2"}});
  Add(1, {{"OMP_NUM_THREADS", "2"}, {"ONEDNN_MAX_CPU_ISA", "DEFAULT"}});
  EXPECT_THAT(Kinds(), IsEmpty());
  EXPECT_EQ(check_.best_isa(), "AVX2");
}

TEST_F(CpuRules, TheBestIsaNeedsAllFlagsOfTheLowerOnes) {
  std::set<std::string> flags = {"sse4_1",   "avx",      "avx2",     "avx512f",
                                 "avx512bw", "avx512vl", "avx512dq", "avx512_bf16"};
  EXPECT_EQ(BestIsa(flags), "AVX512_CORE");
  flags.insert("avx512_vnni");
  EXPECT_EQ(BestIsa(flags), "AVX512_CORE_BF16");
  EXPECT_EQ(BestIsa({"avx512f"}), "");
}

TEST_F(CpuRules, RanksThatAreHeldBelowTheCpuAreOneLine) {
  facts_.flags.insert({"avx512f", "avx512bw", "avx512vl", "avx512dq"});
  for (int rank = 0; rank < 3; ++rank) {
    Add(rank, {{"OMP_NUM_THREADS", "1"}, {"ONEDNN_MAX_CPU_ISA", rank < 2 ? "avx2" : "no such"}});
  }
  ASSERT_THAT(Kinds(), ElementsAre("isa"));
  EXPECT_EQ(check_.findings(0).processes_size(), 2);
  EXPECT_EQ(check_.findings(0).text(),
            "ONEDNN_MAX_CPU_ISA=avx2 holds oneDNN below AVX512_CORE, which this CPU has");
  EXPECT_EQ(check_.findings(0).change(), "unset ONEDNN_MAX_CPU_ISA");
}

TEST_F(CpuRules, MoreThreadsThanCpus) {
  Add(0, {{"OMP_NUM_THREADS", "6"}});
  Add(1, {{"OMP_NUM_THREADS", "6"}});
  ASSERT_THAT(Kinds(), ElementsAre("threads-cpus"));
  EXPECT_EQ(check_.findings(0).text(), "OMP_NUM_THREADS=6: 2 ranks ask for 12 threads on 8 CPUs");
  EXPECT_EQ(check_.findings(0).change(), "OMP_NUM_THREADS=4");
}

TEST_F(CpuRules, MoreThreadsThanCores) {
  Add(0, {{"OMP_NUM_THREADS", "4"}});
  Add(1, {{"OMP_NUM_THREADS", "4"}});
  ASSERT_THAT(Kinds(), ElementsAre("threads-cores"));
  EXPECT_THAT(check_.findings(0).text(),
              HasSubstr("2 ranks ask for 8 threads on 4 cores (8 CPUs)"));
}

TEST_F(CpuRules, ThreadsThatNobodyChose) {
  Add(0, {});
  EXPECT_THAT(Kinds(), IsEmpty());  // alone it may have them all
  Add(1, {});
  Add(2, {});
  ASSERT_THAT(Kinds(), ElementsAre("threads-cpus"));
  EXPECT_EQ(check_.findings(0).text(),
            "OMP_NUM_THREADS is not set: unless the program chooses, 3 ranks ask for 12 threads on "
            "8 CPUs");
}

TEST_F(CpuRules, ProcessesThatAreNoRanksAreNotCounted) {
  Add(-1, {{"OMP_NUM_THREADS", "64"}});
  EXPECT_THAT(Kinds(), IsEmpty());
}

TEST_F(CpuRules, MoreThreadsThanAQuotaAllows) {
  Add(0, {{"OMP_NUM_THREADS", "2"}}).quotas = {{"/job", 1.5}};
  Add(1, {{"OMP_NUM_THREADS", "2"}}).quotas = {{"/job", 1.5}};
  ASSERT_THAT(Kinds(), ElementsAre("threads-quota"));
  EXPECT_THAT(check_.findings(0).text(),
              HasSubstr("2 ranks ask for 4 threads on a quota of 1.5 CPUs (control group /job)"));
}

TEST_F(CpuRules, RanksOfOneNumaNodeMayShareIts) {
  facts_.core_of.clear();
  Add(0, {{"OMP_NUM_THREADS", "2"}}, {0, 1, 2, 3});
  Add(1, {{"OMP_NUM_THREADS", "2"}}, {0, 1, 2, 3});
  Add(2, {{"OMP_NUM_THREADS", "2"}}, {4, 5, 6, 7});
  EXPECT_THAT(Kinds(), IsEmpty());
  Add(3, {{"OMP_NUM_THREADS", "1"}}, {3, 4});
  EXPECT_THAT(Kinds(), ElementsAre("affinity-overlap"));
}

TEST_F(CpuRules, ARankPinnedToFewerCpusThanItHasThreads) {
  Add(0, {{"OMP_NUM_THREADS", "4"}}, {0, 1});
  Add(1, {{"OMP_NUM_THREADS", "1"}}, {2, 3});
  ASSERT_THAT(Kinds(), ElementsAre("threads-cpus"));
  ASSERT_EQ(check_.findings(0).processes_size(), 1);
  EXPECT_EQ(check_.findings(0).processes(0).rank(), 0);
}

TEST_F(CpuRules, ARankAcrossNumaNodes) {
  facts_.numa_nodes = {{0, {0, 1, 4, 5}}, {1, {2, 3, 6, 7}}};
  Add(0, {{"OMP_NUM_THREADS", "2"}});
  EXPECT_THAT(Kinds(), IsEmpty());  // one rank may need both
  Add(1, {{"OMP_NUM_THREADS", "2"}}, {2, 3, 6, 7});
  ASSERT_THAT(Kinds(), ElementsAre("numa"));
  EXPECT_EQ(check_.findings(0).processes(0).rank(), 0);
}

TEST_F(CpuRules, SettingsOfOpenMpThatExcludeEachOther) {
  CpuProcessFacts& process = Add(0, {{"KMP_AFFINITY", "compact"}, {"OMP_PROC_BIND", "false"}});
  process.has_gnu_openmp = process.has_intel_openmp = true;
  ASSERT_THAT(Kinds(), ElementsAre("openmp"));
  EXPECT_EQ(check_.findings(0).text(), "KMP_AFFINITY=compact overrides OMP_PROC_BIND=false");
  process.settings["GOMP_CPU_AFFINITY"] = "0-3";
  ASSERT_THAT(Kinds(), ElementsAre("openmp"));
  EXPECT_THAT(check_.findings(0).text(), HasSubstr("both set where threads run"));
  process.has_intel_openmp = false;
  ASSERT_THAT(Kinds(), ElementsAre("openmp"));
  EXPECT_THAT(check_.findings(0).text(), HasSubstr("KMP_AFFINITY without effect"));
}

TEST_F(CpuRules, SpinningMattersWhereCpusAreShort) {
  Add(0, {{"OMP_NUM_THREADS", "2"}, {"KMP_BLOCKTIME", "infinite"}}).has_intel_openmp = true;
  EXPECT_THAT(Kinds(), IsEmpty());
  facts_.processes[0].settings["OMP_NUM_THREADS"] = "9";
  EXPECT_THAT(Kinds(), ElementsAre("threads-cpus", "blocktime"));
  facts_.processes[0].settings["KMP_BLOCKTIME"] = "200";
  EXPECT_THAT(Kinds(), ElementsAre("threads-cpus"));
}

TEST_F(CpuRules, SettingsOfTheNode) {
  facts_.huge_pages = "never";
  facts_.governors = {"performance", "powersave"};
  facts_.scaling_driver = "acpi-cpufreq";
  EXPECT_THAT(Kinds(), ElementsAre("huge-pages", "governor"));
  facts_.huge_pages = "madvise";
  facts_.scaling_driver = "intel_pstate";
  EXPECT_THAT(Kinds(), IsEmpty());
}

}  // namespace
}  // namespace syncline::agent

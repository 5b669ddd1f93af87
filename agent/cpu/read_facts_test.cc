// SPDX-License-Identifier: Apache-2.0
// On copies of /proc and /sys (testdata/), one file for each machine: "== PATH", then its lines.
#include "agent/cpu/read_facts.h"

#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/files.h"
#include "common/process_part.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class ReadFacts : public testing::Test {
 protected:
  ReadFacts() {
    std::string pattern = testing::TempDir() + "cpu-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    roots_ = {.proc = root_ / "proc", .sys = root_ / "sys"};
  }
  ~ReadFacts() override { std::filesystem::remove_all(root_); }

  void Unpack(const std::string& machine) {
    const auto text = ReadFile(std::filesystem::path(CPU_TESTDATA) / (machine + ".txt"));
    ASSERT_TRUE(text.ok());
    std::string path;
    std::string content;
    for (absl::string_view line : absl::StrSplit(*text, '\n')) {
      if (!absl::ConsumePrefix(&line, "== ")) {
        absl::StrAppend(&content, line, "\n");
        continue;
      }
      if (!path.empty()) Put(path, content);
      path = std::string(line);
      content.clear();
    }
    Put(path, content);
  }
  void Put(const std::string& path, const std::string& content) {
    ASSERT_TRUE(MakeDirectories((root_ / path).parent_path()).ok());
    ASSERT_TRUE(WriteFileAtomically(root_ / path, content).ok());
  }
  // `environment` as "A=1 B=2".
  void Rank(int32_t pid, std::string environment, const char* part = kPartRank) {
    for (char& c : environment) c = c == ' ' ? '\0' : c;
    Put(absl::StrCat("proc/", pid, "/environ"), environment);
    v1::ProcessInfo& info = infos_.emplace_back();
    info.set_pid(pid);
    info.set_rank(static_cast<int32_t>(infos_.size()) - 1);
    info.set_part(part);
  }
  std::vector<std::string> Kinds() {
    std::vector<std::string> kinds;
    check_ = CheckCpu(roots_, infos_);
    for (const v1::CpuFinding& finding : check_.findings()) kinds.push_back(finding.kind());
    return kinds;
  }

  std::filesystem::path root_;
  CpuRoots roots_;
  std::vector<v1::ProcessInfo> infos_;
  v1::CpuCheck check_;
};

TEST_F(ReadFacts, TwoSocketsWithAmx) {
  Unpack("intel-two-sockets");
  Rank(10, "OMP_NUM_THREADS=4 KMP_AFFINITY=compact OMP_PROC_BIND=false");
  Rank(11, "OMP_NUM_THREADS=4 ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16");
  // powersave is an algorithm of intel_pstate's there, and nothing is wrong with it.
  EXPECT_THAT(Kinds(), ElementsAre("isa", "threads-cores", "numa", "openmp"));
  EXPECT_EQ(check_.best_isa(), "AVX512_CORE_AMX");
  EXPECT_THAT(check_.findings(1).text(),
              HasSubstr("2 ranks ask for 8 threads on 4 cores (8 CPUs)"));
  EXPECT_EQ(check_.findings(2).processes_size(), 2);
  EXPECT_THAT(check_.not_read(), IsEmpty());
}

TEST_F(ReadFacts, AnAmdMachineAtItsLowestFrequency) {
  Unpack("amd");
  Rank(20, "OMP_NUM_THREADS=4 KMP_BLOCKTIME=1");
  EXPECT_THAT(Kinds(), ElementsAre("openmp", "huge-pages", "governor"));
  EXPECT_EQ(check_.best_isa(), "AVX512_CORE_BF16");
  EXPECT_THAT(check_.findings(0).text(), HasSubstr("KMP_BLOCKTIME without effect"));
}

TEST_F(ReadFacts, AContainerWithAQuota) {
  Unpack("container-with-quota");
  Rank(7, "OMP_NUM_THREADS=2");
  Rank(8, "OMP_NUM_THREADS=2");
  ASSERT_THAT(Kinds(), ElementsAre("threads-quota"));
  EXPECT_EQ(check_.findings(0).change(), "OMP_NUM_THREADS=1");
}

TEST_F(ReadFacts, LaunchersAndWorkersAreNoRanks) {
  Unpack("container-with-quota");
  Rank(7, "OMP_NUM_THREADS=1");
  Rank(8, "OMP_NUM_THREADS=8", kPartLoaderWorker);
  EXPECT_THAT(Kinds(), IsEmpty());
}

TEST_F(ReadFacts, WhatCannotBeReadIsSaid) {
  Unpack("amd");
  Rank(21, "");
  std::filesystem::remove(root_ / "proc/21/environ");
  std::filesystem::remove(root_ / "proc/cpuinfo");
  (void)Kinds();
  EXPECT_THAT(check_.not_read(),
              UnorderedElementsAre("flags of the CPU", "environment of some processes",
                                   "affinity of some processes", "cgroup quota"));
}

}  // namespace
}  // namespace syncline::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/node/torch_sight.h"

#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/process_part.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kOurs[] = "INTEL_LIBITTNOTIFY64=/usr/lib/libsyncline_itt.so";
constexpr char kTorch[] = "7f00-7f01 r-xp 0 08:01 1 /venv/torch/lib/libtorch_cpu.so\n";

class TorchSight : public testing::Test {
 protected:
  TorchSight() {
    std::string pattern = testing::TempDir() + "torch-XXXXXX";
    proc_ = ::mkdtemp(pattern.data());
  }
  ~TorchSight() override { std::filesystem::remove_all(proc_); }

  // `environment` as "A=1 B=2".
  void Add(int32_t pid, std::string environment, bool hook = true, const char* maps = kTorch) {
    for (char& c : environment) c = c == ' ' ? '\0' : c;
    EXPECT_TRUE(MakeDirectories(proc_ / absl::StrCat(pid)).ok());
    EXPECT_TRUE(WriteFileAtomically(proc_ / absl::StrCat(pid) / "environ", environment).ok());
    EXPECT_TRUE(WriteFileAtomically(proc_ / absl::StrCat(pid) / "maps", maps).ok());
    v1::ProcessInfo info;
    info.set_pid(pid);
    info.set_rank(pid);
    info.add_sources("itt");
    if (hook) info.add_sources("python");
    infos_.push_back(info);
  }
  std::vector<v1::Complaint> Complaints() { return ComplainOfTorch(proc_, infos_, processor_); }

  std::filesystem::path proc_;
  std::vector<v1::ProcessInfo> infos_;
  Processor processor_ = {.cpus = 8, .features = {"avx512f"}};
};

TEST_F(TorchSight, NothingIsSaidOfWhatIsAsItShouldBe) {
  Add(10, absl::StrCat(kOurs, " OMP_NUM_THREADS=4 ONEDNN_MAX_CPU_ISA=AVX512_CORE_AMX"));
  Add(11, absl::StrCat(kOurs, " OMP_NUM_THREADS=4"));
  Add(12, "", /*hook=*/false, "7f00-7f01 r-xp 0 08:01 1 /usr/lib/libc.so.6\n");
  EXPECT_THAT(Complaints(), IsEmpty());
}

TEST_F(TorchSight, WithoutTheHook) {
  Add(10, kOurs, /*hook=*/false);
  const auto complaints = Complaints();
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_EQ(complaints[0].pid(), 10);
  EXPECT_THAT(complaints[0].what(), HasSubstr("without Syncline's hook"));
  EXPECT_THAT(complaints[0].fix(), HasSubstr("syncline run"));
}

TEST_F(TorchSight, AnotherCollector) {
  Add(10, "INTEL_LIBITTNOTIFY64=/opt/intel/libittnotify_collector.so");
  const auto complaints = Complaints();
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_THAT(complaints[0].what(), HasSubstr("operators will not"));
}

TEST_F(TorchSight, MoreThreadsThanProcessors) {
  Add(10, absl::StrCat(kOurs, " OMP_NUM_THREADS=8"));
  EXPECT_THAT(Complaints(), IsEmpty());
  Add(11, absl::StrCat(kOurs, " OMP_NUM_THREADS=8"));
  const auto complaints = Complaints();
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_THAT(complaints[0].what(), HasSubstr("2 ranks ask for 16 threads on 8 CPUs"));
  EXPECT_THAT(complaints[0].fix(), HasSubstr("OMP_NUM_THREADS=4"));
}

TEST_F(TorchSight, AListOfThreadsAsksForItsFirstNumber) {
  Add(10, absl::StrCat(kOurs, " OMP_NUM_THREADS=6,2"));
  Add(11, absl::StrCat(kOurs, " OMP_NUM_THREADS=6,2"));
  const auto complaints = Complaints();
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_THAT(complaints[0].what(), HasSubstr("2 ranks ask for 12 threads on 8 CPUs"));
}

TEST_F(TorchSight, LaunchersWorkersAndChildrenAreNoRanks) {
  processor_.cpus = 2;
  Add(10, absl::StrCat(kOurs, " OMP_NUM_THREADS=1"));
  Add(11, absl::StrCat(kOurs, " OMP_NUM_THREADS=1"));
  for (const int32_t worker : {12, 13, 15}) {
    Add(worker, absl::StrCat(kOurs, " OMP_NUM_THREADS=1 ONEDNN_MAX_CPU_ISA=AVX2"),
        /*hook=*/worker == 15);
    infos_.back().set_rank(10);
    infos_.back().set_part(worker == 12   ? kPartLoaderWorker
                           : worker == 13 ? kPartLauncher
                                          : kPartChild);
  }
  EXPECT_THAT(Complaints(), IsEmpty());
  Add(14, absl::StrCat(kOurs, " OMP_NUM_THREADS=1"));
  const auto complaints = Complaints();
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_THAT(complaints[0].what(), HasSubstr("3 ranks ask for 3 threads on 2 CPUs"));
  EXPECT_THAT(complaints[0].fix(), HasSubstr("start fewer ranks"));
}

TEST_F(TorchSight, ThreadsThatNobodyChose) {
  Add(10, kOurs);
  EXPECT_THAT(Complaints(), IsEmpty());  // alone it may have them all
  Add(11, kOurs);
  const auto complaints = Complaints();
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_THAT(complaints[0].what(), HasSubstr("not set for 2 of 2 ranks"));
  EXPECT_THAT(complaints[0].what(), HasSubstr("16 threads on 8 CPUs"));
  EXPECT_THAT(complaints[0].fix(), HasSubstr("OMP_NUM_THREADS=4"));
}

TEST_F(TorchSight, ThreadsThatNobodyChoseAreAsManyAsTheCoresThatARankMayRunOn) {
  processor_.threads_per_core = 2;
  Add(10, kOurs);
  Add(11, kOurs);
  EXPECT_THAT(Complaints(), IsEmpty());
  Add(12, absl::StrCat(kOurs, " MKL_NUM_THREADS=1"));
  EXPECT_THAT(Complaints()[0].what(), HasSubstr("not set for 2 of 3 ranks"));
  for (const int pid : {10, 11}) {
    EXPECT_TRUE(WriteFileAtomically(proc_ / absl::StrCat(pid) / "status",
                                    "Name:\tpython\nCpus_allowed_list:\t0-1,4-5\n")
                    .ok());
  }
  EXPECT_THAT(Complaints(), IsEmpty());
}

TEST_F(TorchSight, HeldBelowTheProcessor) {
  Add(10, absl::StrCat(kOurs, " ONEDNN_MAX_CPU_ISA=AVX2"));
  const auto complaints = Complaints();
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_THAT(complaints[0].what(), HasSubstr("ONEDNN_MAX_CPU_ISA=AVX2"));
}

}  // namespace
}  // namespace syncline::agent

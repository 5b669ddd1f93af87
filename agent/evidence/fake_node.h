// SPDX-License-Identifier: Apache-2.0
// A node made of files, for tests of what samples it.
#ifndef SYNCLINE_AGENT_EVIDENCE_FAKE_NODE_H_
#define SYNCLINE_AGENT_EVIDENCE_FAKE_NODE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "agent/evidence/sampler.h"
#include "agent/host/fake_process.h"
#include "agent/probe/fake_clock.h"
#include "common/files.h"
#include "control_block/testing.h"
#include "evidence/write.h"

namespace syncline::agent {

namespace fs = std::filesystem;

// The process of AddFakeProcess, in the nested group /job/rank1. By its control block, threads 1234
// and 1235 have written events.
class FakeNode : public ::testing::Test {
 protected:
  FakeNode() {
    std::string pattern = ::testing::TempDir() + "sampler-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    proc_ = root_ / "proc";
    runtime_ = root_ / "run";
    fs::create_directories(runtime_);
    fs::permissions(runtime_, fs::perms::owner_all);
    AddFakeProcess(proc_, 'S', ::geteuid());
    Put(proc_ / "self/mountinfo", "36 25 0:31 / " + (root_ / "cg").string() +
                                      " rw shared:16 - cgroup cgroup rw,cpu,cpuacct\n");
    Put(proc_ / "1234/cgroup", "4:cpu,cpuacct:/job/rank1\n");
    PutGroup("job/rank1", 0, 0, 70000);
    PutGroup("job", 0, 0, -1);
    SetTask(1234, 0, 0);
    const auto bytes = control_block::MakeBlockBytes();
    const fs::path block = runtime_ / "4026531836-1234-5678.block";
    EXPECT_TRUE(WriteFileAtomically(
                    block, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, 0600)
                    .ok());
    EXPECT_TRUE(WriteFileAtomically(runtime_ / "4026531836-1234-5678.names",
                                    control_block::MakeNamesBytes({}), 0600)
                    .ok());
  }
  ~FakeNode() override { fs::remove_all(root_); }

  void Put(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    // In place: the sampler keeps files open, as /proc's.
    std::ofstream(path, std::ios::trunc) << text;
  }
  void PutGroup(const std::string& path, int64_t throttled, int64_t throttled_ns, int quota_us) {
    const fs::path directory = root_ / "cg" / path;
    Put(directory / "cpu.stat", "nr_periods 100\nnr_throttled " + std::to_string(throttled) +
                                    "\nthrottled_time " + std::to_string(throttled_ns) + "\n");
    Put(directory / "cpu.cfs_quota_us", std::to_string(quota_us) + "\n");
    Put(directory / "cpu.cfs_period_us", "100000\n");
  }
  void SetTask(int tid, int64_t on_cpu_ns, int64_t run_queue_ns) {
    const fs::path task = proc_ / "1234/task" / std::to_string(tid);
    Put(task / "schedstat",
        std::to_string(on_cpu_ns) + " " + std::to_string(run_queue_ns) + " 7\n");
    Put(task / "comm", "python\n");
    Put(task / "stat", StatOf(0, 3));
  }
  void SetState(int tid, const std::string& name, char state, int64_t major_faults,
                int64_t minor_faults = 0) {
    std::string text = std::to_string(tid) + " (" + name + ") " + state;
    for (int field = 1; field <= 36; ++field) {
      text += " " + std::to_string(field == 9    ? major_faults
                                   : field == 7  ? minor_faults
                                   : field == 36 ? 3
                                                 : 0);
    }
    Put(proc_ / "1234/task" / std::to_string(tid) / "stat", text + "\n");
  }
  static std::string StatOf(int64_t ticks, int cpu) {
    std::string text = "1 (x) R 1";
    for (int field = 2; field <= 36; ++field) {
      text += " " + std::to_string(field == 11 ? ticks : field == 36 ? cpu : 0);
    }
    return text + "\n";
  }
  void PutOther(int pid, int64_t ticks) {
    Put(proc_ / std::to_string(pid) / "stat", StatOf(ticks, 1));
    Put(proc_ / std::to_string(pid) / "status",
        "Uid:\t0\t0\nNSpid:\t" + std::to_string(pid) + "\n");
  }
  RuntimeDirectories Directories() {
    return [this] { return std::vector{std::pair(uint32_t{::geteuid()}, runtime_)}; };
  }
  Sampler Make(SamplerOptions options = {}) {
    options.proc = proc_;
    options.cpus = root_;
    return Sampler(Directories(), &clock_, options);
  }
  // All that was written so far.
  evidence::Evidence Parsed(Sampler* sampler) {
    if (text_.empty()) evidence::AppendHead(&text_);
    text_ += sampler->TakeText();
    auto parsed = evidence::ParseEvidence(text_);
    EXPECT_TRUE(parsed.ok());
    EXPECT_EQ(parsed->damaged_lines, 0) << text_;
    return *std::move(parsed);
  }

  fs::path root_, proc_, runtime_;
  FakeClock clock_;
  std::string text_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_EVIDENCE_FAKE_NODE_H_

#include "agent/evidence/sampler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "agent/evidence/evidence_recorder.h"
#include "agent/node/fake_process.h"
#include "agent/recording/fakes.h"
#include "common/files.h"
#include "control_block/testing.h"
#include "evidence/write.h"

namespace syncline::agent {
namespace {

namespace fs = std::filesystem;

// A machine made of files: the process of AddFakeProcess, in the nested group /job/rank1.
class SamplerTest : public ::testing::Test {
 protected:
  SamplerTest() {
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
  }
  ~SamplerTest() override { fs::remove_all(root_); }

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
  Sampler Make(SamplerOptions options = {}) {
    options.proc = proc_;
    return Sampler([this] { return std::vector{std::pair(uint32_t{::geteuid()}, runtime_)}; },
                   &clock_, options);
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

TEST_F(SamplerTest, ReadsThreadsAndEachGroupWithItsQuota) {
  Sampler sampler = Make();
  sampler.Search();
  SetTask(1234, 100, 20);
  sampler.Round();
  SetTask(1234, 200, 5'000'020);
  PutGroup("job/rank1", 3, 4'000'000, 70000);
  sampler.Round();
  const evidence::Evidence evidence = Parsed(&sampler);
  ASSERT_EQ(evidence.processes.size(), 1);
  EXPECT_EQ(evidence.processes[0].own_pid, 1234);
  EXPECT_EQ(evidence.processes[0].groups, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(evidence.groups[0].path, "/job/rank1");
  EXPECT_EQ(evidence.groups[1].path, "/job");
  ASSERT_EQ(evidence.thread_samples.size(), 2);
  EXPECT_EQ(evidence.thread_samples[1].run_queue_ns, 5'000'020);
  EXPECT_EQ(evidence.thread_samples[0].cpu, -1) << "it has not waited";
  EXPECT_EQ(evidence.thread_samples[1].cpu, 3);
  EXPECT_GE(evidence.thread_samples[1].at_ns, evidence.thread_samples[0].until_ns);
  ASSERT_EQ(evidence.group_samples.size(), 4);
  const evidence::GroupSample* last = nullptr;
  for (const auto& sample : evidence.group_samples) {
    if (sample.group == 0) last = &sample;
    if (sample.group == 1) {
      EXPECT_EQ(sample.quota_ns, -1);
    }
  }
  EXPECT_EQ(last->throttled_ns, 4'000'000);
  EXPECT_EQ(last->quota_ns, 70'000'000);
  EXPECT_EQ(last->period_ns, 100'000'000);
}

TEST_F(SamplerTest, AThreadThatEndsIsDroppedAndABusyOneFound) {
  SetTask(1300, 0, 0);
  Sampler sampler = Make();
  sampler.Search();
  sampler.Round();
  EXPECT_EQ(Parsed(&sampler).threads.size(), 1) << "nothing shows yet that 1300 is busy";
  SetTask(1300, 500'000'000, 0);
  sampler.Search();
  sampler.Round();
  const evidence::Evidence found = Parsed(&sampler);
  ASSERT_EQ(found.threads.size(), 2);
  EXPECT_EQ(found.threads[1].tid, 1300);
  Put(proc_ / "1234/task/1300/schedstat", "");  // as the kernel answers of one that is gone
  sampler.Round();
  EXPECT_NE(sampler.TakeText(), "");
  sampler.Round();
  const std::string text = sampler.TakeText();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 2) << text;  // a thread, two groups
}

TEST_F(SamplerTest, TheBusiestOthersAreFoundByTheSecondSearch) {
  for (int pid = 10; pid < 40; ++pid) PutOther(pid, 1000);
  Sampler sampler = Make({.others_max = 3});
  sampler.Search();
  EXPECT_EQ(Parsed(&sampler).processes.size(), 1);
  PutOther(20, 1100);
  PutOther(21, 1300);
  PutOther(22, 1200);
  PutOther(23, 1050);
  sampler.Search();
  sampler.Round();
  const evidence::Evidence evidence = Parsed(&sampler);
  std::vector<int32_t> pids;
  for (const auto& process : evidence.processes) pids.push_back(process.pid);
  EXPECT_EQ(pids, (std::vector<int32_t>{1234, 21, 22, 20}));
  EXPECT_EQ(evidence.process_samples.size(), 3);
}

TEST_F(SamplerTest, AProcessMovedToAnotherGroupIsFollowed) {
  Sampler sampler = Make();
  sampler.Search();
  PutGroup("other", 0, 0, 50000);
  Put(proc_ / "1234/cgroup", "4:cpu,cpuacct:/other\n");
  sampler.Search();
  const evidence::Evidence evidence = Parsed(&sampler);
  EXPECT_EQ(evidence.groups.back().path, "/other");
  EXPECT_EQ(evidence.processes[0].groups, (std::vector<uint32_t>{2}));
}

TEST_F(SamplerTest, NothingAtAllIsNoTrouble) {
  fs::remove_all(proc_);
  Sampler sampler = Make();
  sampler.Search();
  sampler.Round();
  EXPECT_TRUE(sampler.empty());
}

TEST(SampleRate, FallsBeforeItTakesOnePercent) {
  SampleRate rate;
  EXPECT_FALSE(rate.Measured(4'000'000, 1'000'000'000));
  EXPECT_TRUE(rate.Measured(6'000'000, 1'000'000'000));
  EXPECT_EQ(rate.period_ns(), 2 * SampleRate::kUsualNs);
  for (int i = 0; i < 20; ++i) rate.Measured(500'000'000, 1'000'000'000);
  EXPECT_EQ(rate.period_ns(), SampleRate::kSlowestNs);
  EXPECT_EQ(SampleRate::SearchPauseNs(1'000'000), 2'000'000'000);
  EXPECT_EQ(SampleRate::SearchPauseNs(100'000'000), 20'000'000'000);
}

// The whole source, with its thread, on a real disk: what it writes is whole.
TEST_F(SamplerTest, ARecordingHasItsSamplesFromBeginToEnd) {
  SystemClock clock;
  Log log(-1, &clock);
  EvidenceOptions options;
  options.sampler.proc = proc_;
  EvidenceRecorder recorder(
      [this] { return std::vector{std::pair(uint32_t{::geteuid()}, runtime_)}; }, &clock, &log,
      options);
  recorder.Find();
  recorder.Begin({.recording_id = "r1", .directory = root_ / "r1"});
  recorder.Begin({.recording_id = "r1", .directory = root_ / "r1"});
  recorder.End();
  EXPECT_TRUE(recorder.Collect().empty());
  const auto text = ReadFile(root_ / "r1/evidence" / evidence::kFileName);
  ASSERT_TRUE(text.ok());
  const auto evidence = evidence::ParseEvidence(*text);
  ASSERT_TRUE(evidence.ok());
  EXPECT_TRUE(evidence->ended);
  EXPECT_EQ(evidence->damaged_lines, 0);
  EXPECT_GE(evidence->thread_samples.size(), 1);
  EXPECT_EQ(evidence->rates.front().period_ns, SampleRate::kUsualNs);
}

TEST_F(SamplerTest, ADirectoryThatCannotBeMadeIsAComplaint) {
  SystemClock clock;
  Log log(-1, &clock);
  EvidenceRecorder recorder([] { return std::vector<std::pair<uint32_t, fs::path>>(); }, &clock,
                            &log, {});
  Put(root_ / "r2/evidence", "a file");
  recorder.Begin({.recording_id = "r2", .directory = root_ / "r2"});
  recorder.End();
  EXPECT_EQ(recorder.Collect().size(), 1);
}

}  // namespace
}  // namespace syncline::agent

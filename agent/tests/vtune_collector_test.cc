// SPDX-License-Identifier: Apache-2.0
// The collector with the stand-in for VTune (tests/vtune/vtune), on a real process.
#include "agent/vtune/vtune_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/files.h"
#include "common/process_part.h"

namespace syncline::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kMs = 1'000'000;

class Collector : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<char, 32> name{"/tmp/syncline-vtune-XXXXXX"};
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name.data();
    fs::create_directories(root_ / "bin");
    fs::create_directories(root_ / "work");
    target_ = *Spawn({.arguments = {"sleep", "100"}});
    AddRank(target_, 0);
  }
  void TearDown() override {
    if (target_ > 0) EndTarget();
    fs::remove_all(root_);
  }

  void Install(const std::string& mode = "") {
    fs::copy_file(VTUNE_STAND_IN, root_ / "bin" / "vtune", fs::copy_options::overwrite_existing);
    if (!mode.empty()) std::ofstream(root_ / "bin" / "vtune.mode") << mode;
  }
  void EndTarget() {
    ::kill(target_, SIGKILL);
    EXPECT_TRUE(WaitForExit(target_, 5'000).ok());
    target_ = -1;
  }
  void AddRank(int32_t pid, int32_t rank) {
    v1::ProcessInfo process;
    process.set_pid(pid);
    process.set_rank(rank);
    process.set_uid(::geteuid());
    process.set_part(rank < 0 ? "" : kPartRank);
    processes_.push_back(process);
  }
  std::unique_ptr<VtuneCollector> Make() {
    VtuneOptions options = options_;
    // As `syncline-agent --vtune-as`, without becoming somebody.
    options.tools.child = {"/bin/sh", "-c", "shift; exec \"$@\"", "as"};
    options.tools.runner = &runner_;
    options.tools.clock = &clock_;
    options.tools.work = root_ / "work";
    auto collector = std::make_unique<VtuneCollector>(
        [this](std::vector<v1::Complaint>*) { return processes_; }, &finder(), &log_, options);
    v1::PrepareRequest request;
    request.mutable_vtune()->set_analysis(analysis_);
    for (const std::string& knob : knobs_) request.mutable_vtune()->add_knobs(knob);
    EXPECT_TRUE(collector->IsWanted(request));
    collector->Configure(request);
    return collector;
  }
  VtuneFinder& finder() {
    finder_ = std::make_unique<VtuneFinder>(
        &runner_, VtuneFinderOptions{.path = (root_ / "bin").string(), .versions = root_ / "none"});
    return *finder_;
  }
  EvidenceWindow Window(int64_t length_ns) {
    start_ns_ = clock_.RawNs() + 200 * kMs;
    return {.recording_id = "r",
            .directory = root_ / "run",
            .start_raw_ns = start_ns_,
            .length_ns = length_ns};
  }
  // A recording of so long; what it complains of.
  std::vector<std::string> Record(int64_t length_ns = 500 * kMs) {
    const auto collector = Make();
    collector->Find({});
    collector->Begin(Window(length_ns));
    clock_.SleepNs(start_ns_ + length_ns - clock_.RawNs() + 100 * kMs);
    collector->End();
    return Texts(collector->Collect());
  }
  static std::vector<std::string> Texts(const std::vector<v1::Complaint>& complaints) {
    std::vector<std::string> texts;
    for (const v1::Complaint& complaint : complaints) {
      EXPECT_EQ(complaint.severity(), v1::Complaint::WARNING);
      texts.push_back(complaint.what());
    }
    return texts;
  }
  vtune::ResultRecord RecordOf(int32_t pid) {
    const auto text = ReadFile(root_ / "run" / "vtune" / absl::StrCat(pid) / vtune::kRecordFile);
    EXPECT_TRUE(text.ok()) << text.status();
    const auto record = vtune::ParseRecord(text.value_or(""));
    EXPECT_TRUE(record.ok()) << record.status();
    return record.value_or(vtune::ResultRecord{});
  }
  // What the stand-in was told: "paused 12", "resumed 15", "stopped 20".
  std::vector<std::pair<std::string, int64_t>> StatesOf(int32_t pid) {
    const auto text =
        ReadFile(root_ / "run" / "vtune" / absl::StrCat(pid) / "result" / "stand-in.log");
    EXPECT_TRUE(text.ok()) << text.status();
    std::vector<std::pair<std::string, int64_t>> states;
    for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
      const std::pair<std::string, std::string> words = absl::StrSplit(line, ' ');
      states.emplace_back(words.first, std::strtoll(words.second.c_str(), nullptr, 10));
    }
    return states;
  }
  bool NothingIsLeft() const { return fs::is_empty(root_ / "work"); }

  fs::path root_;
  SystemClock clock_;
  SystemProcessRunner runner_;
  Log log_{STDERR_FILENO, &clock_};
  VtuneOptions options_;
  std::string analysis_ = "hotspots";
  std::vector<std::string> knobs_;
  std::vector<v1::ProcessInfo> processes_;
  std::unique_ptr<VtuneFinder> finder_;
  pid_t target_ = -1;
  int64_t start_ns_ = 0;
};

TEST_F(Collector, CollectsFromTheStartOfTheWindowToItsEnd) {
  Install();
  const int64_t length_ns = 800 * kMs;
  EXPECT_THAT(Record(length_ns), IsEmpty());
  const vtune::ResultRecord record = RecordOf(target_);
  EXPECT_EQ(record.problem, "");
  EXPECT_EQ(record.rank, 0);
  EXPECT_THAT(record.version, HasSubstr("stand-in"));
  EXPECT_GT(record.bytes, 4000u);
  EXPECT_EQ(record.collect.exit_code, 0);
  EXPECT_EQ(record.resume.exit_code, 0);
  EXPECT_EQ(record.stop.exit_code, 0);
  EXPECT_LT(record.ready_raw_ns, start_ns_);
  // The instants that the stand-in noted lie between begin and end of the commands, and these
  // begin at T and T + D.
  const auto states = StatesOf(target_);
  ASSERT_EQ(states.size(), 3u);
  EXPECT_EQ(states[0].first, "paused");
  EXPECT_EQ(states[1].first, "resumed");
  EXPECT_EQ(states[2].first, "stopped");
  EXPECT_LT(states[0].second, start_ns_);
  EXPECT_GE(record.resume.begin_raw_ns, start_ns_);
  EXPECT_LT(record.resume.begin_raw_ns, start_ns_ + 100 * kMs);
  EXPECT_LE(record.resume.begin_raw_ns, states[1].second);
  EXPECT_LE(states[1].second, record.resume.end_raw_ns);
  EXPECT_GE(record.stop.begin_raw_ns, start_ns_ + length_ns);
  EXPECT_LT(record.stop.begin_raw_ns, start_ns_ + length_ns + 100 * kMs);
  EXPECT_LE(record.stop.begin_raw_ns, states[2].second);
  EXPECT_LE(states[2].second, record.stop.end_raw_ns);
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(Collector, EndsWithARecordingThatIsStoppedEarly) {
  Install();
  const auto collector = Make();
  collector->Find({});
  collector->Begin(Window(/*length_ns=*/0));
  clock_.SleepNs(1'000 * kMs);
  collector->End();
  EXPECT_THAT(Texts(collector->Collect()), IsEmpty());
  EXPECT_EQ(StatesOf(target_).back().first, "stopped");
}

TEST_F(Collector, LetsGoOfARecordingThatNeverStarts) {
  Install();
  const auto collector = Make();
  collector->Find({});
  collector->End();
  EXPECT_THAT(Texts(collector->Collect()), IsEmpty());
  EXPECT_FALSE(fs::exists(root_ / "run"));
  EXPECT_TRUE(NothingIsLeft());
  EXPECT_EQ(::kill(target_, 0), 0);  // whom it let go of runs on
}

TEST_F(Collector, AttachesToRanksOnlyAndToOthersWhereThereIsNone) {
  Install();
  AddRank(::getpid(), -1);
  processes_.back().set_part(kPartLoaderWorker);
  EXPECT_THAT(Record(), IsEmpty());
  EXPECT_FALSE(fs::exists(root_ / "run" / "vtune" / absl::StrCat(::getpid())));
  processes_[0].set_part("");
  processes_[0].set_rank(-1);
  fs::remove_all(root_ / "run");
  EXPECT_THAT(Record(), IsEmpty());
  EXPECT_TRUE(fs::exists(root_ / "run" / "vtune" / absl::StrCat(target_)));
}

TEST_F(Collector, SaysInOneLineThatItIsNotInstalled) {
  EXPECT_THAT(Record(), ElementsAre("VTune is not installed on this node"));
}

TEST_F(Collector, SaysInOneLineThatThereIsNobodyToAttachTo) {
  Install();
  processes_.clear();
  EXPECT_THAT(Record(), ElementsAre("VTune found no process to attach to on this node"));
}

TEST_F(Collector, SaysWhatVtuneSaysWhenItFails) {
  struct Case {
    const char* mode;
    const char* says;
  };
  for (const Case& one : {Case{"fail", "scope of ptrace system call is limited"},
                          Case{"busy", "code 2: vtune: Error: Another collection"},
                          Case{"no-driver", "install the sampling driver"}}) {
    Install(one.mode);
    fs::remove_all(root_ / "run");
    EXPECT_THAT(Record(), ElementsAre(HasSubstr(one.says))) << one.mode;
    EXPECT_THAT(RecordOf(target_).problem, HasSubstr(one.says));
    EXPECT_EQ(RecordOf(target_).bytes, 0u);
    EXPECT_TRUE(NothingIsLeft());
  }
}

TEST_F(Collector, AKnobThatVtuneRefusesIsOneLine) {
  Install();
  knobs_ = {"no-such-knob=1"};
  EXPECT_THAT(Record(), ElementsAre(HasSubstr("Invalid knob `no-such-knob=1'")));
}

TEST_F(Collector, OneThatHangsIsKilledAndSaidSo) {
  Install("hang");
  options_.end_limit_ms = 1'000;
  EXPECT_THAT(Record(), ElementsAre(HasSubstr("did not end in time and was killed")));
}

TEST_F(Collector, CommandsThatNeverEndAreGivenUp) {
  Install("deaf");
  options_.tools.command_limit_ms = 500;
  options_.end_limit_ms = 2'000;
  EXPECT_THAT(Record(), ElementsAre(HasSubstr("`vtune -command resume` did not end")));
  // It was told by signal, and its result is kept.
  EXPECT_EQ(StatesOf(target_).back().first, "interrupted");
}

TEST_F(Collector, OneThatDoesNotSayThatItStartedIsWaitedForSoLong) {
  Install("silent");
  options_.start_limit_ms = 1'000;
  EXPECT_THAT(Record(), ElementsAre(HasSubstr("did not say in time")));
  EXPECT_EQ(StatesOf(target_)[1].first, "resumed");  // all the same
}

TEST_F(Collector, AProcessThatEndsIsSaidToHaveEnded) {
  Install();
  const auto collector = Make();
  collector->Find({});
  collector->Begin(Window(3'000 * kMs));
  clock_.SleepNs(1'200 * kMs);
  const pid_t target = target_;
  EndTarget();
  clock_.SleepNs(500 * kMs);
  collector->End();
  EXPECT_THAT(Texts(collector->Collect()), ElementsAre(HasSubstr("ended before the recording")));
  EXPECT_GT(RecordOf(target).bytes, 0u);
}

TEST_F(Collector, UsersWhoAreLeftOutAreNotAttachedTo) {
  Install();
  const auto collector = Make();
  collector->Find({::geteuid()});
  collector->End();
  EXPECT_THAT(Texts(collector->Collect()), ElementsAre(HasSubstr("found no process")));
}

TEST_F(Collector, BudgetsHold) {
  Install();
  options_.bytes_max = 100;
  EXPECT_THAT(Record(), ElementsAre(HasSubstr("could not be copied")));
  EXPECT_THAT(RecordOf(target_).problem, HasSubstr("on the node"));
  EXPECT_FALSE(NothingIsLeft());  // where the line says
}

// Whatever went wrong before: else nobody finds the result again.
TEST_F(Collector, WhereTheResultStayedIsSaidInAnyCase) {
  Install("silent");
  options_.start_limit_ms = 1'000;
  options_.bytes_max = 100;
  Record();
  EXPECT_THAT(RecordOf(target_).problem, HasSubstr("did not say in time"));
  EXPECT_THAT(RecordOf(target_).problem, HasSubstr("; it is in "));
  EXPECT_FALSE(NothingIsLeft());
}

}  // namespace
}  // namespace syncline::agent

// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "analysis/why/comparison.h"
#include "common/files.h"
#include "coordinator/merge/job_test.h"
#include "coordinator/merge/test_recording.h"
#include "coordinator/merge/why_job_test.h"
#include "coordinator/recording/recording.h"
#include "evidence/device_samples.h"
#include "evidence/write.h"
#include "timeline/testing/two_node_job.h"

namespace syncline::merge {
namespace {

using analysis::Level;
using analysis::why::Refusal;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class WhyTest : public testing::JobTest {
 protected:
  // The two ranks as a recording, of a job that has a name.
  void Write(const std::string& text) {
    std::filesystem::remove_all(run_);
    testing::WriteScenario(text, "why", 0, run_);
    Change([](recording::Recording* recording) {
      for (recording::NodeRecord& node : recording->nodes) {
        for (recording::ProcessRecord& process : node.processes) {
          process.job = "night";
          process.incarnation = "3f2a";
        }
      }
    });
  }
  absl::StatusOr<WhyResult> Explain(const std::filesystem::path& input,
                                    std::optional<std::string> job = std::nullopt,
                                    unsigned threads = 1) {
    WhyOptions options;
    options.input.inputs = {input.string()};
    options.job = std::move(job);
    options.threads = threads;
    options.inspect = [this](const analysis::why::JobInput& input) { input_ = input; };
    return merge::Explain(options);
  }
  WhyResult Explained() {
    auto result = Explain(run_);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : WhyResult{};
  }
  void WriteEvidence(const std::string& text, const char* file = evidence::kFileName) const {
    const std::filesystem::path directory = recording::Layout(run_).Evidence("worker-0");
    ASSERT_TRUE(MakeDirectories(directory).ok());
    ASSERT_TRUE(WriteFileAtomically(directory / file, text).ok());
  }

  analysis::why::JobInput input_;
};

TEST_F(WhyTest, RanksAndTheirCollectivesInTheirOwnClocks) {
  Write(Job(kFirst, kSecond));
  const WhyResult result = Explained();
  EXPECT_THAT(result.complaints, IsEmpty());
  EXPECT_EQ(result.answer.refusal, Refusal::kNone) << result.answer.refusal_text;
  EXPECT_FALSE(result.answer.incomplete);
  EXPECT_EQ(result.answer.job, "night");
  EXPECT_EQ(result.answer.steps, static_cast<uint64_t>(kSteps - 1));

  ASSERT_THAT(input_.ranks, SizeIs(2));
  const analysis::why::RankInput& late = input_.ranks[1];
  EXPECT_EQ(late.rank, 1);
  EXPECT_EQ(late.node, "worker-0");
  EXPECT_EQ(late.pid, 10);
  EXPECT_EQ(late.command, "train.py");
  EXPECT_EQ(late.evidence, nullptr);
  EXPECT_THAT(late.threads, SizeIs(2));
  EXPECT_NEAR(static_cast<double>(late.window.begin_ns), kJobZeroNs + kJobOffsetNs, 50.0 * kUs);
  EXPECT_NEAR(static_cast<double>(late.window.length_ns()), kJobSteps * kJobStepNs, 50.0 * kUs);
  ASSERT_THAT(late.collectives, SizeIs(kSteps));
  const analysis::why::CollectiveEntry& entry = late.collectives[3];
  EXPECT_EQ(entry.number, kFirstNumber + 3);
  EXPECT_EQ(input_.names[entry.name], "allreduce");
  const int64_t step_ns = kJobZeroNs + kJobOffsetNs + kBeginNs + 3 * kPeriodNs;
  EXPECT_EQ(entry.entered_ns, step_ns + 1'000 * kUs + kLateNs);
  EXPECT_EQ(entry.left_ns, step_ns + 1'600 * kUs + kLateNs);
}

TEST_F(WhyTest, WhoEntersLastIsProvenWhereTheClocksAreGoodEnough) {
  Write(Job(kFirst, kSecond));
  Explained();
  ASSERT_THAT(input_.arrivals, SizeIs(kSteps));
  EXPECT_EQ(input_.arrivals[0].last, 1u);
  EXPECT_EQ(input_.arrivals[0].level, Level::kProven);
  EXPECT_TRUE(input_.arrivals[0].everybody_waits);
  EXPECT_NEAR(static_cast<double>(input_.arrivals[0].spread_ns), kLateNs, 50.0 * kUs);
  ASSERT_TRUE(input_.clock_bound_ns.has_value());
  EXPECT_LT(*input_.clock_bound_ns, 100 * kUs);

  FakeRank close = kSecond;
  close.late_ns = 1 * kUs;
  Write(Job(kFirst, close));
  Explained();
  EXPECT_NE(input_.arrivals[0].level, Level::kProven);
}

TEST_F(WhyTest, ABroadcastHasARoot) {
  FakeRank first;
  FakeRank second = kSecond;
  first.root = second.root = 1;
  Write(Job(first, second));
  Explained();
  ASSERT_THAT(input_.arrivals, SizeIs(kSteps));
  EXPECT_TRUE(input_.arrivals[0].everybody_waits);

  // Of more than two it matters whose it is.
  FakeRank third{"worker-1", kJobZeroNs + kJobOffsetNs, 2, 0, "0-2", 3};
  for (FakeRank* one : {&first, &second}) one->ranks = "0-2", one->size = 3;
  third.root = 1;
  Write(Job(first, second) + RankText(third).Text());
  Explained();
  EXPECT_EQ(input_.arrivals[0].root, 1u);
  third.root = 2;  // they are not of one mind
  Write(Job(first, second) + RankText(third).Text());
  Explained();
  EXPECT_EQ(input_.arrivals[0].root, std::nullopt);
}

TEST_F(WhyTest, ATransferIsACollectiveOfTwo) {
  FakeRank first;
  FakeRank second = kSecond;
  first.transfers = second.transfers = true;
  Write(Job(first, second));
  const WhyResult result = Explained();
  EXPECT_TRUE(result.answer.transfers);
  EXPECT_TRUE(result.answer.findings.empty());
  EXPECT_THAT(input_.arrivals, SizeIs(2 * kSteps));
  uint64_t waits = 0;
  for (const analysis::why::RankInput& rank : input_.ranks) {
    EXPECT_THAT(rank.collectives, SizeIs(2 * kSteps));
    for (const analysis::why::CollectiveEntry& entry : rank.collectives) {
      if (!entry.transfer) continue;
      EXPECT_EQ(input_.names[entry.name], "send/recv");
      EXPECT_EQ(entry.left_ns.has_value(), rank.rank == 1);
      EXPECT_EQ(entry.tid, 10);
      EXPECT_EQ(entry.sends, rank.rank == 0);
      if (entry.waited_ns == 0) continue;
      ++waits;
      EXPECT_EQ(entry.waited_tid, 10);
      EXPECT_EQ(entry.waited_ns, 150 * kUs);
      EXPECT_EQ(*entry.left_ns - entry.entered_ns, 200 * kUs);
    }
  }
  EXPECT_EQ(waits, kSteps);
}

TEST_F(WhyTest, ASideOfAComparisonHasTheStepsAndTheRefusals) {
  WhyOptions options;
  options.input.inputs = {run_.string()};
  Write(Job(kFirst, kSecond));
  const auto before = ReadSide(options);
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_EQ(before->side.refusal, Refusal::kNone) << before->side.refusal_text;
  EXPECT_EQ(before->side.job, "night");
  EXPECT_EQ(before->side.steps, static_cast<uint64_t>(kSteps - 1));
  EXPECT_EQ(before->side.kind.collectives, (std::map<std::string, uint32_t>{{"allreduce", 1}}));
  ASSERT_THAT(before->side.ranks, SizeIs(2));
  EXPECT_FALSE(before->side.ranks[0].taken_away_known);
  const auto comparison = analysis::why::Compare(before->side, before->side);
  EXPECT_EQ(comparison.step.now_ns, kPeriodNs);
  EXPECT_EQ(comparison.step.change.est_ns, 0);

  FakeRank second = kSecond;
  second.rank = 0;
  Write(Job(kFirst, second));
  Change([](recording::Recording* recording) { recording->nodes[1].processes[0].rank = 0; });
  const auto refused = ReadSide(options);
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_EQ(refused->side.refusal, Refusal::kRanksDisagree);
  options.job = "noon";
  EXPECT_EQ(ReadSide(options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(WhyTest, TheSameAnswerWithMoreThreads) {
  Write(Job(kFirst, kSecond));
  const auto one = Explain(run_, std::nullopt, 1);
  const auto two = Explain(run_, std::nullopt, 2);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->answer.mean_step_ns, two->answer.mean_step_ns);
  EXPECT_EQ(one->answer.verdict, two->answer.verdict);
  ASSERT_EQ(one->answer.ranks.size(), two->answer.ranks.size());
  EXPECT_EQ(one->answer.ranks[1].mean, two->answer.ranks[1].mean);
}

TEST_F(WhyTest, SeveralJobsMustBeChosenFrom) {
  FakeRank alone = kSecond;
  alone.ranks = "1";
  alone.size = 1;
  FakeRank first = kFirst;
  first.ranks = "0";
  first.size = 1;
  Write(Job(first, alone));
  Change([](recording::Recording* recording) {
    recording->nodes[1].processes[0].job = "morning";
    recording->nodes[1].processes[0].rank = 0;
  });
  const auto several = Explain(run_);
  EXPECT_EQ(several.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(several.status().message(),
              AllOf(HasSubstr("--job"), HasSubstr("morning/3f2a (1 rank), night/3f2a (1 rank)"),
                    Not(HasSubstr("lacks ranks"))));
  for (const char* name : {"morning", "morning/3f2a"}) {
    const auto chosen = Explain(run_, name);
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_EQ(input_.job, "morning");
    ASSERT_THAT(input_.ranks, SizeIs(1));
    EXPECT_EQ(input_.ranks[0].node, "worker-0");
  }
  const auto unknown = Explain(run_, "noon");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(unknown.status().message(), HasSubstr("no job \"noon\" here; there are: morning"));
}

// With --job on one host and without on the other.
TEST_F(WhyTest, HalvesOfOneJobUnderTwoNamesAreSaidToLookSo) {
  Write(Job(kFirst, kSecond));
  Change([](recording::Recording* recording) {
    recording->nodes[1].processes[0].job = recording->nodes[1].processes[0].incarnation = "";
  });
  const auto halves = AllOf(HasSubstr("night/3f2a"), HasSubstr("\"\" (without a name)"),
                            HasSubstr(" have process groups of the same names and ranks"));
  const auto several = Explain(run_);
  EXPECT_THAT(several.status().message(), AllOf(HasSubstr("several jobs were recorded"), halves));
  const auto chosen = Explain(run_, "night");
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->answer.refusal, Refusal::kRankMissing);
  EXPECT_THAT(chosen->answer.refusal_text, AllOf(HasSubstr("missing: 1"), halves));
}

TEST_F(WhyTest, ARankThatWasNotRecordedIsNamed) {
  FakeRank first = kFirst;
  FakeRank second = kSecond;
  first.ranks = second.ranks = "0-3";
  first.size = second.size = 4;
  Write(Job(first, second));
  const WhyResult result = Explained();
  EXPECT_EQ(result.answer.refusal, Refusal::kRankMissing);
  EXPECT_THAT(result.answer.refusal_text, HasSubstr("missing: 2-3"));
}

TEST_F(WhyTest, ARankThatWasKilledIsNamedAndWhen) {
  FakeRank second = kSecond;
  second.killed_ns = 95'000 * kUs;
  Write(Job(kFirst, second));
  Change([](recording::Recording* recording) {
    const int64_t found_ns = kJobZeroNs + kJobOffsetNs + 141'000 * kUs;
    recording->nodes[1].processes[0].ended_monotonic_ns = found_ns;
  });
  const WhyResult result = Explained();
  EXPECT_EQ(result.answer.refusal, Refusal::kNotCovered);
  EXPECT_THAT(result.answer.refusal_text,
              HasSubstr("rank 1 (worker-0, pid 10) ended between 0.09 s and 0.14 s after T: 47 % "
                        "of the window was recorded of it"));
}

TEST_F(WhyTest, TwoProcessesThatWorkAsOneRankAreRefused) {
  Write(Job(kFirst, kSecond));
  Change([](recording::Recording* recording) { recording->nodes[1].processes[0].rank = 0; });
  const WhyResult result = Explained();
  EXPECT_EQ(result.answer.refusal, Refusal::kRanksDisagree);
  EXPECT_THAT(result.answer.refusal_text,
              AllOf(HasSubstr("pid 10 on master-0"), HasSubstr("pid 10 on worker-0")));
}

// torch.multiprocessing sets no RANK: the process group knows it.
TEST_F(WhyTest, RanksWithoutANumberAreThoseOfTheirGroup) {
  FakeRank first = kFirst;
  FakeRank second = kSecond;
  std::swap(first.rank, second.rank);
  Write(Job(first, second));
  Change([](recording::Recording* recording) {
    for (recording::NodeRecord& node : recording->nodes) node.processes[0].rank = -1;
  });
  const WhyResult result = Explained();
  EXPECT_EQ(result.answer.refusal, Refusal::kNone) << result.answer.refusal_text;
  ASSERT_THAT(input_.ranks, SizeIs(2));
  EXPECT_EQ(input_.ranks[0].node, "worker-0");
  EXPECT_EQ(input_.ranks[1].node, "master-0");
}

TEST_F(WhyTest, OtherProgramsAreNoPyTorchJob) {
  const WhyResult other = Explained();  // the two-node job marks its own steps
  EXPECT_EQ(other.answer.refusal, Refusal::kNoPyTorchOperators);
  for (const char* node : {"master-0", "worker-0"}) {
    std::filesystem::remove_all(recording::Layout(run_).Trace(node));
    std::filesystem::create_directories(recording::Layout(run_).Trace(node));
  }
  Change([](recording::Recording* recording) {
    for (recording::NodeRecord& node : recording->nodes) node.processes.clear();
  });
  EXPECT_EQ(Explained().answer.refusal, Refusal::kNothingRecorded);
}

TEST_F(WhyTest, ATraceThatIsNoRecordingIsRefused) {
  const auto result = Explain(Trace("master-0"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->answer.refusal, Refusal::kForeignTrace);
  EXPECT_THAT(result->answer.refusal_text, HasSubstr("syncline record"));
  EXPECT_EQ(Explain(root_ / "nothing").status().code(), absl::StatusCode::kNotFound);
}

std::string Samples() {
  std::string text;
  evidence::AppendHead(&text);
  evidence::Append(evidence::Group{1, "/job/rank1"}, &text);
  evidence::Append(evidence::Process{evidence::Relation::kOther, 99, 1, 6, 0, 0, 0, "stress", {}},
                   &text);
  evidence::Append(
      evidence::Process{evidence::Relation::kRecorded, 4711, 1, 7, 5, 10, 0, "python", {0}}, &text);
  evidence::Append(evidence::Thread{1, 4711, 10, "python"}, &text);
  const int64_t zero_ns = kJobZeroNs + kJobOffsetNs;
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t at_ns = zero_ns + i * 50'000 * kUs;
    evidence::Append(
        evidence::ThreadSample{0, at_ns, at_ns + 10 * kUs, i * 30'000 * kUs, i * 20'000 * kUs, 0},
        &text);
    evidence::Append(evidence::GroupSample{0, at_ns + 20 * kUs, at_ns + 30 * kUs, i, i,
                                           i * 10'000 * kUs, 70'000 * kUs, 100'000 * kUs},
                     &text);
  }
  evidence::AppendNote("who ran instead is not known: not root", &text);
  evidence::AppendEnd(&text);
  return text;
}

TEST_F(WhyTest, SamplesBelongToTheRankOfTheirNode) {
  Write(Job(kFirst, kSecond));
  WriteEvidence(Samples());
  const WhyResult result = Explained();
  EXPECT_THAT(result.complaints, IsEmpty());
  EXPECT_THAT(result.notes, Contains(HasSubstr("worker-0: who ran instead is not known")));
  EXPECT_EQ(input_.ranks[0].evidence, nullptr);
  ASSERT_NE(input_.ranks[1].evidence, nullptr);
  EXPECT_EQ(input_.ranks[1].evidence_process, 1u);
}

TEST_F(WhyTest, SamplesThatCannotBeReadAreNamedAndTheRestIsAnswered) {
  Write(Job(kFirst, kSecond));
  WriteEvidence("not samples\n");
  const WhyResult result = Explained();
  EXPECT_THAT(result.complaints,
              ElementsAre(HasSubstr("worker-0: evidence/samples.txt is skipped")));
  EXPECT_EQ(result.answer.refusal, Refusal::kNone) << result.answer.refusal_text;
  EXPECT_TRUE(result.answer.incomplete);
}

// Both readings of one node's device, which rank 1 uses.
std::string DevicesText() {
  std::string text;
  evidence::AppendDevicesHead(&text);
  evidence::Append(evidence::Device{.name = "H100"}, &text);
  evidence::Append(evidence::DeviceProcess{4711, 7, 5, 10, "python"}, &text);
  const int64_t zero_ns = kJobZeroNs + kJobOffsetNs;
  evidence::Append(evidence::DeviceUser{0, zero_ns, 0}, &text);
  for (int64_t i = 0; i < 8; ++i) {
    evidence::DeviceSample sample{.device = 0};
    sample.at_ns = zero_ns + (i - 1) * 50'000 * kUs;
    sample.until_ns = sample.at_ns + 10 * kUs;
    sample.values.Set(evidence::DeviceValue::kSmMhz, 1980 - 10 * i);
    sample.values.Set(evidence::DeviceValue::kThermalNs, i * 20'000 * kUs);
    evidence::Append(sample, &text);
  }
  evidence::AppendNote("device 1 does not answer", &text);
  evidence::AppendEnd(&text);
  return text;
}

TEST_F(WhyTest, DevicesAreInTheReportAndOnTheTimeline) {
  Write(Job(kFirst, kSecond));
  WriteEvidence(DevicesText(), evidence::kDevicesFileName);
  MergeOptions options;
  options.input.inputs = {run_.string()};
  const auto merged = Merge(options);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_FALSE(merged->incomplete);
  EXPECT_THAT(merged->notes, Contains(HasSubstr("worker-0: devices: device 1 does not answer")));
  ASSERT_THAT(merged->report.health, SizeIs(1));
  const analysis::DeviceHealth& health = merged->report.health[0];
  EXPECT_EQ(merged->report.nodes[health.node].name, "worker-0");
  EXPECT_NEAR(health.held_back.at(evidence::DeviceValue::kThermalNs).est, 0.4, 1e-3);
  ASSERT_THAT(health.users, SizeIs(1));
  EXPECT_EQ(health.users[0].rank, 1);
  EXPECT_THAT(health.users[0].name, HasSubstr("worker-0"));
  const auto timeline = ReadFile(run_ / "out" / "timeline.perfetto-trace");
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  for (const char* name : {"GPU 0 · SM clock", "GPU 0 · held back by its temperature"}) {
    EXPECT_NE(timeline->find(name), std::string::npos) << name;
  }
  WriteEvidence("not samples\n", evidence::kDevicesFileName);
  const auto without = Merge(options);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_TRUE(without->incomplete);
  EXPECT_THAT(without->complaints,
              ElementsAre(HasSubstr("worker-0: evidence/devices.txt is skipped")));
}

TEST_F(WhyTest, SamplesAreCountersOfTheMergedTimeline) {
  Write(Job(kFirst, kSecond));
  MergeOptions options;
  options.input.inputs = {run_.string()};
  ASSERT_TRUE(Merge(options).ok());
  const auto read = [&] {
    const auto text = ReadFile(run_ / "out" / "timeline.perfetto-trace");
    EXPECT_TRUE(text.ok()) << text.status();
    return text.ok() ? *text : "";
  };
  const std::string without = read();
  EXPECT_EQ(without.find("run queue"), std::string::npos);
  WriteEvidence(Samples());
  const auto merged = Merge(options);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_FALSE(merged->incomplete);
  const std::string with = read();
  for (const char* name : {"on CPU · python (tid 10)", "run queue · python (tid 10)", "ms/s",
                           "throttled · cgroup /job/rank1"}) {
    EXPECT_NE(with.find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace syncline::merge

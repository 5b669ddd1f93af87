// SPDX-License-Identifier: Apache-2.0
// Real recordings whose fault was put there from outside, reduced to text (why_reduce): the label
// is the file's name, not what `syncline why` once said of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "analysis/why/comparison.h"
#include "analysis/why/explain.h"
#include "analysis/why/side.h"
#include "analysis/why/testing/job_text.h"

namespace syncline::analysis::why {
namespace {

struct Label {
  const char* file;
  Verdict verdict;
  size_t rank;  // of kCause
  Part cause;
  const char* before = "healthy.txt";  // the same job without a fault; nullptr: there is none
};

const std::vector<Label> kLabels = {
    {"healthy.txt", Verdict::kNobody, 0, Part::kCompute},
    {"decoy_batch.txt", Verdict::kWorkDiffers, 0, Part::kCompute},
    {"quota_rank0.txt", Verdict::kCause, 0, Part::kThrottled},
    {"thief_rank1.txt", Verdict::kCause, 1, Part::kWaitingForCpu},
    {"loader_rank1.txt", Verdict::kCause, 1, Part::kInput},
    {"gc_rank0.txt", Verdict::kCause, 0, Part::kGarbageCollection},
    {"lower_set_rank1.txt", Verdict::kCause, 1, Part::kCompute, nullptr},
    {"fewer_threads_rank1.txt", Verdict::kCause, 1, Part::kCompute, nullptr},
};

std::string TextOf(const std::string& file) {
  std::ifstream in("tests/golden/why/" + file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(WhyGolden, EachRecordingGetsTheVerdictOfItsLabel) {
  for (const Label& label : kLabels) {
    SCOPED_TRACE(label.file);
    const auto job = ReadJob(TextOf(label.file));
    ASSERT_TRUE(job.ok()) << job.status();
    const Answer answer = Explain(job->input);
    ASSERT_EQ(answer.refusal, Refusal::kNone) << answer.refusal_text;
    if (label.verdict != Verdict::kCause) {
      for (const RankFinding& finding : answer.findings) EXPECT_TRUE(finding.causes.empty());
      continue;
    }
    ASSERT_EQ(answer.verdict, Verdict::kCause);
    EXPECT_EQ(answer.findings[0].index, label.rank);
    EXPECT_EQ(answer.findings[0].causes[0].part, label.cause);
    EXPECT_EQ(answer.findings.size(), 1);
  }
}

// No file without a label, and none that is gone.
TEST(WhyGolden, EachRecordingHasALabel) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/golden/why")) {
    const std::string name = entry.path().filename().string();
    const bool known = std::any_of(kLabels.begin(), kLabels.end(),
                                   [&](const Label& label) { return name == label.file; });
    EXPECT_TRUE(known) << name;
    ++files;
  }
  EXPECT_EQ(files, kLabels.size());
}

// Exchanged names of ranks exchange the names in the answer, and nothing else.
TEST(WhyGolden, ExchangedRanksGiveTheSameAnswerExchanged) {
  for (const Label& label : kLabels) {
    SCOPED_TRACE(label.file);
    auto job = ReadJob(TextOf(label.file));
    ASSERT_TRUE(job.ok());
    const Answer answer = Explain(job->input);
    std::swap(job->input.ranks[0], job->input.ranks[1]);
    for (Arrival& arrival : job->input.arrivals) arrival.last = 1 - arrival.last;
    const Answer other = Explain(job->input);
    EXPECT_EQ(answer.verdict, other.verdict);
    ASSERT_EQ(answer.findings.size(), other.findings.size());
    for (size_t i = 0; i < answer.findings.size(); ++i) {
      EXPECT_EQ(answer.findings[i].index, 1 - other.findings[i].index);
      EXPECT_EQ(answer.findings[i].lead.est_ns, other.findings[i].lead.est_ns);
    }
    EXPECT_EQ(answer.ranks[0].mean, other.ranks[1].mean);
    EXPECT_EQ(answer.ranks[1].mean, other.ranks[0].mean);
  }
}

Side SideOfFile(const char* file) {
  const auto job = ReadJob(TextOf(file));
  EXPECT_TRUE(job.ok()) << file << ": " << job.status();
  return job.ok() ? SideOf(job->input) : Side{};
}

// Against the healthy run, what was done to a job is the part and the rank that changed most.
TEST(WhyGolden, AgainstTheHealthyRunTheFaultIsWhatChangedMost) {
  for (const Label& label : kLabels) {
    if (label.verdict != Verdict::kCause || label.before == nullptr) continue;
    SCOPED_TRACE(label.file);
    const Comparison comparison = Compare(SideOfFile(label.before), SideOfFile(label.file));
    ASSERT_EQ(comparison.mismatch, Mismatch::kNone) << comparison.mismatch_text;
    EXPECT_GT(comparison.step.lo_ppm, 20'000);
    std::pair<int64_t, std::pair<size_t, size_t>> most{0, {9, 9}};
    for (size_t rank = 0; rank < comparison.ranks.size(); ++rank) {
      for (size_t part = 0; part < kParts; ++part) {
        if (static_cast<Part>(part) == Part::kWaitAndTransfer) continue;
        const int64_t lo_ns = comparison.ranks[rank].parts[part].change.lo_ns;
        most = std::max(most, {lo_ns, {rank, part}});
      }
    }
    EXPECT_EQ(most.second.first, label.rank);
    EXPECT_EQ(static_cast<Part>(most.second.second), label.cause);
  }
}

}  // namespace
}  // namespace syncline::analysis::why

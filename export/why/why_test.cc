// SPDX-License-Identifier: Apache-2.0
// The words of the answer, from answers made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/why/model.h"
#include "common/text_width.h"
#include "common/utf8.h"
#include "export/why/testing/answers.h"
#include "export/why/why_sentences.h"
#include "export/why/why_text.h"

namespace syncline::report {
namespace {

using analysis::why::Answer;
using analysis::why::Cause;
using analysis::why::Part;
using analysis::why::PartTable;
using analysis::why::ProcessorTime;
using analysis::why::RankFinding;
using analysis::why::RankSummary;
using analysis::why::Refusal;
using analysis::why::Taker;
using analysis::why::Verdict;
using testing::AnswersWithNames;
using testing::AnswerWith;
using testing::CauseOf;
using ::testing::ContainsRegex;
using testing::FlatText;
using ::testing::HasSubstr;
using testing::kTenth;
using testing::LateRank;
using ::testing::Le;
using testing::ManyRanks;
using ::testing::Not;
using testing::RankOf;
using testing::Tenths;
using testing::Throttled;
using testing::ThrottledAnswer;
using testing::TwoRanks;

std::string TextOf(const Answer& answer, size_t width = 80) { return WhyText(answer, {width}); }

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(WhyText, AThrottledRankAsInTheGuide) {
  EXPECT_EQ(TextOf(ThrottledAnswer()),
            R"(10.0 s on 2 nodes, 2 ranks, 104 steps of one class (all_reduce x3); nothing lost

LATE    rank 1 (node beta, pid 4711, train.py): its own work takes 31.3 ms
        [28.9, 33.8] longer than the other rank's in a step of 96.2 ms
CAUSE   its container takes the processor away: throttled for 29.8 ms
        [27.6, 31.9] of the 31.3 ms
        cgroup /job/rank1: quota 0.7 CPU, throttled in 88 of 100 periods
        looked at, not the cause: waiting for a CPU (+0.2 ms a step compared
        with the other rank), input (+0.1 ms), garbage collection (+0.4 ms),
        more work (no: operators that take 1 % of the step or more run equally
        often, oneDNN's reorders aside, and its primitives with the same shapes)
COST    without this cause a step would be shorter by 30.0 ms [26.0, 34.0],
        31 %; an estimate, not replayed, and without drift (windows of one job
        differ by some percent)
ORDER   last to arrive in 101 of 104 steps (proven in 96; clocks ± 1.2 µs)
MARGIN  LATE and CAUSE hold whatever the clocks say (own work is timed on one
        clock); not known: 0.5 ms a step not covered; 0 events lost
        rank 1 would not be named for a cause if the lower end of CAUSE's
        interval, 27.6 ms, were not above 1.9 ms (2 % of the step)

mean of a step, ms    rank 0  rank 1
  compute               58.1    58.7
  throttled              0.0    29.8
  waiting for a CPU      0.6     0.8
  blocked in kernel      0.0     0.0
  input                  1.1     1.2
  host code              2.4     2.6
  garbage collection     0.3     0.7
  wait and transfer     33.2     1.9
  not covered            0.5     0.5
  step                  96.2    96.2

TRUST   both ranks covered 99.9 %; evidence: schedstat and thread states 20 Hz,
        cgroup v1; [low, high]: 95 % interval
NEXT    raise the quota of /job/rank1 on node beta (from 0.7 CPU)
)");
}

TEST(WhyText, AnAmountAboveTheLeadIsNoShare) {
  Answer answer = ThrottledAnswer();
  answer.findings[0].lead = Tenths(250, 200, 290);
  EXPECT_THAT(FlatText(answer),
              HasSubstr("throttled for 29.8 ms [27.6, 31.9] a step more than the others, more than "
                        "its whole lead of 25.0 ms"));
}

TEST(WhyText, ARankWithACauseThatIsNotLateIsNotCalledLate) {
  Answer answer = AnswerWith({CauseOf(Part::kGarbageCollection, Tenths(35, 28, 44))});
  answer.findings[0].late = false;
  answer.findings[0].lead = Tenths(12, -3, 30);
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("NAMED   rank 1 (node beta, pid 4711, train.py) loses more time than "
                              "the others to what CAUSE says, but is not shown to be late: its own "
                              "work differs from the other rank's by 1.2 ms [-0.3, 3.0] in a step "
                              "of 96.2 ms\n"));
  EXPECT_THAT(
      text, HasSubstr("collects garbage on it for 3.5 ms [2.8, 4.4] a step more than the others"));
  EXPECT_THAT(text, Not(HasSubstr("LATE")));
  EXPECT_THAT(text, HasSubstr("MARGIN  CAUSE holds whatever the clocks say"));
  EXPECT_THAT(text, HasSubstr("gc.freeze()"));
}

TEST(WhyText, ARankThatIsLateWithoutACauseIsNotAccused) {
  Answer answer = ThrottledAnswer();
  answer.verdict = Verdict::kLateCauseUnknown;
  answer.findings[0].causes.clear();
  answer.findings[0].processor = ProcessorTime{423 * kTenth, 4 * kTenth, kTenth};
  answer.ranks[0].processor = ProcessorTime{382 * kTenth, 5 * kTenth, 0};
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("CAUSE   unknown: nothing that was measured explains it for certain. "
                              "It accuses nobody"));
  EXPECT_THAT(text, HasSubstr("in a step, waits included: 42.3 ms on a CPU, 0.4 ms in a run "
                              "queue; asleep in its own work 0.1 ms or more; rank 0: 38.2 ms on a "
                              "CPU, 0.5 ms in a run queue; asleep in its own work 0.0 ms or more"));
  EXPECT_THAT(text, Not(HasSubstr("\nCOST")));
  EXPECT_THAT(text,
              HasSubstr("would not be called late if the lower end of LATE's interval, 28.9 ms"));
  EXPECT_THAT(
      text,
      HasSubstr("NEXT    compare hardware and load of node beta with those of the other nodes"));
}

TEST(WhyText, WithoutSamplesTheyAreCalledNotMeasured) {
  Answer answer = ThrottledAnswer();
  answer.verdict = Verdict::kLateCauseUnknown;
  answer.findings[0].causes.clear();
  answer.findings[0].not_causes = {
      {Part::kThrottled, 0, false}, {Part::kWaitingForCpu, 0, false}, {Part::kInput, kTenth}};
  for (RankSummary& rank : answer.ranks) {
    rank.taken_away_known = false;
    rank.sample_period_ns = 0;
  }
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("samples of the rank's processor time are missing"));
  EXPECT_THAT(text, HasSubstr("        not measured: throttled, waiting for a CPU\n"));
  EXPECT_THAT(text, HasSubstr("a run queue or asleep: not measured"));
  EXPECT_THAT(text, ContainsRegex("throttled +not measured +not measured\n"));
  EXPECT_THAT(text, HasSubstr("missing: samples of processor time"));
  EXPECT_THAT(text, HasSubstr("NEXT    record again with samples"));
}

// Rank 1 was sampled and rank 0 was not: nothing is known to be unexplained.
TEST(WhyText, WhatCannotBeComparedIsNotCalledUnexplained) {
  Answer answer = ThrottledAnswer();
  answer.verdict = Verdict::kLateCauseUnknown;
  answer.findings[0].causes.clear();
  answer.findings[0].not_causes = {{Part::kThrottled, 298 * kTenth, false},
                                   {Part::kWaitingForCpu, 2 * kTenth, false}};
  answer.ranks[0].taken_away_known = false;
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("other ranks were not sampled, so what this rank lost (throttled "
                              "29.8 ms a step, waiting for a CPU 0.8 ms) cannot be compared"));
  EXPECT_THAT(text, Not(HasSubstr("does not explain it")));
  EXPECT_THAT(text, HasSubstr("NEXT    record again with samples"));
}

TEST(WhyText, ACauseOfTheSmallerPartIsSaidAsAPart) {
  Answer answer = AnswerWith({CauseOf(Part::kWaitingForCpu, Tenths(62, 45, 78))});
  answer.verdict = Verdict::kLateCauseUnknown;
  answer.ranks[1].mean[static_cast<size_t>(Part::kHostCode)] += 200 * kTenth;
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("CAUSE   unknown for 25.1 ms of the 31.3 ms"));
  EXPECT_THAT(text, HasSubstr("most of it in host code: 22.6 ms a step, on rank 0 2.4 ms"));
  EXPECT_THAT(text,
              HasSubstr("for a part: it waits for a CPU for 6.2 ms [4.5, 7.8] of the 31.3 ms"));
  // What decides is the lead.
  EXPECT_THAT(text,
              HasSubstr("would not be called late if the lower end of LATE's interval, 28.9 ms"));
}

TEST(WhyText, WhatACauseLeavesIsSaid) {
  Answer answer = AnswerWith({CauseOf(Part::kInput, Tenths(200, 180, 220))});
  answer.ranks[1].mean[static_cast<size_t>(Part::kInput)] += 200 * kTenth;
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("CAUSE   its input is slow"));
  EXPECT_THAT(text, HasSubstr("not explained: 11.3 ms of the 31.3 ms"));
  EXPECT_THAT(text, Not(HasSubstr("most of it in input")));  // said already
}

TEST(WhyText, AnIntervalThatDecidesNothingIsNotNobody) {
  Answer answer = TwoRanks();
  answer.verdict = Verdict::kNobody;
  answer.closest = LateRank();
  answer.closest->late = false;
  EXPECT_THAT(FlatText(answer), HasSubstr("No rank is late: "));
  answer.undecided = true;
  EXPECT_THAT(FlatText(answer), HasSubstr("No rank is shown to be late: "));
  EXPECT_THAT(FlatText(answer), HasSubstr("NEXT    record for longer"));
}

TEST(WhyText, WhatIsNotCertainIsNotExcluded) {
  Answer answer = ThrottledAnswer();
  answer.findings[0].not_causes = {{Part::kInput, 31 * kTenth}, {Part::kGarbageCollection, 0}};
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("not certain enough to be named: input (+3.1 ms a step compared with "
                              "the other rank)"));
  EXPECT_THAT(text, HasSubstr("looked at, not the cause: garbage collection (0.0 ms a step "
                              "compared with the other rank)"));
}

TEST(WhyText, OtherWorkIsNoCause) {
  Answer answer = ThrottledAnswer();
  answer.verdict = Verdict::kWorkDiffers;
  answer.findings[0].causes.clear();
  answer.findings[0].work = {{"aten::conv2d", false, 12, 10},
                             {"aten::mm", true, 4, 0},
                             {"a", false, 1, 0},
                             {"b", false, 1, 0}};
  const std::string text = FlatText(answer);
  EXPECT_THAT(text,
              HasSubstr("CAUSE   its work differs: aten::conv2d runs 12.0 times a step, on the "
                        "others 10.0; aten::mm has other shapes in 4.0 executions a step; a "
                        "runs 1.0 times a step, on the others 0.0; and 1 operator more\n"));
  EXPECT_THAT(text, Not(HasSubstr("same operators")));
  EXPECT_THAT(text, HasSubstr("NEXT    balance the work"));
}

TEST(WhyText, NobodyIsLate) {
  Answer answer = TwoRanks();
  answer.verdict = Verdict::kNobody;
  answer.closest = LateRank();
  answer.closest->late = false;
  answer.closest->lead = Tenths(6, -8, 19);
  std::string text = FlatText(answer);
  EXPECT_THAT(text,
              HasSubstr("NOBODY  No rank is late: the own work of the two ranks differs by 0.6 "
                        "ms [-0.8, 1.9] in a step of 96.2 ms. 61 % of the step is compute; whether "
                        "that could be faster is "
                        "not judged.\n"));
  EXPECT_THAT(text, HasSubstr("NEXT    nothing to do for stragglers\n"));
  EXPECT_THAT(text, Not(HasSubstr("LATE ")));

  answer.steps = 40;
  answer.closest->late = true;
  text = FlatText(answer);
  EXPECT_THAT(
      text,
      HasSubstr(
          "No rank is named: the own work of rank 1 differs from the other rank's by 0.6 ms"));
  EXPECT_THAT(
      text, HasSubstr("40 steps are too few to call a rank late without a cause (60 are needed)"));
  EXPECT_THAT(text, HasSubstr("syncline why --for 60steps"));

  answer.closest->late = false;
  answer.ranks.push_back(RankOf(2, "gamma", {581, 0, 6, 0, 11, 24, 3, 332, 5}));
  EXPECT_THAT(
      FlatText(answer),
      HasSubstr("No rank is late: rank 1 has the most own work, which differs from the other "
                "ranks' median by 0.6 ms [-0.8, 1.9] in a step of 96.2 ms."));
}

TEST(WhyText, EverybodyWaitsForInput) {
  Answer answer = TwoRanks();
  answer.verdict = Verdict::kEverybody;
  answer.ranks = {RankOf(0, "alpha", {581, 0, 6, 0, 202, 24, 3, 141, 5}),
                  RankOf(1, "beta", {587, 0, 8, 0, 241, 26, 7, 88, 5})};
  answer.everybody = {Part::kInput};
  answer.closest = LateRank();
  answer.closest->late = false;
  const std::string text = FlatText(answer);
  EXPECT_THAT(text,
              HasSubstr("ALL     Everybody: input takes 21 to 25 % of the step on every rank\n"));
  EXPECT_THAT(text, HasSubstr("NEXT    give the data loaders of all ranks more workers"));
}

TEST(WhyText, OneRankIsNotCompared) {
  Answer answer = TwoRanks();
  answer.ranks.resize(1);
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("10.0 s on 1 node, 1 rank, 104 steps"));
  EXPECT_THAT(text, HasSubstr("STEPS   One rank: there is none to compare it with. A step takes "
                              "96.2 ms. 60 % of the step is compute"));
  EXPECT_THAT(text, Not(HasSubstr("whatever the clocks say")));
  EXPECT_THAT(text, HasSubstr("the rank is covered 99.9 %"));
}

TEST(WhyText, ARefusalIsOneParagraph) {
  Answer answer;
  answer.refusal = Refusal::kGpuJob;
  answer.refusal_text = "rank 0 uses an accelerator (\033[31mcuda is initialised)";
  EXPECT_EQ(FlatText(answer), "REFUSED rank 0 uses an accelerator (?[31mcuda is initialised)\n");
}

TEST(WhyText, WhatIsMissingIsSaid) {
  Answer answer = ThrottledAnswer();
  answer.incomplete = true;
  answer.lost_events = 1234;
  answer.unpaired_steps = 2;
  answer.classes.push_back({"all_reduce x4", 26, 2'600'000'000});
  answer.ranks[0].sample_gaps = 3;
  answer.ranks[1].taken_away_known = false;
  answer.clock_bound_ns.reset();
  answer.worst_not_covered_ns = 280 * kTenth;
  answer.notes = {"rank 1: a note"};
  std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("; 1 234 events lost; the recording is not complete\n"));
  EXPECT_THAT(text, HasSubstr("not judged: 26 steps of another class (all_reduce x4), 2.6 s\n"));
  EXPECT_THAT(text, HasSubstr("not judged: 2 steps that not all ranks have"));
  EXPECT_THAT(text, HasSubstr("1 234 events lost; 3 gaps in the samples\n"));
  EXPECT_THAT(text, HasSubstr("; what is not covered could change that\n"));
  EXPECT_THAT(text, HasSubstr("what is missing could overturn the answer\n"));
  EXPECT_THAT(text, HasSubstr("error of the clocks not known)"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "; missing: samples of 1 rank; [low, high]: 95 % interval\n        rank 1: a note\n"));
  EXPECT_THAT(text, Not(HasSubstr("nothing lost")));
  answer.lost_events.reset();
  text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("; how many events were lost is not known; the recording"));
}

TEST(WhyText, WhoTookTheProcessor) {
  struct Case {
    Taker taker;
    const char* says;
    const char* next;
  };
  const Case cases[] = {
      {{Taker::Kind::kOutside, "stress-ng", 99, 27'000'000},
       "processes outside of the job, 27.0 ms of CPU time a step, most by stress-ng (pid 99)",
       "move, stop or pin elsewhere stress-ng (pid 99 on node beta), or give rank 1 on node beta a "
       "CPU"},
      {{Taker::Kind::kRank, "python", 98, 1'000'000}, "other processes of the job", "different"},
      {{Taker::Kind::kOwnLoader, "pt_data", 97, 1'000'000}, "its own child processes", "workers"},
      {{Taker::Kind::kOwnLoader, "", 97, 0}, "workers were kept waiting for a CPU", "workers"},
      {{Taker::Kind::kOwnThread, "pt_autograd", 96, 1'000'000}, "own other threads", "fewer"},
      {{Taker::Kind::kSyncline, "syncline-agent", 95, 1'000'000}, "Syncline itself", "agent"},
      {{Taker::Kind::kOutside, "x", 99, 1'000'000, true}, "by the scheduler's trace: pro", "move"},
      {{Taker::Kind::kNobody, "", 0, 1'000'000, true}, "was idle for 1.0 ms a step", "a CPU quota"},
      {{}, "who ran instead: a process that this node does not show", "a CPU of its own"}};
  for (const Case& one : cases) {
    Cause cause = CauseOf(Part::kWaitingForCpu, Tenths(298, 276, 319));
    cause.taker = one.taker;
    const std::string text = FlatText(AnswerWith({cause}));
    EXPECT_THAT(text, HasSubstr(one.says));
    EXPECT_THAT(text.substr(text.find("NEXT ")), HasSubstr(one.next));
    EXPECT_EQ(text.find("scheduler's trace (who") != std::string::npos, one.taker.by_scheduler);
  }
}

TEST(WhyText, QuotasAreNotRoundedAway) {
  Cause cause = Throttled();
  for (const auto& [quota_ns, text] :
       std::vector<std::pair<int64_t, std::string>>{{125'000'000, "1.25 CPU"},
                                                    {1'200'000'000, "12 CPU"},
                                                    {100'000'000, "1 CPU"},
                                                    {500'000, "0.0050 CPU"},
                                                    {-1, "not known"}}) {
    cause.quota_ns = quota_ns;
    EXPECT_EQ(CpusText(cause), text);
  }
}

TEST(WhyText, MillisecondsNeverHideWhatThereIs) {
  EXPECT_EQ(Ms(0), "0.0");
  EXPECT_EQ(Ms(-20), "0.0");
  EXPECT_EQ(Ms(12'000), "0.012");
  EXPECT_EQ(Ms(-12'000), "-0.012");
  EXPECT_EQ(Ms(49'999), "0.050");
  EXPECT_EQ(Ms(50'000), "0.1");
  EXPECT_EQ(Ms(123'456'789), "123.5");
}

// The table's rows as printed, in tenths of a ms: [row][column]; the last row is the step.
std::vector<std::vector<int64_t>> RowsOf(const std::string& text) {
  std::vector<std::vector<int64_t>> rows;
  bool inside = false;
  for (const std::string& line : LinesOf(text)) {
    if (line.rfind("mean of a step", 0) == 0) {
      inside = true;
      continue;
    }
    if (!inside) continue;
    std::istringstream words(line);
    std::vector<int64_t> row;
    for (std::string word; words >> word;) {
      const size_t point = word.find('.');
      if (point == std::string::npos) continue;
      word.erase(point, 1);
      row.push_back(std::strtoll(word.c_str(), nullptr, 10));
    }
    rows.push_back(row);
    if (line.rfind("  step", 0) == 0) break;
  }
  return rows;
}

TEST(WhyText, PrintedColumnsAddUp) {
  std::mt19937_64 random(23);
  for (int round = 0; round < 500; ++round) {
    Answer answer = TwoRanks();
    answer.ranks.clear();
    for (int32_t rank = 0; rank < 3; ++rank) {
      PartTable parts{};
      RankSummary summary = RankOf(rank, "n", parts);
      for (int64_t& part : summary.mean) {
        part = static_cast<int64_t>(random() % 300'000'000) >> (random() % 24);
      }
      summary.mean_step_ns = std::accumulate(summary.mean.begin(), summary.mean.end(), int64_t{0});
      answer.ranks.push_back(summary);
    }
    const auto rows = RowsOf(TextOf(answer));
    ASSERT_EQ(rows.size(), analysis::why::kParts + 1);
    for (size_t column = 0; column < 3; ++column) {
      int64_t sum = 0;
      for (size_t part = 0; part < analysis::why::kParts; ++part) {
        sum += rows[part][column];
        const int64_t error = rows[part][column] * kTenth - answer.ranks[column].mean[part];
        EXPECT_LT(std::abs(error), kTenth);
      }
      EXPECT_EQ(sum, rows.back()[column]);
      EXPECT_LE(std::abs(sum * kTenth - answer.ranks[column].mean_step_ns), kTenth / 2);
    }
  }
}

TEST(WhyText, OfManyRanksSomeAreShown) {
  const std::string text = FlatText(ManyRanks());
  EXPECT_THAT(text, HasSubstr("10.0 s on 8 nodes, 64 ranks"));
  EXPECT_THAT(text, ContainsRegex("mean of a step, ms +rank 40 +rank 31 +rank 0 +rank 63\n"));
  EXPECT_THAT(text, HasSubstr("  60 ranks left out; shown: those named, then the median, the "
                              "smallest and the largest own work of the others\n"));
  EXPECT_THAT(text, HasSubstr("all 64 ranks covered 99.9 %"));
  EXPECT_THAT(text, HasSubstr("longer than the other ranks' median in a step"));
}

TEST(WhyText, NoNameBreaksTheLayout) {
  const std::string names[] = {"\033[2J\r\nevil\tname\x7f",
                               "\xc2\x9b"
                               "31m C1",
                               "\xff\xfe not UTF-8",
                               std::string(5'000, 'x'),
                               std::string(300, ' '),
                               "",
                               "grüße-" + std::string(200, 'y')};
  for (const std::string& name : names) {
    for (const Answer& answer : AnswersWithNames(name)) {
      for (const size_t width : {60, 80, 100}) {
        const std::string text = TextOf(answer, width);
        for (const std::string& line : LinesOf(text)) {
          EXPECT_THAT(DisplayWidth(line), Le(width)) << line;
          EXPECT_EQ(OnlyPrintable(line, '?'), line);
        }
      }
    }
  }
}

TEST(WhyText, NarrowTerminalsWrapUnderTheLabel) {
  const std::string text = TextOf(ThrottledAnswer(), 60);
  EXPECT_THAT(text, HasSubstr("\nLATE    rank 1 (node beta, pid 4711, train.py): its own work\n"
                              "        takes 31.3 ms [28.9, 33.8] longer than the other\n"
                              "        rank's in a step of 96.2 ms\n"));
}

TEST(WhyText, ColourIsForLabelsOnly) {
  std::string text = WhyText(ThrottledAnswer(), {80, true});
  EXPECT_THAT(text, HasSubstr("\n\033[1mLATE\033[0m    rank 1"));
  for (const std::string mark : {"\033[1m", "\033[0m"}) {
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark)) {
      text.erase(at, mark.size());
    }
  }
  EXPECT_EQ(text, TextOf(ThrottledAnswer()));
}

}  // namespace
}  // namespace syncline::report

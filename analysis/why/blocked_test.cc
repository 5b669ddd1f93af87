// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/blocked.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>

#include "analysis/why/explain.h"
#include "analysis/why/takers.h"
#include "analysis/why/testing/fake_job.h"

namespace syncline::analysis::why {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr auto kBlockedAt = static_cast<size_t>(Part::kBlocked);
constexpr auto kHostAt = static_cast<size_t>(Part::kHostCode);

Answer AnswerOf(FakeJobOptions options) { return Explain(FakeJob(std::move(options)).input()); }

double InMs(int64_t ns) { return static_cast<double>(ns) / 1e6; }

const NotACause* NotBlocked(const RankFinding& finding) {
  for (const NotACause& one : finding.not_causes) {
    if (one.part == Part::kBlocked) return &one;
  }
  return nullptr;
}

TEST(Blocked, IsNamedWithItsAmountAndWhatCameWithIt) {
  const Answer answer = AnswerOf({.steps = 200, .trouble = {{1, {.blocked_ns = 8 * kMs}}}});
  ASSERT_EQ(answer.verdict, Verdict::kCause);
  ASSERT_EQ(answer.findings.size(), 1);
  EXPECT_EQ(answer.findings[0].index, 1);
  ASSERT_EQ(answer.findings[0].causes.size(), 1);
  const Cause& cause = answer.findings[0].causes[0];
  EXPECT_EQ(cause.part, Part::kBlocked);
  EXPECT_NEAR(InMs(cause.amount.est_ns), 8, 0.8);
  EXPECT_LE(cause.amount.lo_ns, 8 * kMs);
  EXPECT_GE(cause.amount.hi_ns, 8 * kMs);
  ASSERT_TRUE(cause.blocked.has_value());
  EXPECT_FALSE(cause.blocked->by_scheduler);
  EXPECT_EQ(cause.blocked->asleep, cause.blocked->blocked) << "it never sleeps otherwise";
  ASSERT_TRUE(cause.blocked->faults.has_value());
  EXPECT_NEAR(*cause.blocked->faults, 4, 0.2);
  ASSERT_TRUE(cause.blocked->read_bytes.has_value());
  EXPECT_NEAR(*cause.blocked->read_bytes, 4 * 4096, 2000);
  EXPECT_FALSE(cause.full_memory.has_value());
  // It is taken from where it was.
  EXPECT_NEAR(InMs(answer.ranks[1].mean[kHostAt]), InMs(answer.ranks[0].mean[kHostAt]), 0.8);
  EXPECT_EQ(answer.ranks[0].mean[kBlockedAt], 0);
}

TEST(Blocked, TheGroupWhoseMemoryWasFullIsSaid) {
  const Answer answer =
      AnswerOf({.steps = 200, .trouble = {{1, {.blocked_ns = 8 * kMs, .full_memory = 30}}}});
  ASSERT_EQ(answer.verdict, Verdict::kCause);
  const std::optional<FullMemory>& full = answer.findings[0].causes.at(0).full_memory;
  ASSERT_TRUE(full.has_value());
  EXPECT_EQ(full->group.path, "/job") << "of two that were full as often the inner one";
  EXPECT_EQ(full->group.version, 2);
  EXPECT_EQ(full->group.limit_bytes, 300'000'000);
  EXPECT_NEAR(full->per_step, 30, 1.5);
}

TEST(Blocked, OtherSleepIsNone) {
  const Answer answer = AnswerOf({.steps = 200, .trouble = {{1, {.asleep_ns = 8 * kMs}}}});
  ASSERT_EQ(answer.verdict, Verdict::kLateCauseUnknown);
  const NotACause* const blocked = NotBlocked(answer.findings[0]);
  ASSERT_NE(blocked, nullptr);
  EXPECT_TRUE(blocked->measured);
  EXPECT_EQ(blocked->amount_ns, 0);
  EXPECT_EQ(answer.ranks[1].mean[kBlockedAt], 0);
}

TEST(Blocked, WhatTheOthersHaveMoreOfIsSaidWithItsSign) {
  const Answer answer = AnswerOf(
      {.steps = 200, .trouble = {{0, {.input_ns = 3 * kMs}}, {1, {.asleep_ns = 12 * kMs}}}});
  ASSERT_EQ(answer.verdict, Verdict::kLateCauseUnknown);
  for (const NotACause& one : answer.findings[0].not_causes) {
    if (one.part != Part::kInput) continue;
    EXPECT_NEAR(InMs(one.amount_ns), -3, 0.3);
  }
}

TEST(Blocked, OfBothKindsOfSleepItsPart) {
  const Trouble trouble{.asleep_ns = 4 * kMs, .blocked_ns = 8 * kMs};
  const Answer answer = AnswerOf({.steps = 900, .trouble = {{1, trouble}}});
  ASSERT_EQ(answer.verdict, Verdict::kCause);
  const Cause& cause = answer.findings[0].causes[0];
  EXPECT_EQ(cause.part, Part::kBlocked);
  EXPECT_LE(cause.amount.lo_ns, 8 * kMs);
  EXPECT_GE(cause.amount.hi_ns, 8 * kMs);
  EXPECT_NEAR(InMs(cause.amount.est_ns), 8, 1);
  EXPECT_GT(cause.blocked->less_ns, 100'000);
  EXPECT_GT(cause.blocked->more_ns, 100'000);
  EXPECT_EQ(cause.blocked->where, Part::kHostCode);
  EXPECT_NEAR(InMs(answer.findings[0].unexplained_ns()), 4, 1.2);
}

TEST(Blocked, SamplesWithoutStatesSayThatItIsNotKnown) {
  const Answer answer =
      AnswerOf({.steps = 200, .trouble = {{1, {.blocked_ns = 8 * kMs}}}, .states = false});
  ASSERT_EQ(answer.verdict, Verdict::kLateCauseUnknown);
  const NotACause* const blocked = NotBlocked(answer.findings[0]);
  ASSERT_NE(blocked, nullptr);
  EXPECT_FALSE(blocked->measured);
  EXPECT_FALSE(answer.ranks[1].blocked_known);
  EXPECT_TRUE(answer.ranks[1].taken_away_known);
}

TEST(Blocked, AFewSamplesNameNobody) {
  // 32 steps last about 0.8 s: some 16 samples, a third of which find it blocked.
  const Answer answer = AnswerOf({.steps = 32, .trouble = {{1, {.blocked_ns = 8 * kMs}}}});
  for (const RankFinding& finding : answer.findings) {
    EXPECT_TRUE(finding.causes.empty());
    const NotACause* const blocked = NotBlocked(finding);
    ASSERT_NE(blocked, nullptr);
    EXPECT_GT(blocked->amount_ns, kMs) << "it was seen, though";
  }
  EXPECT_EQ(answer.ranks[1].mean[kBlockedAt], 0) << "it stays where it was";
}

TEST(Blocked, WhereAllRanksAreNobodyIsNamed) {
  const Trouble trouble{.blocked_ns = 8 * kMs};
  const Answer answer = AnswerOf({.steps = 200, .trouble = {{0, trouble}, {1, trouble}}});
  EXPECT_EQ(answer.verdict, Verdict::kEverybody);
  EXPECT_EQ(answer.everybody, std::vector<Part>{Part::kBlocked});
}

// ---- the cut itself

struct Made {
  evidence::Evidence evidence;
  evidence::Scheduling scheduling;
  RankInput rank;
  RankSamples samples;
  std::vector<OwnInterval> steps;
  std::vector<Piece> pieces;
  std::vector<PartTable> tables;

  RankInput& Rank() {
    rank.evidence = &evidence;
    rank.evidence_process = 0;
    return rank;
  }
  // Of one second, with the turns that there are.
  void SetTrace() {
    scheduling.processes.resize(1);
    rank.scheduling = &scheduling;
    samples.driver = {{0, 0, 0}, {500 * kMs, 0, 0}, {1000 * kMs, 0, 0}};
    samples.growths.resize(2);
  }
  std::optional<BlockedSleep> Cut() {
    return CutBlocked({&Rank(), 7, &samples, steps}, &pieces, &tables);
  }
};

// Steps of 100 ms: 40 of host code, 30 of compute, 30 of waiting.
Made MadeOf(size_t steps) {
  Made made;
  for (size_t i = 0; i < steps; ++i) {
    const int64_t at_ns = static_cast<int64_t>(i) * 100 * kMs;
    const auto step = static_cast<int32_t>(i);
    made.steps.push_back({at_ns, at_ns + 100 * kMs});
    made.pieces.push_back({at_ns, at_ns + 40 * kMs, Part::kHostCode, kNoTask, step});
    made.pieces.push_back({at_ns + 40 * kMs, at_ns + 70 * kMs, Part::kCompute, 1, step});
    made.pieces.push_back(
        {at_ns + 70 * kMs, at_ns + 100 * kMs, Part::kWaitAndTransfer, kNoTask, step});
  }
  made.tables = TablesOf(made.pieces, steps);
  made.evidence.processes = {{.relation = evidence::Relation::kRecorded, .pid = 7}};
  return made;
}

// A driver, ms by ms: 'H' runs host code, 'D' is blocked, 'S' asleep and 'T' stopped in it, 'Q' is
// ready to run, 'C' computes, 's' sleeps while it computes; 'W' waits for others, asleep. Read by
// samples with pauses that vary.
class Driver {
 public:
  explicit Driver(const std::string& step, size_t steps, const std::string& between = "") {
    made_.evidence.processes = {{.relation = evidence::Relation::kRecorded, .pid = 7}};
    for (size_t i = 0; i < steps; ++i) {
      const int64_t begin_ns = now_ns_;
      Run(step, static_cast<int32_t>(i));
      made_.steps.push_back({begin_ns, now_ns_});
      Run(between, -1);
    }
    made_.tables = TablesOf(made_.pieces, steps);
    for (size_t i = 1; i < made_.samples.driver.size(); ++i) {
      Growth growth;
      growth.interval = {made_.samples.driver[i - 1].at_ns, made_.samples.driver[i].at_ns};
      made_.samples.growths.push_back(growth);
    }
    SetJudged(made_.steps, &made_.samples.growths);
    sleep_ = made_.Cut();
  }
  // Of a step, ms: taken as blocked, and the interval of that.
  double blocked() const {
    int64_t sum_ns = 0;
    for (const PartTable& table : made_.tables) sum_ns += table[kBlockedAt];
    return InMs(sum_ns) / static_cast<double>(made_.tables.size());
  }
  double least() const { return blocked() - InMs(sleep_->less_ns); }
  double most() const { return blocked() + InMs(sleep_->more_ns); }
  const std::optional<BlockedSleep>& sleep() const { return sleep_; }

 private:
  void Run(const std::string& text, int32_t step) {
    for (const char c : text) {
      const Part part = c == 'W'               ? Part::kWaitAndTransfer
                        : c == 'C' || c == 's' ? Part::kCompute
                                               : Part::kHostCode;
      std::vector<Piece>& pieces = made_.pieces;
      if (pieces.empty() || pieces.back().part != part || pieces.back().step != step) {
        pieces.push_back({now_ns_, now_ns_, part, kNoTask, step});
      }
      const bool runs = c == 'H' || c == 'C';
      on_cpu_ns_ += runs ? kMs : 0;
      queued_ns_ += c == 'Q' ? kMs : 0;
      if (c != 'Q') booked_ns_ = queued_ns_;  // when it runs again
      now_ns_ += kMs;
      pieces.back().end_ns = now_ns_;
      if (now_ns_ < due_ns_) continue;
      due_ns_ = now_ns_ + static_cast<int64_t>(25 + random_() % 50) * kMs;
      Reading reading{now_ns_ - 1, on_cpu_ns_, booked_ns_};
      reading.state = runs || c == 'Q' ? 'R' : c == 'W' || c == 's' ? 'S' : c;
      made_.samples.driver.push_back(reading);
    }
  }

  Made made_;
  std::optional<BlockedSleep> sleep_;
  std::mt19937_64 random_{3};
  int64_t now_ns_ = 0;
  int64_t due_ns_ = 0;
  int64_t on_cpu_ns_ = 0;
  int64_t queued_ns_ = 0;
  int64_t booked_ns_ = 0;
};

std::string Times(size_t count, char c) { return std::string(count, c); }

TEST(Blocked, SleepBetweenJudgedStepsSaysNothingOfThem) {
  const std::string step = Times(20, 'H') + Times(8, 'S') + Times(12, 'W');
  const Driver driver(step, 200, Times(60, 'D'));
  EXPECT_EQ(driver.sleep()->blocked, 0u);
  EXPECT_EQ(driver.blocked(), 0);
}

TEST(Blocked, AStoppedThreadIsNotBlocked) {
  const Driver driver(Times(20, 'H') + Times(15, 'T') + Times(3, 'D') + Times(12, 'W'), 400);
  EXPECT_NEAR(driver.blocked(), 3, 1);
  EXPECT_LT(driver.least(), 3);
  EXPECT_GT(driver.most(), 3);
}

TEST(Blocked, TimeThatIsBookedLateIsNotBlocked) {
  const Driver driver(Times(20, 'H') + Times(120, 'Q') + Times(6, 'D') + Times(12, 'W'), 400);
  EXPECT_NEAR(driver.blocked(), 6, 1.5);
  EXPECT_LT(driver.least(), 6);
  EXPECT_GT(driver.most(), 6);
}

TEST(Blocked, LongSleepsOfTwoKindsInTwoParts) {
  const Driver driver(Times(100, 'D') + Times(100, 's') + Times(20, 'W'), 60);
  EXPECT_NEAR(driver.blocked(), 100, 8);
}

TEST(Blocked, ByTheSchedulersTraceItIsExact) {
  Made made = MadeOf(10);
  made.scheduling.threads = {{0, 7, 7, "python"}, {0, 8, 8, "python"}};
  // Blocked from 10 to 25 ms of each step, and from 65 to 75, of which 5 are a wait; asleep
  // otherwise from 30 to 35. Another thread is blocked all the time.
  for (int64_t step = 0; step < 10; ++step) {
    const int64_t at_ns = step * 100 * kMs;
    const auto turn = [&](int64_t until, int64_t ran, int64_t pause, evidence::Pause why) {
      evidence::Turn one;
      one.until_ns = at_ns + until * kMs;
      one.ran_ns = ran * kMs;
      one.pause_ns = pause * kMs;
      one.pause = why;
      made.scheduling.turns.push_back(one);
    };
    turn(10, 10, 0, evidence::Pause::kPreempted);
    turn(30, 5, 15, evidence::Pause::kUninterruptible);
    turn(65, 30, 5, evidence::Pause::kSlept);
    turn(80, 5, 10, evidence::Pause::kUninterruptible);
    turn(100, 0, 20, evidence::Pause::kSlept);
    evidence::Turn other;
    other.thread = 1;
    other.until_ns = at_ns + 100 * kMs;
    other.pause_ns = 100 * kMs;
    other.pause = evidence::Pause::kUninterruptible;
    made.scheduling.turns.push_back(other);
  }
  made.SetTrace();
  const auto sleep = made.Cut();
  ASSERT_TRUE(sleep.has_value());
  EXPECT_TRUE(sleep->by_scheduler);
  for (const PartTable& table : made.tables) {
    EXPECT_EQ(table[kBlockedAt], 20 * kMs);
    EXPECT_EQ(table[kHostAt], 25 * kMs);
    EXPECT_EQ(table[static_cast<size_t>(Part::kCompute)], 25 * kMs);
    EXPECT_EQ(table[static_cast<size_t>(Part::kWaitAndTransfer)], 30 * kMs);
  }
}

TEST(Blocked, ATraceOfHalfTheTimeIsNotUsed) {
  Made made = MadeOf(10);
  made.scheduling.threads = {{0, 7, 7, "python"}};
  evidence::Turn turn;
  turn.until_ns = 500 * kMs;
  turn.pause_ns = 500 * kMs;
  turn.pause = evidence::Pause::kUninterruptible;
  made.scheduling.turns.push_back(turn);
  made.SetTrace();
  EXPECT_FALSE(made.Cut().has_value());
  for (const PartTable& table : made.tables) EXPECT_EQ(table[kBlockedAt], 0);
}

TEST(Blocked, OfLoaderWorkersTheOneThatIsMost) {
  Made made = MadeOf(1);
  const auto worker = [&](int32_t pid, int32_t parent) {
    evidence::Process process;
    process.relation = evidence::Relation::kRecorded;
    process.pid = pid;
    process.parent_pid = parent;
    made.evidence.processes.push_back(process);
    const auto at = static_cast<uint32_t>(made.evidence.processes.size() - 1);
    made.evidence.threads.push_back({at, pid, pid, "python"});
  };
  worker(20, 7);
  worker(21, 7);
  worker(30, 1);  // of somebody else: blocked all the time
  made.samples.driver = {{0, 0, 0}, {500 * kMs, 0, 0}, {1000 * kMs, 0, 0}};
  made.samples.growths = {{.interval = {0, 500 * kMs}}, {.interval = {500 * kMs, 1000 * kMs}}};
  EXPECT_FALSE(LoaderBlocked(made.Rank(), made.samples).has_value());
  for (int64_t i = 0; i < 40; ++i) {
    for (uint32_t thread = 0; thread < 3; ++thread) {
      evidence::ThreadSample sample{thread, i * 20 * kMs, i * 20 * kMs, 0, 0, -1};
      sample.state = thread == 2 || i % 4 < (thread == 0 ? 1 : 3) ? 'D' : 'S';
      made.evidence.thread_samples.push_back(sample);
    }
  }
  EXPECT_EQ(LoaderBlocked(made.Rank(), made.samples), 0.75);
}

// Whatever samples say, steps keep their length, and no piece loses more than it has.
TEST(Blocked, PartsAddUpToTheStep) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 50; ++round) {
    Made made = MadeOf(80);
    int64_t on_cpu_ns = 0;
    int64_t run_queue_ns = 0;
    for (int64_t at_ns = 0; at_ns < 8000 * kMs;) {
      Reading reading{at_ns, on_cpu_ns, run_queue_ns};
      reading.state = "RSDDS"[random() % 5];
      reading.major_faults = at_ns / kMs;
      made.samples.driver.push_back(reading);
      const auto next_ns = static_cast<int64_t>(20 + random() % 60) * kMs;
      on_cpu_ns += next_ns * static_cast<int64_t>(random() % 100) / 120;
      run_queue_ns += next_ns * static_cast<int64_t>(random() % 100) / 500;
      at_ns += next_ns;
    }
    made.samples.growths.resize(made.samples.driver.size() - 1);
    const auto sleep = made.Cut();
    ASSERT_TRUE(sleep.has_value());
    EXPECT_GE(sleep->less_ns, 0);
    EXPECT_GE(sleep->more_ns, 0);
    EXPECT_LE(sleep->blocked, sleep->asleep);
    int64_t blocked_ns = 0;
    for (const PartTable& table : made.tables) {
      EXPECT_EQ(std::accumulate(table.begin(), table.end(), int64_t{0}), 100 * kMs);
      for (const int64_t ns : table) EXPECT_GE(ns, 0);
      blocked_ns += table[kBlockedAt];
    }
    EXPECT_GT(blocked_ns, 0);
    for (const Piece& piece : made.pieces) {
      EXPECT_LE(piece.taken_ns, piece.length_ns());
      EXPECT_EQ(piece.taken_ns, piece.blocked_ns);
    }
  }
}

}  // namespace
}  // namespace syncline::analysis::why

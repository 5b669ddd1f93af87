// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "analysis/why/model.h"
#include "export/why/testing/answers.h"
#include "export/why/why_text.h"

namespace syncline::report {
namespace {

using analysis::why::Answer;
using analysis::why::BlockedSleep;
using analysis::why::Cause;
using analysis::why::Part;
using analysis::why::ProcessorTime;
using analysis::why::Verdict;
using testing::AnswerWith;
using testing::CauseOf;
using testing::FlatText;
using ::testing::HasSubstr;
using testing::kTenth;
using ::testing::Not;
using testing::Tenths;
using testing::Throttled;
using testing::ThrottledAnswer;

TEST(WhyText, SeveralCausesHaveAShareEach) {
  Answer answer = AnswerWith({Throttled(), CauseOf(Part::kInput, Tenths(30, 25, 41))});
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("throttled for 29.8 ms [27.6, 31.9] of the 31.3 ms"));
  EXPECT_THAT(text, HasSubstr("its data loader takes 3.0 ms [2.5, 4.1] of the 31.3 ms"));
  EXPECT_THAT(text,
              HasSubstr("COST    without all these causes a step would be shorter by 30.0 ms"));
  EXPECT_THAT(text, HasSubstr("NEXT    raise the quota of /job/rank1"));
  EXPECT_THAT(text,
              HasSubstr("\n        give the data loader of rank 1 on node beta more workers"));
}

Answer BlockedAnswer(const BlockedSleep& sleep) {
  Cause cause = CauseOf(Part::kBlocked, Tenths(298, 276, 319));
  cause.blocked = sleep;
  return AnswerWith({cause});
}

TEST(WhyText, ABlockedRankByItsSamples) {
  BlockedSleep sleep;
  sleep.asleep = 120;
  sleep.blocked = 114;
  sleep.where = Part::kInput;
  sleep.faults = 85.24;
  sleep.read_bytes = 349'100;
  const std::string text = FlatText(BlockedAnswer(sleep));
  EXPECT_THAT(text, HasSubstr("CAUSE   it is blocked in the kernel for 29.8 ms [27.6, 31.9] of the "
                              "31.3 ms: uninterruptible sleep, mostly for storage (a "
                              "file, a network file system, memory that was paged out)\n"));
  EXPECT_THAT(text,
              HasSubstr("        how long: as 114 of the 120 samples show that find it asleep "
                        "in its own work\n"));
  EXPECT_THAT(text, HasSubstr("        a step: 85.2 page faults that storage serves, and 349.1 kB "
                              "read from storage for its process\n"));
  EXPECT_THAT(text, HasSubstr("        most of it in its data loader\n"));
  EXPECT_THAT(text, HasSubstr("NEXT    give rank 1 on node beta more memory"));
}

TEST(WhyText, ABlockedRankByTheSchedulersTrace) {
  BlockedSleep sleep;
  sleep.by_scheduler = true;
  sleep.faults = 0;
  sleep.read_bytes = 0;
  const std::string text = FlatText(BlockedAnswer(sleep));
  EXPECT_THAT(text, HasSubstr("when it was blocked: by the scheduler's trace\n"));
  EXPECT_THAT(text, HasSubstr("nothing read from storage for its process: perhaps it writes"));
  EXPECT_THAT(text, HasSubstr("NEXT    keep what rank 1 on node beta reads or writes in memory"));
  EXPECT_THAT(text, HasSubstr("grep -q ^State:.D /proc/4711/status && cat /proc/4711/stack"));
}

TEST(WhyText, ABlockedRankWhoseGroupHasNoMemoryLeft) {
  Cause cause = CauseOf(Part::kBlocked, Tenths(298, 276, 319));
  cause.blocked = BlockedSleep{};
  cause.blocked->faults = 85;
  cause.full_memory = {{"/job/rank1", 1, 314'572'800, 1234, 1'000'000'000}, 12.34};
  std::string text = FlatText(AnswerWith({cause}));
  EXPECT_THAT(text, HasSubstr("its control group /job/rank1 reached its memory limit (314.6 MB) "
                              "12.3 times a step, by the kernel's count: cached files may have to "
                              "be dropped then, or memory paged out, and read again\n"));
  EXPECT_THAT(text, HasSubstr("NEXT    raise the memory limit of /job/rank1 on node beta if "
                              "workingset_refault_file or workingset_refault_anon grows"));
  EXPECT_THAT(text, HasSubstr("else keep what rank 1 on node beta reads"));
  cause.full_memory->group.limit_bytes = -1;  // it was raised meanwhile
  EXPECT_THAT(FlatText(AnswerWith({cause})), HasSubstr("its memory limit 12.3 times a step"));
  // Nothing was read: what else it may be is said all the same.
  cause.blocked->faults = 0;
  cause.blocked->read_bytes = 0;
  EXPECT_THAT(FlatText(AnswerWith({cause})), HasSubstr("perhaps it writes, or waits for"));
  cause.blocked->faults = 85;
  cause.full_memory->per_step = 0.05;
  text = FlatText(AnswerWith({cause}));
  EXPECT_THAT(text, Not(HasSubstr("control group")));
  EXPECT_THAT(text, HasSubstr("NEXT    give rank 1 on node beta more memory"));
}

TEST(WhyText, WhatABlockedRankReadIsNotSaidWhereItIsNotKnown) {
  const std::string text = FlatText(BlockedAnswer({}));
  EXPECT_THAT(text, Not(HasSubstr("page fault")));
  EXPECT_THAT(text, Not(HasSubstr("read from storage")));
}

TEST(WhyText, ALoaderWhoseWorkersAreBlocked) {
  Cause cause = CauseOf(Part::kInput, Tenths(298, 276, 319));
  EXPECT_THAT(FlatText(AnswerWith({cause})), Not(HasSubstr("blocked in the kernel")));
  cause.loader_blocked = 0.1;
  EXPECT_THAT(FlatText(AnswerWith({cause})), Not(HasSubstr("blocked in the kernel")));
  cause.loader_blocked = 0.714;
  std::string text = FlatText(AnswerWith({cause}));
  EXPECT_THAT(text, HasSubstr("of its loader's workers one was blocked in the kernel, mostly for "
                              "storage, in 71 % of its samples\n"));
  EXPECT_THAT(text, HasSubstr("NEXT    make the storage faster that the data loader of rank 1"));
  cause.full_memory = {{"/job", 2, 314'572'800, 1234, 1'000'000'000}, 3};
  text = FlatText(AnswerWith({cause}));
  EXPECT_THAT(
      text,
      HasSubstr("its control group /job reached its memory limit (314.6 MB) 3.0 times a step"));
  EXPECT_THAT(text, HasSubstr("NEXT    raise the memory limit of /job on node beta if "));
  EXPECT_THAT(text, HasSubstr("else make the storage faster that the data loader"));
  cause.loader_blocked = 0.32;
  EXPECT_THAT(FlatText(AnswerWith({cause})), HasSubstr("else give the data loader of rank 1"));
  cause.loader_blocked = 0.1;
  EXPECT_THAT(FlatText(AnswerWith({cause})), Not(HasSubstr("/job")));
}

TEST(WhyText, WhetherARankWasBlockedMayNotBeMeasured) {
  Answer answer = ThrottledAnswer();
  answer.ranks[0].blocked_known = answer.ranks[1].blocked_known = false;
  answer.findings[0].not_causes.push_back({Part::kBlocked, 0, false});
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("        not measured: blocked in kernel\n"));
  EXPECT_THAT(text, HasSubstr("  blocked in kernel   not measured  not measured\n"));
  EXPECT_THAT(text, HasSubstr("evidence: schedstat 20 Hz, cgroup v1"));
}

TEST(WhyText, ARankThatMayBeBlockedIsRecordedAgain) {
  Answer answer = ThrottledAnswer();
  answer.verdict = Verdict::kLateCauseUnknown;
  answer.findings[0].causes.clear();
  answer.findings[0].not_causes = {{Part::kBlocked, 56 * kTenth}};
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("not certain enough to be named: blocked in kernel (+5.6 ms"));
  EXPECT_THAT(text, HasSubstr("NEXT    record again with `--scheduling`"));
  answer.findings[0].not_causes = {{Part::kBlocked, kTenth}};
  EXPECT_THAT(FlatText(answer), Not(HasSubstr("--scheduling")));
}

// What it sleeps besides being blocked is said, and no more of it than that.
TEST(WhyText, SleepThatIsNotBlocked) {
  Answer answer = ThrottledAnswer();
  answer.verdict = Verdict::kLateCauseUnknown;
  answer.findings[0].causes.clear();
  answer.findings[0].processor = ProcessorTime{300 * kTenth, 4 * kTenth, 300 * kTenth};
  answer.ranks[0].processor = ProcessorTime{300 * kTenth, 5 * kTenth, 0};
  EXPECT_THAT(FlatText(answer), HasSubstr("the rank sleeps 30.0 ms a step longer in its own work "
                                          "(a lock, a connection, a sleep)"));
  answer.ranks[1].mean[static_cast<size_t>(Part::kBlocked)] = 60 * kTenth;
  EXPECT_THAT(FlatText(answer), HasSubstr("the rank sleeps 24.0 ms a step longer"));
  answer.ranks[0].blocked_known = answer.ranks[1].blocked_known = false;
  EXPECT_THAT(FlatText(answer), HasSubstr("the rank sleeps or blocks 30.0 ms a step longer in its "
                                          "own work (a file, a lock, a sleep)"));
}

}  // namespace
}  // namespace syncline::report

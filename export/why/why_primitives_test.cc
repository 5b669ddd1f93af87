// SPDX-License-Identifier: Apache-2.0
// What is said of ranks whose oneDNN does the same work in another way, from answers made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "export/why/testing/answers.h"
#include "export/why/why_text.h"

namespace syncline::report {
namespace {

using analysis::why::Answer;
using analysis::why::Cause;
using analysis::why::Part;
using testing::AnswerWith;
using testing::CauseOf;
using testing::FlatText;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Tenths;

TEST(WhyText, ALowerInstructionSetNamesWhatDiffers) {
  Cause cause = CauseOf(Part::kCompute, Tenths(290, 285, 295));
  cause.lower_sets = {{"convolution", {"jit:avx2", "x64:gemm:jit"}, {"jit:avx512_core"}},
                      {"matmul", {"brgemm:avx2"}, {"brgemm:avx512_core"}}};
  const std::string text = FlatText(AnswerWith({cause}));
  EXPECT_THAT(
      text,
      HasSubstr(
          "its oneDNN does the same work by a lower instruction set, or "
          "by none that is named: convolution, matmul take 29.0 ms [28.5, 29.5] of the 31.3 ms"));
  EXPECT_THAT(text, HasSubstr("convolution: jit:avx2, x64:gemm:jit, on the others "
                              "jit:avx512_core"));
  EXPECT_THAT(text, HasSubstr("see whether ONEDNN_MAX_CPU_ISA limits rank 1 on node beta"));
}

TEST(WhyText, FewerThreadsSayWhoUsedHowMuchAndWhatToChange) {
  Cause cause = CauseOf(Part::kCompute, Tenths(290, 285, 295));
  cause.threads = {500'000, 39'200'000, 69'200'000, 79'300'000};
  Answer answer = AnswerWith({cause});
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("its operators run on fewer threads: that takes 29.0 ms [28.5, 29.5] "
                              "of the 31.3 ms"));
  EXPECT_THAT(text, HasSubstr("CPU time of the process's threads beside its training thread (those "
                              "that carry out collectives left out): 0.5 ms a step, of the other "
                              "rank 39.2 ms; with the training thread 69.2 ms, of the other rank "
                              "79.3 ms"));
  EXPECT_THAT(text, HasSubstr("give rank 1 on node beta as many threads as the others have"));
  EXPECT_THAT(text, Not(HasSubstr("may run on"))) << "that is not known";
  EXPECT_THAT(text, Not(HasSubstr("its process has"))) << "nor that";
  answer.ranks[0].allowed_count = 4;
  answer.ranks[1].allowed_count = 1;
  answer.ranks[1].allowed_cpus = "3";
  EXPECT_THAT(FlatText(answer),
              HasSubstr("its threads may run on 1 CPU (3), those of the other rank on 4"));
  answer.ranks[1].allowed_count = 4;
  EXPECT_THAT(FlatText(answer), Not(HasSubstr("may run on")));
  answer.findings[0].causes[0].threads->own_threads = 11;
  answer.findings[0].causes[0].threads->others_threads = 14;
  EXPECT_THAT(FlatText(answer),
              HasSubstr("its process has at most 11 threads of all kinds, that of "
                        "the other rank at least 14"));
  answer.ranks[1].allowed_count = 1;
  answer.findings[0].causes[0].threads.reset();
  answer.findings[0].causes[0].lower_sets = {{"convolution", {"jit:avx2"}, {"jit:avx512_core"}}};
  EXPECT_THAT(FlatText(answer), Not(HasSubstr("may run on"))) << "it is late for another reason";
}

TEST(WhyText, LongerReordersOfARankWithoutACause) {
  Answer answer = AnswerWith({});
  answer.verdict = analysis::why::Verdict::kLateCauseUnknown;
  answer.findings[0].reorders = Tenths(123, 120, 126);
  EXPECT_THAT(FlatText(answer), HasSubstr("its oneDNN reorders data 12.3 ms a step longer than the "
                                          "others': `syncline report --section primitives`"));
}

// What the instruction set is named for is no part of what is left.
TEST(WhyText, WhatIsNotExplainedLeavesOutWhatIs) {
  Cause cause = CauseOf(Part::kCompute, Tenths(250, 245, 255));
  cause.lower_sets = {{"convolution", {"jit:avx2"}, {"jit:avx512_core"}}};
  Answer answer = AnswerWith({cause});
  answer.ranks[1].mean[static_cast<size_t>(Part::kCompute)] += Tenths(250, 0, 0).est_ns;
  EXPECT_THAT(FlatText(answer), HasSubstr("not explained: 6.3 ms of the 31.3 ms"));
  EXPECT_THAT(FlatText(answer), Not(HasSubstr("most of it in compute")));
}

}  // namespace
}  // namespace syncline::report

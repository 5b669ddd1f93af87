// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/testing/job_text.h"

#include <gtest/gtest.h>

#include "analysis/why/explain.h"
#include "analysis/why/testing/fake_job.h"

namespace syncline::analysis::why {
namespace {

TEST(JobText, WhatWasWrittenReadsBack) {
  FakeJob job({.steps = 70, .trouble = {{1, {.throttled_ns = 6'000'000}}}});
  const std::string text = WriteJob(job.input());
  const auto read = ReadJob(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(WriteJob(read->input), text);
  const Answer one = Explain(job.input());
  const Answer other = Explain(read->input);
  ASSERT_EQ(other.verdict, Verdict::kCause);
  EXPECT_EQ(one.findings[0].causes[0].amount.est_ns, other.findings[0].causes[0].amount.est_ns);
  EXPECT_EQ(other.findings[0].causes[0].group, "/job/rank1");
  ASSERT_TRUE(other.path.has_value());
  EXPECT_EQ(other.path->ranks[1].est_ns, one.path->ranks[1].est_ns);
}

TEST(JobText, AWrongLineIsNamed) {
  EXPECT_FALSE(ReadJob("").ok());
  EXPECT_FALSE(ReadJob("syncline-why-job 1\nnonsense 4\n").ok());
  EXPECT_FALSE(ReadJob("syncline-why-job 1\n5 6 7 8\n").ok());
}

TEST(JobText, ACutHasSoManySteps) {
  FakeJob job({.steps = 80});
  const OwnedJob cut = Reduced(job.input(), 65);
  EXPECT_EQ(Explain(cut.input).steps, 65);
  EXPECT_TRUE(ReadJob(WriteJob(cut.input)).ok());
}

}  // namespace
}  // namespace syncline::analysis::why

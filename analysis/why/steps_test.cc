// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/why/explain.h"
#include "analysis/why/testing/hand_job.h"

namespace syncline::analysis::why {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr uint64_t kBatches = 80;

// Each batch is for so many optimizers' steps of 10 ms, with a collective each.
JobInput& JobOf(HandJob* job, uint64_t optimizers, bool loads = true) {
  uint64_t number = 0;
  for (uint64_t batch = 0; batch < kBatches; ++batch) {
    for (uint64_t i = 0; i < optimizers; ++i, ++number) {
      for (size_t rank = 0; rank < 2; ++rank) {
        if (i == 0 && loads) job->Load(rank, 0, 1);
        job->Compute(rank, 1, 4);
        job->Collective(rank, number, 4, 4, 8);
        job->StepOptimizer(rank, 8, 10);
      }
      job->NextStep(10);
    }
  }
  return job->Done();
}

TEST(Steps, TwoOptimizersOfOneBatchAreOneStep) {
  HandJob job;
  const Answer answer = Explain(JobOf(&job, 2));
  ASSERT_EQ(answer.refusal, Refusal::kNone) << answer.refusal_text;
  EXPECT_EQ(answer.steps, kBatches - 1) << "before the first one's end there is no begin";
  EXPECT_EQ(answer.mean_step_ns, 20 * kMs);
  EXPECT_EQ(answer.unpaired_steps, 0);
  EXPECT_EQ(answer.classes[0].name, "allreduce x2");
  ASSERT_FALSE(answer.notes.empty());
  EXPECT_EQ(answer.notes[0], "a step is 2 steps of optimizers: each batch is for as many");
}

TEST(Steps, ABatchThatIsUsedManyTimesMakesNoStep) {
  HandJob job;
  const Answer answer = Explain(JobOf(&job, 5));
  EXPECT_EQ(answer.steps, 4 * kBatches) << "the class without a batch";
  EXPECT_EQ(answer.mean_step_ns, 10 * kMs);
}

TEST(Steps, WithoutBatchesEachOptimizersStepIsOne) {
  for (const uint64_t optimizers : {1, 2}) {
    HandJob job;
    const Answer answer = Explain(JobOf(&job, optimizers, /*loads=*/false));
    EXPECT_EQ(answer.steps, optimizers * kBatches - 1);
    EXPECT_EQ(answer.mean_step_ns, 10 * kMs);
  }
}

}  // namespace
}  // namespace syncline::analysis::why

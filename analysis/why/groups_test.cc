// SPDX-License-Identifier: Apache-2.0
// Jobs with several process groups.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "analysis/why/explain.h"
#include "analysis/why/testing/fake_job.h"

namespace syncline::analysis::why {
namespace {

constexpr int64_t kMs = 1'000'000;

// Four ranks in two rows and two columns: no process group has all of them.
void MakeGrid(JobInput* input) {
  for (uint32_t rank = 0; rank < input->ranks.size(); ++rank) {
    std::vector<CollectiveEntry> both;
    for (const CollectiveEntry& entry : input->ranks[rank].collectives) {
      for (const uint32_t group : {10 + rank / 2, 20 + rank % 2}) {
        both.push_back(entry);
        both.back().group = group;
      }
    }
    input->ranks[rank].collectives = std::move(both);
  }
  input->arrivals.clear();
}

TEST(Groups, ALateRankIsNamedInAJobWithoutAGroupOfAllRanks) {
  FakeJob plain({.ranks = 4, .trouble = {{2, {.input_ns = 12 * kMs}}}});
  FakeJob grid({.ranks = 4, .trouble = {{2, {.input_ns = 12 * kMs}}}});
  MakeGrid(&grid.input());
  const Answer expected = Explain(plain.input());
  const Answer answer = Explain(grid.input());
  ASSERT_EQ(answer.refusal, Refusal::kNone) << answer.refusal_text;
  EXPECT_EQ(answer.verdict, Verdict::kCause);
  ASSERT_EQ(answer.findings.size(), 1u);
  EXPECT_EQ(answer.ranks[answer.findings[0].index].rank, 2);
  EXPECT_EQ(answer.steps, expected.steps);
  EXPECT_EQ(answer.findings[0].lead.est_ns, expected.findings[0].lead.est_ns);
  EXPECT_EQ(answer.findings[0].order.steps, 0u) << "nobody is last of all";
}

TEST(Groups, AHealthyGridHasNobodyLate) {
  FakeJob grid({.ranks = 4});
  MakeGrid(&grid.input());
  const Answer answer = Explain(grid.input());
  ASSERT_EQ(answer.refusal, Refusal::kNone) << answer.refusal_text;
  EXPECT_TRUE(answer.findings.empty());
}

// Rows alone: two jobs in one, whose steps nothing ties together.
TEST(Groups, GroupsThatNothingTiesTogetherAreRefused) {
  FakeJob rows({.ranks = 4});
  for (size_t rank = 0; rank < 4; ++rank) {
    for (CollectiveEntry& entry : rows.input().ranks[rank].collectives) {
      entry.group = 10 + static_cast<uint32_t>(rank) / 2;
    }
  }
  EXPECT_EQ(Explain(rows.input()).refusal, Refusal::kRanksDisagree);
}

// One collective of a column was lost on one rank: that step is left out, and no other.
TEST(Groups, AStepOfAGridThatLacksACollectiveIsLeftOut) {
  FakeJob grid({.ranks = 4});
  MakeGrid(&grid.input());
  const size_t steps = Explain(grid.input()).steps;
  auto& collectives = grid.input().ranks[3].collectives;
  collectives.erase(collectives.begin() + static_cast<ptrdiff_t>(collectives.size() / 2));
  const Answer answer = Explain(grid.input());
  EXPECT_EQ(answer.steps, steps - 1);
  EXPECT_EQ(answer.unpaired_steps, 1u);
}

}  // namespace
}  // namespace syncline::analysis::why

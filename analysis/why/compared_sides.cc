// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/compared_sides.h"

#include <algorithm>

namespace syncline::analysis::why {

const char* MismatchJsonName(Mismatch mismatch) {
  switch (mismatch) {
    case Mismatch::kNone:
      return "";
    case Mismatch::kNowRefused:
      return "now_refused";
    case Mismatch::kBeforeRefused:
      return "before_refused";
    case Mismatch::kOtherWorldSize:
      return "other_world_size";
    case Mismatch::kOtherSteps:
      return "other_steps";
    case Mismatch::kTooFewSteps:
      return "too_few_steps";
    case Mismatch::kOtherKind:
      return "other_kind";
  }
  return "";
}

std::vector<size_t> ComparedSides::steps_before() const {
  std::vector<size_t> steps;
  for (const ComparedSide& side : befores) steps.push_back(side.steps);
  return steps;
}

uint64_t ComparedSides::fewest_steps_before() const {
  uint64_t fewest = before.steps;
  for (const size_t steps : steps_before()) fewest = std::min<uint64_t>(fewest, steps);
  return fewest;
}

void AddLost(std::optional<uint64_t> of_one, std::optional<uint64_t>* of_all) {
  if (!of_one.has_value()) of_all->reset();
  if (of_all->has_value()) **of_all += *of_one;
}

}  // namespace syncline::analysis::why

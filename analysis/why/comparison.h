// SPDX-License-Identifier: Apache-2.0
// What changed in the step between recordings of one job: one now, and one or several before. Every
// number is defined in docs/findings.md.
//
// How a change and its interval are found: changes.h. Pure, deterministic.
#ifndef SYNCLINE_ANALYSIS_WHY_COMPARISON_H_
#define SYNCLINE_ANALYSIS_WHY_COMPARISON_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/why/changes.h"
#include "analysis/why/compared_sides.h"
#include "analysis/why/model.h"
#include "analysis/why/side.h"

namespace syncline::analysis::why {

struct RankChange {
  int32_t rank = -1;
  std::array<Change, kParts> parts;
};

// An operator's own time in the compute part, mean over ranks.
struct OperatorChange {
  std::string name;
  Change time;
  double calls_before = 0;  // a step and rank
  double calls_now = 0;
  enum class Work : uint8_t {
    kMoreCalls,      // counted otherwise: more, or fewer
    kOtherShapes,    // as often, but what is recorded of its arguments differs
    kSameShapes,     // as often, with the same
    kUnknownShapes,  // as often; nothing is known of its arguments
  };
  Work work = Work::kUnknownShapes;
  // The rank whose own change is the farthest in the direction of the mean's.
  int32_t rank = -1;
  int64_t rank_change_ns = 0;
};

struct Comparison : ComparedSides {
  Refusal refusal = Refusal::kNone;  // with kNowRefused, kBeforeRefused

  // False: some rank of one side was not measured. What was throttled or waited for a CPU is then
  // in the other parts, on both sides, and those two are 0. Likewise of what was blocked.
  bool taken_away_known = false;
  bool blocked_known = false;
  // Names were replaced in a recording, and in each recording by others: shapes are then not known,
  // and operators that one side alone has are left out.
  bool redacted = false;
  bool other_detail = false;  // not all recorded with the same --detail: no operators are compared
  Change step;                // mean over ranks
  std::array<Change, kParts> parts;
  std::vector<RankChange> ranks;  // that both have, by rank
  std::vector<int32_t> only_before;
  std::vector<int32_t> only_now;
  std::vector<OperatorChange> operators;  // the largest change first; at most 32
};

ComparedSide SummaryOf(const Side& side);

// At least one before.
Comparison Compare(std::span<const Side> before, const Side& now);
Comparison Compare(const Side& before, const Side& now);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_COMPARISON_H_

// SPDX-License-Identifier: Apache-2.0
// What changed in the step between recordings of one job: one now, and one or several before. Every
// number is defined in docs/findings.md.
//
// Algorithm: steps of the two recordings have nothing in common but their kind, so each side is
// resampled for itself: blocks of its steps, with replacement (statistics.h). A change is the
// difference of two means, its interval the middle 95 % of the differences of 2,000 pairs of
// samples. A sample has the same blocks of the step, of its parts and of operators, so that shares
// of the step are computed within a sample. The interval therefore holds how steps vary within each
// recording.
//
// Drift: recordings of one job differ without any change. Of one recording before nobody can tell
// by how much. Of several (n, taken as one: their steps one after the other) the interval is not
// narrower than that in which, with 95 %, one more recording of the same kind lies: their mean
// +- t(n-1) s sqrt(1 + 1/n), with s the standard deviation of their means and Student's t. With two
// that is 16 s, with three 5 s, with ten 2.4 s. Pure, deterministic.
#ifndef SYNCLINE_ANALYSIS_WHY_COMPARISON_H_
#define SYNCLINE_ANALYSIS_WHY_COMPARISON_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/why/model.h"
#include "analysis/why/side.h"

namespace syncline::analysis::why {

// Why two recordings are not compared. Stable: scripts read the names.
enum class Mismatch : uint8_t {
  kNone,
  kNowRefused,  // `why` has no answer for it
  kBeforeRefused,
  kOtherWorldSize,  // more ranks, or fewer
  kOtherSteps,      // the judged steps are of another class
};
const char* MismatchJsonName(Mismatch mismatch);  // "other_world_size"

// Of a mean over steps: what it was, what it is, and the difference, with an interval of 95 %.
struct Change {
  int64_t before_ns = 0;
  int64_t now_ns = 0;
  MeanEstimate change;  // now less before
  // The same in millionths of the mean step of the recording before.
  int64_t est_ppm = 0;
  int64_t lo_ppm = 0;
  int64_t hi_ppm = 0;

  bool certain() const { return change.lo_ns > 0 || change.hi_ns < 0; }
};

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

struct ComparedSide {
  std::string job;
  int64_t window_ns = 0;
  uint64_t steps = 0;
  std::string step_class;
  size_t ranks = 0;
  bool incomplete = false;
  std::optional<uint64_t> lost_events = 0;  // nullopt: lost, but not counted
};

struct Comparison {
  Mismatch mismatch = Mismatch::kNone;
  std::string mismatch_text;         // one line
  Refusal refusal = Refusal::kNone;  // with kNowRefused, kBeforeRefused
  ComparedSide before;               // of all recordings before together
  ComparedSide now;
  std::vector<ComparedSide> befores;  // each of them

  // False: some rank of one side was not measured. What was throttled or waited for a CPU is then
  // in the other parts, on both sides, and those two are 0.
  bool taken_away_known = false;
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

  bool incomplete() const { return before.incomplete || now.incomplete; }
  // Whether the intervals hold how recordings differ without a change: several were before.
  bool drift_known() const { return befores.size() > 1; }
};

// At least one before.
Comparison Compare(std::span<const Side> before, const Side& now);
Comparison Compare(const Side& before, const Side& now);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_COMPARISON_H_

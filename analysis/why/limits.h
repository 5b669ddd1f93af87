// SPDX-License-Identifier: Apache-2.0
// Limits on what may have changed between two recordings: "step > +5%". Pure.
//
//   limit := name ">" "+" percent "%"        blanks may stand between these
//   name  := "step" | part | "rank:" number "." part
//   part  := of a job of ranks on CPUs, as the table or the JSON names it: "waiting for a CPU",
//            "waiting_for_cpu"; on devices likewise ("waiting for a launch", "launch"), and
//            "own_work" of a rank; of a model that is cut into partitions "work", "tensors" or
//            "between_steps", and of no rank
//
// The percentage is of the mean step before, for parts, too: a part may have been nothing before.
#ifndef SYNCLINE_ANALYSIS_WHY_LIMITS_H_
#define SYNCLINE_ANALYSIS_WHY_LIMITS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/why/comparison.h"
#include "analysis/why/cut_comparison.h"
#include "analysis/why/device_comparison.h"

namespace syncline::analysis::why {

struct Limit {
  std::string text;             // as it was given
  std::string part;             // "": the step
  std::optional<int32_t> rank;  // nullopt: the mean over ranks
  int64_t ppm = 0;              // of the step before
};

// InvalidArgument: what a limit looks like.
absl::StatusOr<Limit> ParseLimit(const std::string& text);

struct LimitResult {
  enum class State : uint8_t {
    kNotAbove,
    kAbove,      // all of the interval of the change lies above the limit
    kNotJudged,  // `why` says what is missing
  };
  Limit limit;
  State state = State::kNotJudged;
  std::string why;
  std::optional<Change> change;  // of what the limit names
};

// Limits are judged from so many steps on, on both sides.
inline constexpr uint64_t kLimitStepsMin = 60;

std::vector<LimitResult> JudgeLimits(const std::vector<Limit>& limits,
                                     const Comparison& comparison);
std::vector<LimitResult> JudgeLimits(const std::vector<Limit>& limits,
                                     const CutComparison& comparison);
std::vector<LimitResult> JudgeLimits(const std::vector<Limit>& limits,
                                     const DeviceComparison& comparison);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_LIMITS_H_

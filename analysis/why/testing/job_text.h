// SPDX-License-Identifier: Apache-2.0
// A job as text: recordings reduced to what `syncline why` is made of, for golden tests. Times are
// relative to the line before, so that a step takes little room; anything else is as in model.h.
// What was written reads back as the same values.
#ifndef SYNCLINE_ANALYSIS_WHY_TESTING_JOB_TEXT_H_
#define SYNCLINE_ANALYSIS_WHY_TESTING_JOB_TEXT_H_

#include <deque>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "analysis/why/model.h"

namespace syncline::analysis::why {

std::string WriteJob(const JobInput& job);

struct OwnedJob {
  JobInput input;
  std::deque<evidence::Evidence> evidence;  // `input` points into it
};

// InvalidArgument, with the line's number, for what WriteJob never writes.
absl::StatusOr<OwnedJob> ReadJob(std::string_view text);

// A recording cut to a size that can be kept: of each rank only what lies in its first `steps`
// optimizer steps; names that nothing uses are gone, and of operators within
// operators only the outermost is kept.
OwnedJob Reduced(const JobInput& job, size_t steps);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_TESTING_JOB_TEXT_H_

// SPDX-License-Identifier: Apache-2.0
// Reports of made-up fleets, for tests of how they are written.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_REPORT_TESTING_FLEET_H_
#define SYNCLINE_EXPORT_REPORT_TESTING_FLEET_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "analysis/report.h"

namespace syncline::report::testing {

inline constexpr int64_t kWindowNs = 5'000'000'000;

enum class Job { kTensorFlow, kPyTorch, kBoth };  // of both, every section has something to say

std::string NodeName(size_t index);
analysis::LevelledDuration Estimate(int64_t est_ns, int64_t bound_ns);
// Complete, a rank on each node; numbers differ from node to node.
analysis::Report Fleet(uint32_t nodes, Job job = Job::kBoth);

}  // namespace syncline::report::testing

#endif  // SYNCLINE_EXPORT_REPORT_TESTING_FLEET_H_

// SPDX-License-Identifier: Apache-2.0
// Did ranks do the same work? Operators by how often they ran in a step and, where recorded, with
// which shapes. How oneDNN does a piece of work (implementation, layouts) is no part of it, nor are
// its reorders, which come with the layouts. A rank that does other work is later for a reason that
// is no fault of its machine, and no cause is named for it. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_WORK_H_
#define SYNCLINE_ANALYSIS_WHY_WORK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/onednn.h"
#include "analysis/why/model.h"
#include "analysis/why/task_names.h"

namespace syncline::analysis::why {

// What a driver ran in the judged steps, but for what fetched its batches.
struct WorkDone {
  // How often, in each step.
  using Counts = std::vector<uint32_t>;
  std::map<std::pair<NameId, NameId>, Counts> counts;     // by category and name
  std::map<std::pair<NameId, NameId>, Counts> shapes;     // by name and shape
  std::map<std::pair<NameId, NameId>, int64_t> total_ns;  // beside `counts`, with what lies within
};

WorkDone WorkOf(std::span<const TaskSpan> spans, std::span<const OwnInterval> steps,
                const TaskNames& names);

// What is recorded of a primitive of oneDNN's (TaskSpan::shape); nullopt: no description of one.
std::optional<PrimitiveDescription> DescriptionOf(std::string_view shape);

// Any of its primitives is described, reorders aside.
bool ShapesKnown(const WorkDone& work, std::span<const std::string> names);

// In what `rank` differs from the median of the others; first what makes the greatest difference in
// the time spent in it, with what lies within. An operator differs where its counts do so in more
// than one step of twenty. What differs takes at least 1 % of the step, on that rank or on another,
// else nothing differs: who logs a value now and then does the same work.
std::vector<WorkDifference> DifferencesOf(std::span<const WorkDone> ranks, size_t rank,
                                          size_t steps, int64_t total_step_ns,
                                          std::span<const std::string> names);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_WORK_H_

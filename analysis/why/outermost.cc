// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/outermost.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "analysis/why/task_names.h"

namespace syncline::analysis::why {
namespace {

void KeepOutermostOf(const TaskNames& names, std::vector<TaskSpan>* spans) {
  int64_t operator_end_ns = INT64_MIN;
  std::erase_if(*spans, [&](const TaskSpan& span) {
    const bool is_operator = names.Is(span.name, Role::kOperator);
    const bool nested = span.begin_ns < operator_end_ns;
    if (is_operator) operator_end_ns = std::max(operator_end_ns, span.end_ns);
    return nested && names.Works(span);
  });
}

}  // namespace

void KeepOutermost(JobInput* job) {
  if (job->detail == "full") return;
  const TaskNames names(job->names);
  for (RankInput& rank : job->ranks) {
    for (ThreadInput& thread : rank.threads) KeepOutermostOf(names, &thread.spans);
  }
}

}  // namespace syncline::analysis::why

// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/outermost.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "analysis/why/task_names.h"
#include "common/parallel.h"

namespace syncline::analysis::why {
namespace {

struct Open {
  int64_t end_ns = 0;
  bool in_operator = false;  // what lies directly in it may be missing
};

// What the recorded programs may leave out (instrumentation/itt/brief.c): what lies directly in an
// operator of PyTorch, or in what may be left out itself.
void KeepOutermostOf(const TaskNames& names, NameId torch, std::vector<TaskSpan>* spans) {
  std::vector<Open> open;
  std::erase_if(*spans, [&](const TaskSpan& span) {
    while (!open.empty() && open.back().end_ns <= span.begin_ns) open.pop_back();
    const bool goes = !open.empty() && open.back().in_operator && names.Works(span);
    const bool is_operator = span.category == torch && names.Is(span.name, Role::kOperator);
    open.push_back({span.end_ns, goes || is_operator});
    return goes;
  });
  // Of shapes there are only those of primitives in no operator.
  for (TaskSpan& span : *spans) span.shape = 0;
}

}  // namespace

void KeepOutermost(JobInput* job, size_t threads) {
  if (job->detail == "full") return;
  const TaskNames names(job->names);
  const auto found = std::find(job->names.begin(), job->names.end(), "PyTorch");
  const auto torch = static_cast<NameId>(found - job->names.begin());
  InParallel(job->ranks.size(), threads, [&](size_t rank) {
    for (ThreadInput& thread : job->ranks[rank].threads) {
      thread.spans.Edit(
          [&](std::vector<TaskSpan>* spans) { KeepOutermostOf(names, torch, spans); });
    }
  });
}

}  // namespace syncline::analysis::why

// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/device_steps.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace syncline::analysis::why {

void NameSteps(std::span<const NumberedLaunch> launches, timeline::ProcessDevices* devices) {
  if (devices->steps_by != timeline::StepsBy::kOptimizer) return;
  std::vector<NumberedLaunch> by_time(launches.begin(), launches.end());
  std::sort(by_time.begin(), by_time.end(),
            [](const NumberedLaunch& a, const NumberedLaunch& b) { return a.at < b.at; });
  std::string last;
  uint64_t behind = 0;
  for (timeline::ProgramStep& step : devices->steps) {
    const auto first = std::lower_bound(
        by_time.begin(), by_time.end(), step.begin,
        [](const NumberedLaunch& launch, TimelineTime begin) { return launch.at < begin; });
    const bool launches_any = first != by_time.end() && first->at < step.end;
    if (launches_any) {
      last = absl::StrCat("the step of collective ", first->number);
      behind = 0;
      step.name = last;
    } else {
      step.name = last.empty() ? "" : absl::StrCat(last, ", and ", ++behind);
    }
  }
}

}  // namespace syncline::analysis::why

// SPDX-License-Identifier: Apache-2.0
// Changes for tests of what is printed of them.
#ifndef SYNCLINE_EXPORT_WHY_TESTING_CHANGES_H_
#define SYNCLINE_EXPORT_WHY_TESTING_CHANGES_H_

#include <cstdint>

#include "analysis/why/changes.h"

namespace syncline::report {

// Of a step that took 20 ms before: certain, +-0.5 ms.
inline analysis::why::Change ChangeOf(int64_t before_ms, int64_t now_ms) {
  constexpr int64_t kMs = 1'000'000;
  const int64_t change_ns = (now_ms - before_ms) * kMs;
  const int64_t ppm = change_ns / 20;
  return {before_ms * kMs, now_ms * kMs, {change_ns, change_ns - kMs / 2, change_ns + kMs / 2}, ppm,
          ppm - 25'000,    ppm + 25'000};
}

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_TESTING_CHANGES_H_

// SPDX-License-Identifier: Apache-2.0
// A control group whose memory was full. Plain values.
#ifndef SYNCLINE_ANALYSIS_FULL_GROUP_H_
#define SYNCLINE_ANALYSIS_FULL_GROUP_H_

#include <cstdint>
#include <string>

namespace syncline::analysis {

struct FullGroup {
  std::string path;
  int version = 1;           // of control groups: 1 or 2
  int64_t limit_bytes = -1;  // -1: none, or not the same all the time
  int64_t times = 0;         // how often it reached its limit, by the kernel's count
  int64_t time_ns = 0;       // meanwhile: from one sample to another
};

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_FULL_GROUP_H_

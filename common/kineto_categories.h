// SPDX-License-Identifier: Apache-2.0
// What the categories of Kineto's events mean, for the reader of its files and for the timeline.
#ifndef SYNCLINE_COMMON_KINETO_CATEGORIES_H_
#define SYNCLINE_COMMON_KINETO_CATEGORIES_H_

#include <string_view>

namespace syncline {

inline constexpr std::string_view kKinetoOperator = "cpu_op";

// A call of a device's runtime or driver, which may launch something.
inline bool IsKinetoCall(std::string_view category) {
  return category.ends_with("_runtime") || category.ends_with("_driver");
}

inline bool IsKinetoKernel(std::string_view category) {
  return category == "kernel" || category == "mtia_ccp_events";
}

// By a device: memory is copied or filled.
inline bool IsKinetoCopy(std::string_view category) {
  return category == "gpu_memcpy" || category == "gpu_memset";
}

}  // namespace syncline

#endif  // SYNCLINE_COMMON_KINETO_CATEGORIES_H_

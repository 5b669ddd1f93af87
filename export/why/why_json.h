// SPDX-License-Identifier: Apache-2.0
// The answer of `syncline why` as JSON, format_version 1: docs/why-json.md.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_WHY_JSON_H_
#define SYNCLINE_EXPORT_WHY_WHY_JSON_H_

#include <string>

#include "analysis/why/model.h"

namespace syncline::report {

inline constexpr int kWhyFormatVersion = 1;

// `recording`: where it lies, as the caller names it. `standstill`: the value of that key, as JSON;
// empty: steps ended, or nobody looked where the ranks stand.
std::string WhyJson(const analysis::why::Answer& answer, const std::string& recording,
                    const std::string& standstill = "");

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_WHY_JSON_H_

// SPDX-License-Identifier: Apache-2.0
// The answer of `syncline why A --against B` of a job on devices as JSON: docs/why-json.md.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_DEVICE_COMPARISON_JSON_H_
#define SYNCLINE_EXPORT_WHY_DEVICE_COMPARISON_JSON_H_

#include <string>

#include "export/why/compared.h"

namespace syncline::report {

std::string ComparisonJson(const ComparedDevices& compared);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_DEVICE_COMPARISON_JSON_H_

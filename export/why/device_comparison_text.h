// SPDX-License-Identifier: Apache-2.0
// The answer of `syncline why A --against B` of a job on devices, for a terminal: STEP, FAIL-IF,
// the table of the devices' parts with what of the ranks changed most, the kernels, TRUST. What
// each word and number means: docs/findings.md.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_DEVICE_COMPARISON_TEXT_H_
#define SYNCLINE_EXPORT_WHY_DEVICE_COMPARISON_TEXT_H_

#include <string>

#include "export/why/compared.h"
#include "export/why/why_text.h"

namespace syncline::report {

// As ComparisonText of jobs on CPUs.
std::string ComparisonText(const ComparedDevices& compared, const WhyTextOptions& options);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_DEVICE_COMPARISON_TEXT_H_

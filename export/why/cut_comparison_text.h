// SPDX-License-Identifier: Apache-2.0
// The answer of `syncline why A --against B` of a model that is cut into partitions, for a
// terminal: STEP, FAIL-IF, the table of what a step's critical path is made of, operators and
// tensors that changed, TRUST. What each word and number means: docs/findings.md.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_CUT_COMPARISON_TEXT_H_
#define SYNCLINE_EXPORT_WHY_CUT_COMPARISON_TEXT_H_

#include <string>

#include "export/why/compared.h"
#include "export/why/why_text.h"

namespace syncline::report {

// As ComparisonText.
std::string ComparisonText(const ComparedCuts& compared, const WhyTextOptions& options);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_CUT_COMPARISON_TEXT_H_

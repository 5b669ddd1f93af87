// SPDX-License-Identifier: Apache-2.0
// The answer of `syncline why A --against B` for a terminal: STEP, FAIL-IF, the table of parts with
// the ranks' parts that changed most, the operators, TRUST. What each word and number means:
// docs/findings.md.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_COMPARISON_TEXT_H_
#define SYNCLINE_EXPORT_WHY_COMPARISON_TEXT_H_

#include <string>

#include "export/why/compared.h"
#include "export/why/why_text.h"

namespace syncline::report {

// Lines of at most `width` columns (40 at least), each with its end. Control characters of names
// are replaced. A refusal is one paragraph.
std::string ComparisonText(const ComparedRecordings& compared, const WhyTextOptions& options);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_COMPARISON_TEXT_H_

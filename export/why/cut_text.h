// SPDX-License-Identifier: Apache-2.0
// The answer of `syncline why` of a model that is cut into partitions, for a terminal: STEP, PATH
// with its table, TENSORS, WORK, OVERLAP, SAVES, TRUST, NEXT. What each word and number means:
// docs/findings.md.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_CUT_TEXT_H_
#define SYNCLINE_EXPORT_WHY_CUT_TEXT_H_

#include <string>

#include "analysis/why/cut_model.h"
#include "export/why/why_text.h"

namespace syncline::report {

// As WhyText.
std::string CutWhyText(const analysis::why::CutAnswer& answer, const WhyTextOptions& options);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_CUT_TEXT_H_

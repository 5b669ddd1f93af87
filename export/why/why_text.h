// SPDX-License-Identifier: Apache-2.0
// The answer of `syncline why` for a terminal: LATE, CAUSE, COST, ORDER, MARGIN, the table of
// parts, TRUST, NEXT. What each word and number means: docs/findings.md. NAMED stands in place of
// LATE for a rank with a cause that is not shown to be late; NOBODY, STEPS and ALL in place of both
// where no rank is named.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_WHY_TEXT_H_
#define SYNCLINE_EXPORT_WHY_WHY_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/why/model.h"

namespace syncline::report {

struct WhyTextOptions {
  size_t width = 100;  // columns of the terminal
  bool color = false;  // ANSI colours for the labels
};

// Lines of at most `width` columns (40 at least), each with its end. Control characters of names
// are replaced. A refusal is one paragraph.
std::string WhyText(const analysis::why::Answer& answer, const WhyTextOptions& options);

// `ns`, none below 0, as tenths of a ms that add up to the rounded sum: by largest remainder.
std::vector<int64_t> RoundedToTenths(const std::vector<int64_t>& ns);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_WHY_TEXT_H_

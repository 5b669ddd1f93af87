// The answer of `syncline why` for a terminal: LATE, CAUSE, COST, ORDER, MARGIN, the table of
// parts, TRUST, NEXT. What each word and number means: docs/findings.md.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_WHY_TEXT_H_
#define SYNCLINE_EXPORT_WHY_WHY_TEXT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/why/model.h"

namespace syncline::report {

struct WhyTextOptions {
  size_t width = 100;  // columns of the terminal
  bool color = false;  // ANSI colours for the labels
};

// Lines, each with its end. A refusal is one paragraph.
std::string WhyText(const analysis::why::Answer& answer, const WhyTextOptions& options);

// `ns` as tenths of a ms that add up to the rounded sum: by largest remainder.
std::vector<int64_t> RoundedToTenths(const std::vector<int64_t>& ns);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_WHY_TEXT_H_

// SPDX-License-Identifier: Apache-2.0
// How the text report tells what is likely from what is proven. Pure.
#ifndef SYNCLINE_EXPORT_REPORT_LEVELS_TEXT_H_
#define SYNCLINE_EXPORT_REPORT_LEVELS_TEXT_H_

#include <string>

#include "analysis/report.h"

namespace syncline::report {

// What "likely" assumes, where anything is called that; a warning where the assumption is false.
struct AssumptionText {
  std::string warning;
  std::string text;
};
AssumptionText TextOf(const analysis::Report& report);

// For how many collectives it is decided, and how, who entered first; "" where there is none.
std::string OrderOfEntries(const analysis::Report& report);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_LEVELS_TEXT_H_

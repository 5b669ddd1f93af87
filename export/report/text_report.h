// SPDX-License-Identifier: Apache-2.0
// The report for a terminal.
#ifndef SYNCLINE_EXPORT_REPORT_TEXT_REPORT_H_
#define SYNCLINE_EXPORT_REPORT_TEXT_REPORT_H_

#include <string>

#include "analysis/report.h"

namespace syncline::report {

struct TextOptions {
  size_t width = 100;  // columns of the terminal
  bool color = false;  // ANSI colours for headings and for what is wrong
  size_t tasks_per_domain = 8;
};

std::string TextReport(const analysis::Report& report, const TextOptions& options);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_TEXT_REPORT_H_

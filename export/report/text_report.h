// SPDX-License-Identifier: Apache-2.0
// The report for a terminal: one screen of what matters most, whatever the number of nodes; or
// everything; or some sections (sections.h) in full.
#ifndef SYNCLINE_EXPORT_REPORT_TEXT_REPORT_H_
#define SYNCLINE_EXPORT_REPORT_TEXT_REPORT_H_

#include <string>
#include <vector>

#include "analysis/report.h"

namespace syncline::report {

struct TextOptions {
  size_t width = 100;  // columns of the terminal
  bool color = false;  // ANSI colours for headings and for what is wrong
  bool full = false;
  std::vector<std::string> sections;  // names of Sections(); empty: one screen, or all of it
};

std::string TextReport(const analysis::Report& report, const TextOptions& options);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_TEXT_REPORT_H_

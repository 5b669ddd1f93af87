// SPDX-License-Identifier: Apache-2.0
// The report as JSON, format_version 1: out/report.json and `syncline report --json`. Integers are
// ns unless the key says otherwise; an interval is {"est_ns", "lo_ns", "hi_ns", "bound_ns"}, null
// where unknown.
#ifndef SYNCLINE_EXPORT_REPORT_JSON_REPORT_H_
#define SYNCLINE_EXPORT_REPORT_JSON_REPORT_H_

#include <string>

#include "analysis/report.h"

namespace syncline::report {

inline constexpr int kFormatVersion = 1;

std::string ReportJson(const analysis::Report& report);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_JSON_REPORT_H_

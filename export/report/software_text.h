// SPDX-License-Identifier: Apache-2.0
// The part of the section on hot code (hot_text.h) that says how many page faults, switches and
// changes of processor each task had.
#ifndef SYNCLINE_EXPORT_REPORT_SOFTWARE_TEXT_H_
#define SYNCLINE_EXPORT_REPORT_SOFTWARE_TEXT_H_

#include <nlohmann/json_fwd.hpp>

#include "analysis/report.h"
#include "export/report/page.h"

namespace syncline::report {

// Nothing where the recording has no such events.
void PrintSoftware(Page* page);
nlohmann::ordered_json SoftwareInJson(const analysis::Report& report);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_SOFTWARE_TEXT_H_

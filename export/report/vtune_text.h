// SPDX-License-Identifier: Apache-2.0
// The section on the results of Intel VTune beside the recording (sections.h), with the command
// lines that show them.
#ifndef SYNCLINE_EXPORT_REPORT_VTUNE_TEXT_H_
#define SYNCLINE_EXPORT_REPORT_VTUNE_TEXT_H_

#include <nlohmann/json_fwd.hpp>

#include "analysis/report.h"
#include "export/report/page.h"

namespace syncline::report {

bool HasVtune(const analysis::Report& report);
void VtuneInFull(Page* page);
void VtuneInJson(const analysis::Report& report, nlohmann::ordered_json* json);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_VTUNE_TEXT_H_

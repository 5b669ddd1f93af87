// SPDX-License-Identifier: Apache-2.0
// The section on what threads did by their nodes' schedulers (sections.h): ran, were ready to run
// while somebody else had the CPU, slept.
#ifndef SYNCLINE_EXPORT_REPORT_SCHEDULING_TEXT_H_
#define SYNCLINE_EXPORT_REPORT_SCHEDULING_TEXT_H_

#include <nlohmann/json_fwd.hpp>

#include "analysis/report.h"
#include "export/report/page.h"

namespace syncline::report {

bool HasScheduling(const analysis::Report& report);
void SchedulingInFull(Page* page);
void SchedulingInShort(Page* page);
void SchedulingInJson(const analysis::Report& report, nlohmann::ordered_json* json);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_SCHEDULING_TEXT_H_

// SPDX-License-Identifier: Apache-2.0
// The section on the code that ran under each task (sections.h), by samples of the threads' stacks.
#ifndef SYNCLINE_EXPORT_REPORT_HOT_TEXT_H_
#define SYNCLINE_EXPORT_REPORT_HOT_TEXT_H_

#include <nlohmann/json_fwd.hpp>

#include "analysis/report.h"
#include "export/report/page.h"

namespace syncline::report {

bool HasHotCode(const analysis::Report& report);
void HotCodeInFull(Page* page);
void HotCodeInShort(Page* page);
void HotCodeInJson(const analysis::Report& report, nlohmann::ordered_json* json);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_HOT_TEXT_H_

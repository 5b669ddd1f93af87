// SPDX-License-Identifier: Apache-2.0
// The section on NCCL's communicators (sections.h): who waits in them.
#ifndef SYNCLINE_EXPORT_REPORT_COMMUNICATORS_TEXT_H_
#define SYNCLINE_EXPORT_REPORT_COMMUNICATORS_TEXT_H_

#include <nlohmann/json_fwd.hpp>

#include "analysis/report.h"
#include "export/report/page.h"

namespace syncline::report {

bool HasCommunicators(const analysis::Report& report);
void CommunicatorsInFull(Page* page);
void CommunicatorsInShort(Page* page);
void CommunicatorsInJson(const analysis::Report& report, nlohmann::ordered_json* json);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_COMMUNICATORS_TEXT_H_

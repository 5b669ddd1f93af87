// SPDX-License-Identifier: Apache-2.0
// The section on oneDNN's primitives (sections.h).
#ifndef SYNCLINE_EXPORT_REPORT_PRIMITIVES_TEXT_H_
#define SYNCLINE_EXPORT_REPORT_PRIMITIVES_TEXT_H_

#include <nlohmann/json_fwd.hpp>

#include "analysis/report.h"
#include "export/report/page.h"

namespace syncline::report {

bool HasPrimitives(const analysis::Report& report);
void PrimitivesInFull(Page* page);
void PrimitivesInShort(Page* page);
void PrimitivesInJson(const analysis::Report& report, nlohmann::ordered_json* json);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_PRIMITIVES_TEXT_H_

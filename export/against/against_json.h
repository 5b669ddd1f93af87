// SPDX-License-Identifier: Apache-2.0
// A comparison of reports as JSON, format_version 1: docs/schemas/report-comparison.schema.json.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_AGAINST_AGAINST_JSON_H_
#define SYNCLINE_EXPORT_AGAINST_AGAINST_JSON_H_

#include <string>

#include "export/against/against_text.h"

namespace syncline::report {

std::string AgainstJson(const ComparedReports& compared);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_AGAINST_AGAINST_JSON_H_

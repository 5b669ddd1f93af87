// SPDX-License-Identifier: Apache-2.0
// The section on what the devices of the processes did (sections.h), by their profiles.
#ifndef SYNCLINE_EXPORT_REPORT_DEVICES_TEXT_H_
#define SYNCLINE_EXPORT_REPORT_DEVICES_TEXT_H_

#include <nlohmann/json_fwd.hpp>

#include "analysis/report.h"
#include "export/report/page.h"

namespace syncline::report {

bool HasDevices(const analysis::Report& report);
void DevicesInFull(Page* page);
void DevicesInShort(Page* page);
void DevicesInJson(const analysis::Report& report, nlohmann::ordered_json* json);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_DEVICES_TEXT_H_

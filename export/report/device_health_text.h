// SPDX-License-Identifier: Apache-2.0
// The section on how devices were (sections.h), by the samples of their drivers.
#ifndef SYNCLINE_EXPORT_REPORT_DEVICE_HEALTH_TEXT_H_
#define SYNCLINE_EXPORT_REPORT_DEVICE_HEALTH_TEXT_H_

#include <nlohmann/json_fwd.hpp>

#include "analysis/report.h"
#include "export/report/page.h"

namespace syncline::report {

bool HasDeviceHealth(const analysis::Report& report);
void DeviceHealthInFull(Page* page);
// What is notable: devices that were held back, and errors.
void DeviceHealthInShort(Page* page);
void DeviceHealthInJson(const analysis::Report& report, nlohmann::ordered_json* json);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_DEVICE_HEALTH_TEXT_H_

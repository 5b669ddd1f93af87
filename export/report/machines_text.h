// SPDX-License-Identifier: Apache-2.0
// The section on what the machines did (sections.h), by the samples of the nodes' kernels.
#ifndef SYNCLINE_EXPORT_REPORT_MACHINES_TEXT_H_
#define SYNCLINE_EXPORT_REPORT_MACHINES_TEXT_H_

#include <nlohmann/json_fwd.hpp>

#include "analysis/report.h"
#include "export/report/page.h"

namespace syncline::report {

bool HasMachines(const analysis::Report& report);
void MachinesInFull(Page* page);
// What is notable: waits for a CPU, and other processes that took much of one.
void MachinesInShort(Page* page);
bool HasMachineLines(const analysis::Report& report);
void MachinesInJson(const analysis::Report& report, nlohmann::ordered_json* json);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_MACHINES_TEXT_H_

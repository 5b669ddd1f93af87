// SPDX-License-Identifier: Apache-2.0
// The section on the network (sections.h), by what kernels say of TCP connections; and what of it
// `syncline why` says, too.
#ifndef SYNCLINE_EXPORT_REPORT_NETWORK_TEXT_H_
#define SYNCLINE_EXPORT_REPORT_NETWORK_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "analysis/network.h"
#include "analysis/report.h"
#include "export/report/page.h"

namespace syncline::report {

bool HasNetwork(const analysis::Report& report);
void NetworkInFull(Page* page);
// What is notable: retransmitted segments, send buffers that are too small, slow pairs.
void NetworkInShort(Page* page);
void NetworkInJson(const analysis::Report& report, nlohmann::ordered_json* json);

// One sentence for each of the first findings of each kind, and how many more there are.
std::vector<std::string> NetworkSentences(std::span<const analysis::NetworkFinding> findings);
nlohmann::ordered_json FindingsJson(std::span<const analysis::NetworkFinding> findings);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_NETWORK_TEXT_H_

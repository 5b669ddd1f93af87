// SPDX-License-Identifier: Apache-2.0
// What the sections of the report (sections.h) print: Has...() whether there is anything,
// ...InFull() all of it, ...InShort() its part of the one-screen report. Each pair prints the same
// values, and both only values that the JSON holds or that count or add up such values. A section
// may have a header of its own instead.
#ifndef SYNCLINE_EXPORT_REPORT_SECTION_PRINTERS_H_
#define SYNCLINE_EXPORT_REPORT_SECTION_PRINTERS_H_

#include <nlohmann/json_fwd.hpp>

#include "analysis/report.h"
#include "export/report/page.h"

namespace syncline::report {

// nodes_text.cc
void RecordingInFull(Page* page);
void RecordingInShort(Page* page);
bool HasNodes(const analysis::Report& report);
void NodesInFull(Page* page);
void NodesInShort(Page* page);

// coverage_text.cc
bool HasCoverage(const analysis::Report& report);
void CoverageInFull(Page* page);
void CoverageInShort(Page* page);
void LossesInFull(Page* page);
void LossesInShort(Page* page);

// clock_events_text.cc
bool HasClockEvents(const analysis::Report& report);
void ClockEventsInFull(Page* page);
void ClockEventsInShort(Page* page);
bool HasWallClocks(const analysis::Report& report);
void WallClocksInFull(Page* page);
void WallClocksInShort(Page* page);

// steps_text.cc
bool HasSteps(const analysis::Report& report);
void StepsInFull(Page* page);
void StepsInShort(Page* page);

// collectives_text.cc
bool HasCollectives(const analysis::Report& report);
void CollectivesInFull(Page* page);
void CollectivesInShort(Page* page);

// transfers_text.cc
bool HasTransfers(const analysis::Report& report);
void TransfersInFull(Page* page);
void TransfersInShort(Page* page);
// How many rows of collectives, of transfers and of tensors the one-screen report has room for.
size_t RowsOfEach(const analysis::Report& report);

// tensors_text.cc
bool HasTensors(const analysis::Report& report);
void TensorsInFull(Page* page);
void TensorsInShort(Page* page);

// messages_text.cc
bool HasMessages(const analysis::Report& report);
void MessagesInFull(Page* page);
void MessagesInShort(Page* page);

// operators_text.cc
bool HasOperators(const analysis::Report& report);
void OperatorsInFull(Page* page);
void OperatorsInShort(Page* page);

// partitions_text.cc
bool HasPartitions(const analysis::Report& report);
void PartitionsInFull(Page* page);

// profiles_text.cc
bool HasProfiles(const analysis::Report& report);
void ProfilesInFull(Page* page);
void ProfilesInShort(Page* page);

// receipt_text.cc
bool HasOverhead(const analysis::Report& report);
void OverheadInFull(Page* page);
void OverheadInShort(Page* page);
void OverheadInJson(const analysis::Report& report, nlohmann::ordered_json* json);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_SECTION_PRINTERS_H_

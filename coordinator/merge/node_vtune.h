// SPDX-License-Identifier: Apache-2.0
// The results of Intel VTune beside a recording: what their records say, and the command lines with
// which VTune shows them.
#ifndef SYNCLINE_COORDINATOR_MERGE_NODE_VTUNE_H_
#define SYNCLINE_COORDINATOR_MERGE_NODE_VTUNE_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/vtune_results.h"
#include "coordinator/merge/inputs.h"

namespace syncline::merge {

// Of all nodes, by node and pid. A record that cannot be read is a complaint.
std::vector<analysis::VtuneResult> ReadVtuneResults(OpenedInputs* inputs);

// Fills in when the spans were since VTune began; those of nodes whose clock is not known go.
void PlaceVtuneSpans(const OpenedInputs& inputs, std::vector<analysis::VtuneResult>* results);

// A line for each result: how it gets the spans of this merge, whose CSVs are in `out`.
std::vector<std::string> VtuneImports(const OpenedInputs& inputs,
                                      const std::vector<analysis::VtuneResult>& results,
                                      const std::filesystem::path& out);

struct LateRank {
  int32_t rank = -1;
  std::string node;  // empty: not known
  int32_t pid = 0;   // as it sees itself; 0: not known
};
// A line for each of these ranks that VTune looked at.
std::vector<std::string> VtuneOfRanks(const OpenedInputs& inputs,
                                      const std::vector<analysis::VtuneResult>& results,
                                      const std::vector<LateRank>& ranks);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_NODE_VTUNE_H_

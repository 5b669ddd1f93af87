// SPDX-License-Identifier: Apache-2.0
#include "coordinator/record/vtune_nodes.h"

#include "absl/strings/str_cat.h"

namespace syncline::record {

std::string WhyNoVtune(const v1::DescribeResponse& description) {
  for (const v1::NodeTool& tool : description.tools()) {
    if (tool.name() == "vtune") return tool.problem();
  }
  return "VTune was not found: neither by VTUNE_PROFILER_DIR and PATH of the agent nor in "
         "/opt/intel/oneapi/vtune";
}

absl::Status CheckVtune(const std::vector<NodeProgress>& nodes) {
  std::string lines;
  for (const NodeProgress& node : nodes) {
    if (!node.takes_part) continue;
    if (node.no_vtune.empty()) return absl::OkStatus();
    absl::StrAppend(&lines, "\n  ", node.record->name, " (", node.record->address,
                    "): ", node.no_vtune);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("VTune is usable on no node, so nothing was recorded; docs/vtune.md says how "
                   "the agents find it:",
                   lines));
}

}  // namespace syncline::record

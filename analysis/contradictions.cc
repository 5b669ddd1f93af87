// SPDX-License-Identifier: Apache-2.0
#include "analysis/contradictions.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"

namespace syncline::analysis {

Contradictions ContradictionsOf(const Report& report) {
  return {.proven = report.messages.contradictions + report.tensors.contradictions +
                    report.transfers.contradictions,
          .likely = report.messages.likely_contradictions + report.tensors.likely_contradictions +
                    report.transfers.likely_contradictions + report.collectives.contradictions +
                    report.collectives.likely_contradictions};
}

Contradictions ContradictionsOf(const timeline::BuiltTimeline& built, const Models& models) {
  Report report;
  const std::vector<std::optional<int64_t>> no_wall_clocks(built.nodes.size());
  report.messages = SummariseMessages(built.nodes, no_wall_clocks, models);
  report.tensors = SummariseTensors(built.nodes, models);
  report.transfers = SummariseTransfers(built.transfers, models);
  report.collectives = SummariseCollectives(built.collectives, models);
  return ContradictionsOf(report);
}

void KeepContradictions(const Report& contradicted, Report* report) {
  report->messages.contradictions = contradicted.messages.contradictions;
  report->messages.checked = contradicted.messages.checked;
  report->tensors.contradictions = contradicted.tensors.contradictions;
  report->transfers.contradictions = contradicted.transfers.contradictions;
  for (NodeReport& node : report->nodes) node.bound_ns.reset();
}

std::string BoundsDoNotHoldText(uint64_t count) {
  return absl::StrCat(count, " of the recorded messages, tensors and transfers ",
                      count == 1 ? "contradicts" : "contradict",
                      " the clocks: their bounds do not hold, and nothing across nodes is called "
                      "proven or likely (`syncline clocks`: how they were measured)");
}

}  // namespace syncline::analysis

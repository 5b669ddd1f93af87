// SPDX-License-Identifier: Apache-2.0
#include "analysis/contradictions.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"

namespace syncline::analysis {

Contradictions ContradictionsOf(const Report& report) {
  Contradictions sum;
  const auto add = [&](const auto& part) {
    sum.proven += part.contradictions;
    sum.likely += part.likely_contradictions;
  };
  add(report.messages);
  add(report.tensors);
  add(report.transfers);
  add(report.collectives);
  return sum;
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
  const auto keep = [](const auto& from, auto* to) {
    to->contradictions = from.contradictions;
    to->likely_contradictions = from.likely_contradictions;
  };
  keep(contradicted.messages, &report->messages);
  keep(contradicted.tensors, &report->tensors);
  keep(contradicted.transfers, &report->transfers);
  keep(contradicted.collectives, &report->collectives);
  report->messages.checked = contradicted.messages.checked;
  for (size_t i = 0; i < report->nodes.size(); ++i) {
    report->nodes[i].bound_ns = contradicted.nodes[i].bound_ns;
  }
}

std::string ContradictionText(uint64_t count, const char* what) {
  return absl::StrCat(count, " of the recorded messages, tensors, transfers and collectives ",
                      count == 1 ? "contradicts " : "contradict ", what);
}

}  // namespace syncline::analysis

// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/probe_counts.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "coordinator/clocks/probe_report.h"

namespace syncline::merge {

void AddProbeCounts(const recording::Layout& layout, analysis::Report* report) {
  const auto text = ReadFile(layout.Probes());
  if (absl::IsNotFound(text.status())) return;
  auto probes = text.ok() ? clocks::ReportFromJson(*text)
                          : absl::StatusOr<clocks::ProbeReport>(text.status());
  if (!probes.ok()) {
    report->notes.push_back(absl::StrCat(
        "\"", layout.Probes().string(), "\" ", text.ok() ? "is damaged" : "cannot be read",
        ": what nodes counted of their clock probes is not shown"));
    return;
  }
  for (clocks::ProbeReport::Node& node : probes->nodes) {
    std::erase_if(node.counts, [](const auto& count) { return count.second == 0; });
    for (analysis::NodeReceipt& receipt : report->receipt) {
      if (receipt.name == node.node) receipt.probes = node.counts;
    }
  }
}

}  // namespace syncline::merge

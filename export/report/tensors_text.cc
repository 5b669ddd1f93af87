// SPDX-License-Identifier: Apache-2.0
// Tensors that crossed between processes: the edges that the graph's partition cut.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/duration_text.h"
#include "export/report/section_printers.h"
#include "export/report/spread.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::Report;
using analysis::TensorEdgeReport;
using analysis::TensorReport;

// What the receivers waited in all, about.
double WaitOf(const TensorEdgeReport& edge) {
  return static_cast<double>(edge.count) * static_cast<double>(edge.waiting_ns.value_or(0));
}

Table TableOf(const std::vector<const TensorEdgeReport*>& rows, const std::string& title,
              const Report& report) {
  Table table({Table::Names(title),
               {"from", Table::Align::kLeft, true},
               {"to", Table::Align::kLeft, true},
               {"count", Table::Align::kRight},
               {"bytes", Table::Align::kRight},
               {"receiver waits", Table::Align::kRight},
               {"send to receipt", Table::Align::kRight}});
  const auto& nodes = report.nodes;
  for (const TensorEdgeReport* edge : rows) {
    table.Add({edge->tensor, nodes[edge->send_node].name, nodes[edge->receive_node].name,
               Count(edge->count),
               edge->sized == 0 ? "-" : Count(*edge->sized_bytes) + (edge->bytes() ? "" : "*"),
               edge->waiting_ns.has_value() ? DurationText(*edge->waiting_ns) : "-",
               WithBound(edge->flight)});
  }
  return table;
}

void ExplainSizes(const std::vector<const TensorEdgeReport*>& rows, Page* page) {
  const bool in_part = std::any_of(rows.begin(), rows.end(), [](const TensorEdgeReport* edge) {
    return edge->sized > 0 && !edge->bytes();
  });
  if (!in_part) return;
  page->Line("*: median of the tensors whose size is known, which are the larger ones");
}

void WarnOfContradictions(Page* page) {
  const uint64_t contradictions = page->report().tensors.contradictions;
  if (contradictions == 0) return;
  page->Warn(
      absl::StrCat(Plural(contradictions, "tensor"),
                   " cannot have arrived when the clock model says: its bounds do not hold"));
}

}  // namespace

bool HasTensors(const Report& report) { return !report.tensors.edges.empty(); }

void TensorsInFull(Page* page) {
  const TensorReport& tensors = page->report().tensors;
  const std::vector<const TensorEdgeReport*> rows = Ranked(tensors.edges, WaitOf);
  page->Print(TableOf(rows, "tensor", page->report()));
  ExplainSizes(rows, page);
  page->Line(
      "receiver waits: from when the receiver began to wait until the tensor was there; send to "
      "receipt: from the start of its send until the tensor was there. bytes and times are "
      "medians. Sorted by count x receiver waits.");
  if (tensors.across_nodes > 0) {
    page->Line(absl::StrCat("merged by wall clock, ", Count(tensors.backwards_by_wall_clock),
                            " of ", Plural(tensors.across_nodes, "tensor"),
                            " arrive before they were sent; in this timeline ",
                            Count(tensors.backwards_here)));
  }
  WarnOfContradictions(page);
  const uint64_t unmatched = tensors.unmatched.unmatched_sends_in_complete_steps +
                             tensors.unmatched.unmatched_receives_in_complete_steps;
  if (unmatched > 0) {
    page->Line(absl::StrCat("in complete steps, ", Plural(unmatched, "tensor"),
                            " with only the send or only the receive recorded (below level 3 the "
                            "profiler leaves out cheap sends)"));
  }
}

void TensorsInShort(Page* page) {
  const Report& report = page->report();
  const std::vector<TensorEdgeReport>& edges = report.tensors.edges;
  const auto rows = First(Ranked(edges, WaitOf), RowsOfEach(report));
  const std::string title = ShownOf("Tensors", rows.size(), edges.size()) + " · medians";
  page->PrintBelow(title, TableOf(rows, title, report));
  ExplainSizes(rows, page);
  WarnOfContradictions(page);
}

}  // namespace syncline::report

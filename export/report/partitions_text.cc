// SPDX-License-Identifier: Apache-2.0
// Partitions of TensorFlow's graphs.
#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "export/report/section_printers.h"
#include "export/report/spread.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::Report;
using timeline::Partition;

// A graph of a partition, or what is known of a partition without graphs.
struct Row {
  std::string partition;
  std::string node;
  std::optional<uint64_t> steps;
  uint64_t nodes = 0;
  uint64_t types = 0;
  uint64_t sends = 0;
  uint64_t receives = 0;
};

Row RowOf(const Partition& partition, const std::string& node, std::optional<uint64_t> steps,
          const std::vector<uint32_t>& nodes) {
  Row row;
  row.partition = absl::StrReplaceAll(
      partition.devices.empty() ? partition.task : absl::StrJoin(partition.devices, ", "),
      {{"/replica:0", ""}, {"/device:", "/"}});
  row.node = node;
  row.steps = steps;
  row.nodes = nodes.size();
  std::set<std::string> types;
  for (const uint32_t index : nodes) {
    const timeline::PartitionNode& one = partition.nodes[index];
    if (!one.type.empty()) types.insert(one.type);
    if (!one.crosses()) continue;
    ++(one.type == "_Send" || one.type == "_HostSend" ? row.sends : row.receives);
  }
  row.types = types.size();
  return row;
}

// The rows of one partition, that of most steps first.
std::vector<Row> RowsOf(const Partition& partition, const std::string& node) {
  std::vector<Row> rows;
  for (const timeline::PartitionGraph& graph : partition.graphs) {
    rows.push_back(RowOf(partition, node, graph.steps, graph.nodes));
  }
  if (!rows.empty()) return rows;
  std::vector<uint32_t> all(partition.nodes.size());
  std::iota(all.begin(), all.end(), 0U);
  return {RowOf(partition, node, std::nullopt, all)};
}

}  // namespace

bool HasPartitions(const Report& report) {
  return std::any_of(report.nodes.begin(), report.nodes.end(),
                     [](const auto& node) { return !node.partitions.empty(); });
}

void PartitionsInFull(Page* page) {
  std::vector<Row> rows;
  for (const analysis::NodeReport& node : page->report().nodes) {
    for (const Partition& partition : node.partitions) {
      for (Row& row : RowsOf(partition, node.name)) rows.push_back(std::move(row));
    }
  }
  Table table({{"partition", Table::Align::kLeft, true},
               {"node"},
               {"steps", Table::Align::kRight},
               {"nodes", Table::Align::kRight},
               {"types", Table::Align::kRight},
               {"sends", Table::Align::kRight},
               {"receives", Table::Align::kRight}});
  for (const Row* row : Ranked(rows, [](const Row& one) { return one.steps.value_or(0); })) {
    table.Add({row->partition, row->node, row->steps.has_value() ? Count(*row->steps) : "-",
               Count(row->nodes), Count(row->types), Count(row->sends), Count(row->receives)});
  }
  page->Print(table);
  page->Line(
      "A row is a graph that ran in complete steps while it was recorded; without steps: all nodes "
      "that are known. sends, receives: edges to and from another device.");
}

}  // namespace syncline::report

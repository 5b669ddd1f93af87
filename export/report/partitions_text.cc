// SPDX-License-Identifier: Apache-2.0
#include "export/report/partitions_text.h"

#include <numeric>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "export/report/table.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

constexpr size_t kGraphsShown = 3;  // of a partition: the others are set-up and evaluation

// The row's cells from "nodes" on.
std::vector<std::string> CellsOf(const timeline::Partition& partition,
                                 const std::vector<uint32_t>& nodes) {
  std::set<std::string> types;
  uint64_t sends = 0, receives = 0;
  for (const uint32_t index : nodes) {
    const timeline::PartitionNode& node = partition.nodes[index];
    if (!node.type.empty()) types.insert(node.type);
    if (!node.crosses()) continue;
    const bool sent = node.type == "_Send" || node.type == "_HostSend";
    ++(sent ? sends : receives);
  }
  return {Count(nodes.size()), Count(types.size()), Count(sends), Count(receives)};
}

}  // namespace

std::string PartitionsText(const analysis::Report& report, size_t width, size_t indent) {
  Table table({{"partition", Table::Align::kLeft, true},
               {"node"},
               {"steps", Table::Align::kRight},
               {"nodes", Table::Align::kRight},
               {"types", Table::Align::kRight},
               {"sends", Table::Align::kRight},
               {"receives", Table::Align::kRight}});
  uint64_t more = 0;
  for (const analysis::NodeReport& node : report.nodes) {
    for (const timeline::Partition& partition : node.partitions) {
      const auto add = [&](const std::string& steps, const std::vector<uint32_t>& nodes) {
        std::string name =
            partition.devices.empty() ? partition.task : absl::StrJoin(partition.devices, ", ");
        name = absl::StrReplaceAll(name, {{"/replica:0", ""}, {"/device:", "/"}});
        std::vector<std::string> row = {std::move(name), node.name, steps};
        for (std::string& cell : CellsOf(partition, nodes)) row.push_back(std::move(cell));
        table.Add(std::move(row));
      };
      for (size_t i = 0; i < partition.graphs.size() && i < kGraphsShown; ++i) {
        add(Count(partition.graphs[i].steps), partition.graphs[i].nodes);
      }
      if (partition.graphs.size() > kGraphsShown) more += partition.graphs.size() - kGraphsShown;
      if (!partition.graphs.empty()) continue;
      std::vector<uint32_t> all(partition.nodes.size());
      std::iota(all.begin(), all.end(), 0U);
      add("-", all);
    }
  }
  if (table.empty()) return "";
  std::string out = table.Format(width, indent);
  const std::string blanks(indent, ' ');
  if (more > 0) absl::StrAppend(&out, blanks, "and ", more, " more (--json has them all)\n");
  absl::StrAppend(&out, blanks, "what ran while it was recorded: a row for each graph, of whole ",
                  "steps; sends and receives:\n", blanks,
                  "edges that lead to another device. Without steps: all nodes that are known.\n");
  return out;
}

}  // namespace syncline::report

// SPDX-License-Identifier: Apache-2.0
#include "export/parquet/job_tables.h"

#include <string>
#include <vector>

#include "analysis/devices.h"
#include "export/parquet/partition.h"
#include "export/text/json_text.h"

namespace syncline::parquet {
namespace {

using enum ColumnType;

// A table on its way into its file. Its texts are its own: no name is interned.
class Rows {
 public:
  Rows(std::string name, std::vector<Column> columns, TableWriter* writer)
      : partition_(Table{std::move(name), std::move(columns)}), writer_(writer) {}
  ~Rows() { partition_.Finish(writer_, {}); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  std::vector<Column>::iterator Begin() { return partition_.row().begin(); }
  void End() { partition_.Added(writer_, {}); }

 private:
  Partition partition_;
  TableWriter* writer_;
};

void PutKnown(const std::string& text, Column* column) {
  text.empty() ? column->Null() : column->Text(text);
}

template <class Number>
void PutKnown(const std::optional<Number>& number, Column* column) {
  number.has_value() ? column->Int(static_cast<int64_t>(*number)) : column->Null();
}

std::string JsonArray(const std::vector<std::string>& texts) {
  std::string json = "[";
  for (const std::string& text : texts) {
    if (json.size() > 1) json.push_back(',');
    text::AppendJsonString(text, &json);
  }
  return json + "]";
}

}  // namespace

void WritePartitions(std::span<const timeline::NodeResult> nodes, TableWriter* writer) {
  Rows partitions("partitions",
                  {{"partition", kInt32},
                   {"node", kText},
                   {"process", kInt32},
                   {"task", kText},
                   {"devices", kText}},
                  writer);
  Rows graph_nodes("partition_nodes",
                   {{"partition", kInt32},
                    {"graph_node", kInt32},
                    {"name", kText},
                    {"type", kText, Column::kSometimes},
                    {"executions", kInt64},
                    {"total_ns", kInt64},
                    {"data_edges", kInt64, Column::kSometimes},
                    {"control_edges", kInt64, Column::kSometimes},
                    {"tensor", kText, Column::kSometimes},
                    {"send_device", kText, Column::kSometimes},
                    {"receive_device", kText, Column::kSometimes}},
                   writer);
  Rows graphs("partition_graphs",
              {{"partition", kInt32}, {"graph", kInt32}, {"steps", kInt64}, {"graph_node", kInt32}},
              writer);
  int64_t number = 0;
  for (const timeline::NodeResult& node : nodes) {
    for (const timeline::Partition& partition : node.partitions) {
      auto row = partitions.Begin();
      (row++)->Int(number);
      (row++)->Text(node.name);
      (row++)->Int(partition.track);
      (row++)->Text(partition.task);
      (row++)->Text(JsonArray(partition.devices));
      partitions.End();
      for (size_t i = 0; i < partition.nodes.size(); ++i) {
        const timeline::PartitionNode& of_graph = partition.nodes[i];
        row = graph_nodes.Begin();
        (row++)->Int(number);
        (row++)->Int(static_cast<int64_t>(i));
        (row++)->Text(of_graph.name);
        PutKnown(of_graph.type, &*row++);
        (row++)->Int(static_cast<int64_t>(of_graph.executions));
        (row++)->Int(of_graph.total_ns);
        PutKnown(of_graph.data_edges, &*row++);
        PutKnown(of_graph.control_edges, &*row++);
        PutKnown(of_graph.tensor, &*row++);
        PutKnown(of_graph.send_device, &*row++);
        PutKnown(of_graph.receive_device, &*row++);
        graph_nodes.End();
      }
      for (size_t i = 0; i < partition.graphs.size(); ++i) {
        for (const uint32_t graph_node : partition.graphs[i].nodes) {
          row = graphs.Begin();
          (row++)->Int(number);
          (row++)->Int(static_cast<int64_t>(i));
          (row++)->Int(static_cast<int64_t>(partition.graphs[i].steps));
          (row++)->Int(graph_node);
          graphs.End();
        }
      }
      ++number;
    }
  }
}

void WriteCollectives(const timeline::Collectives& found,
                      std::span<const timeline::NodeResult> nodes,
                      const clocksync::ClockModel* model, TableWriter* writer) {
  Rows groups("collective_groups",
              {{"group", kInt32},
               {"job", kText, Column::kSometimes},
               {"name", kText},
               {"description", kText, Column::kSometimes},
               {"ranks", kText},
               {"size", kInt32}},
              writer);
  for (size_t i = 0; i < found.groups.size(); ++i) {
    const timeline::CollectiveGroup& group = found.groups[i];
    auto row = groups.Begin();
    (row++)->Int(static_cast<int64_t>(i));
    PutKnown(group.job, &*row++);
    (row++)->Text(group.name);
    PutKnown(group.description, &*row++);
    (row++)->Text(group.ranks);
    (row++)->Int(group.size);
    groups.End();
  }
  clocksync::ReachFinder reach(model);
  Rows rows("collectives",
            {{"group", kInt32},
             {"number", kInt64},
             {"name", kText},
             {"bytes", kInt64, Column::kSometimes},
             {"node", kText},
             {"rank", kInt32},
             {"entered_ns", kInt64},
             {"left_ns", kInt64, Column::kSometimes},
             {"bound_lo_ns", kInt64, Column::kSometimes},
             {"bound_hi_ns", kInt64, Column::kSometimes}},
            writer);
  for (const timeline::Collective& collective : found.collectives) {
    for (const timeline::CollectiveMember& member : collective.members) {
      auto row = rows.Begin();
      (row++)->Int(collective.group);
      (row++)->Int(static_cast<int64_t>(collective.number));
      (row++)->Text(collective.name);
      PutKnown(collective.bytes, &*row++);
      (row++)->Text(nodes[member.node].name);
      (row++)->Int(member.rank);
      (row++)->Int(member.entered_at.ns);
      member.left_at.has_value() ? (row++)->Int(member.left_at->ns) : (row++)->Null();
      const std::optional<Reach> at_begin = reach.At(member.entered);
      const auto both =
          Widest(at_begin, member.left.has_value() ? reach.At(*member.left) : at_begin);
      PutReach(both, &row[0], &row[1]);
      rows.End();
    }
  }
}

void WriteDevices(std::span<const timeline::NodeResult> nodes,
                  const std::optional<timeline::Interval>& window, TableWriter* writer) {
  Rows steps("device_steps",
             {{"node", kText},
              {"process", kInt32},
              {"device", kText},
              {"step", kText, Column::kSometimes},
              {"begin_ns", kInt64},
              {"end_ns", kInt64},
              {"work", kInt64},
              {"computing_ns", kInt64},
              {"exposed_communication_ns", kInt64},
              {"exposed_copies_ns", kInt64},
              {"idle_before_launch_ns", kInt64},
              {"idle_after_launch_ns", kInt64},
              {"idle_launch_unknown_ns", kInt64}},
             writer);
  Rows operators("device_operators",
                 {{"node", kText},
                  {"process", kInt32},
                  {"device", kText},
                  {"operator", kText, Column::kSometimes},
                  {"count", kInt64},
                  {"total_ns", kInt64},
                  {"longest_kernel", kText}},
                 writer);
  for (const timeline::NodeResult& node : nodes) {
    for (const timeline::ProcessDevices& process : node.devices) {
      for (const analysis::DeviceReport& device : analysis::DevicesOf(process, window)) {
        const auto begin = [&](Rows* rows) {
          auto row = rows->Begin();
          (row++)->Text(node.name);
          (row++)->Int(process.track);
          (row++)->Text(device.device);
          return row;
        };
        for (const analysis::DeviceStep& step : device.steps) {
          auto row = begin(&steps);
          PutKnown(step.name, &*row++);
          for (const int64_t value :
               {step.begin.ns, step.end.ns, static_cast<int64_t>(step.work), step.use.computing_ns,
                step.use.communication_ns, step.use.copies_ns, step.use.unlaunched_ns,
                step.use.unstarted_ns, step.use.unknown_ns}) {
            (row++)->Int(value);
          }
          steps.End();
        }
        for (const analysis::DeviceOperator& one : device.operators) {
          auto row = begin(&operators);
          PutKnown(one.name, &*row++);
          (row++)->Int(static_cast<int64_t>(one.count));
          (row++)->Int(one.total_ns);
          (row++)->Text(one.longest_kernel);
          operators.End();
        }
      }
    }
  }
}

}  // namespace syncline::parquet

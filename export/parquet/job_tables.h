// SPDX-License-Identifier: Apache-2.0
// What the job is made of and what its ranks do together, as Parquet tables beside those of
// parquet_sink.h; not partitioned:
//
//   partitions/         partition, node, process, task, devices: of TensorFlow, one a process
//   partition_nodes/    partition, graph_node, name, type, executions, total_ns, data_edges,
//                       control_edges, tensor, send_device, receive_device
//   partition_graphs/   partition, graph, steps, graph_node: a row for each node of each graph
//   collective_groups/  group, job, name, description, ranks, size
//   collectives/        group, number, name, bytes, node, rank, entered_ns, left_ns, bound_lo_ns,
//                       bound_hi_ns: a row for each rank that was seen
//
//   device_steps/       node, process, device, step, begin_ns, end_ns, work, computing_ns,
//                       exposed_communication_ns, exposed_copies_ns, idle_before_launch_ns,
//                       idle_after_launch_ns, idle_launch_unknown_ns: what a device did in a step
//                       (analysis/devices.h); `step` is null where the program marks none
//   device_operators/   node, process, device, operator, count, total_ns, longest_kernel:
//                       `operator` is null for what was launched outside of any, or is unknown
//
// `process` is a track of the table processes, `devices` a JSON array. What a node of a graph is,
// and a collective: timeline/partitions.h, timeline/collectives.h. A cut edge is a graph node with
// a tensor whose send_device is not its receive_device; what is not known is null. Bounds are of
// both times. All of it as the report has it (`--json`: partitions, collectives, devices). Where a
// merge is cut: partitions of the cut, collectives of all that was read for it (look_back.h).
//
// Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_PARQUET_JOB_TABLES_H_
#define SYNCLINE_EXPORT_PARQUET_JOB_TABLES_H_

#include <optional>
#include <span>

#include "export/parquet/reach.h"
#include "export/parquet/table_writer.h"
#include "timeline/collectives.h"
#include "timeline/node_input.h"

namespace syncline::parquet {

void WritePartitions(std::span<const timeline::NodeResult> nodes, TableWriter* writer);

// `nodes` are those that CollectiveMember::node counts; `model` is for bounds, nullptr: unknown.
void WriteCollectives(const timeline::Collectives& found,
                      std::span<const timeline::NodeResult> nodes,
                      const clocksync::ClockModel* model, TableWriter* writer);

// Steps that are wholly in `window`.
void WriteDevices(std::span<const timeline::NodeResult> nodes,
                  const std::optional<timeline::Interval>& window, TableWriter* writer);

}  // namespace syncline::parquet

#endif  // SYNCLINE_EXPORT_PARQUET_JOB_TABLES_H_

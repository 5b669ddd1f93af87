// SPDX-License-Identifier: Apache-2.0
// The graphs of a TensorFlow process's partition, as far as they ran while it was profiled.
//
// A profile holds no graph. At level 3 the executor says of every node that it has run, with how
// many edges lead from it:
//   RunGraph                {id}: a step of an in-graph session begins here
//   ExecutorPropagateOutputs {id, kernel_name, num_output_edges, num_output_control_edges}
//   ExecutorDoneCallback    {id}: an executor has run all that it had to
// which is, for one step, every node of the graph that TensorFlow gave to this process: of
// constants and no-ops, too, which have no event of their own. Steps that run the same nodes run
// the same graph. The types of nodes, and how long they take, come from the operators' own events,
// the ends of cut edges from the keys of `_Send` and `_Recv`. Which node feeds which is not said.
//
// A node that a condition left dead is passed on, too, and counts as run.
//
// Not there: nodes that were never reached while it was recorded, and below level 3 all but the
// operators that TensorFlow's cost model finds expensive (then there are no graphs, either).
//
// Memory: a number per node and step, of the last steps only. Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_PARTITIONS_H_
#define SYNCLINE_TIMELINE_PARTITIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "timeline/sink.h"

namespace syncline::timeline {

struct PartitionNode {
  std::string name;  // "gradients/Conv2D_grad/Conv2DBackpropFilter"
  std::string type;  // "_MklNativeConv2DBackpropFilter"; empty: it has no event that says so
  uint64_t executions = 0;
  int64_t total_ns = 0;  // of the events that it has
  // Edges that lead from it; nullopt below level 3.
  std::optional<uint32_t> data_edges;
  std::optional<uint32_t> control_edges;
  // Of a `_Send` or `_Recv`: the edge that was cut. A device that sends to itself feeds or fetches.
  std::string tensor;
  std::string send_device;
  std::string receive_device;
  bool crosses() const { return send_device != receive_device; }
};

struct PartitionGraph {
  uint64_t steps = 0;           // that ran exactly these nodes, from begin to end
  std::vector<uint32_t> nodes;  // indices into Partition::nodes
};

struct Partition {
  TrackId track = kNoTrack;  // of its process
  std::string process;       // that track's name
  std::string task;          // "/job:worker/replica:0/task:0"
  std::vector<std::string> devices;
  std::vector<PartitionNode> nodes;    // by name
  std::vector<PartitionGraph> graphs;  // by steps, most first
};

class PartitionBuilder {
 public:
  // `id` is the step's. All in order of time.
  void OnStep(int64_t id);
  void OnExecuted(int64_t id, std::string_view name, int64_t data_edges, int64_t control_edges);
  void OnDone(int64_t id);
  void OnOperator(std::string_view name, std::string_view type, int64_t duration_ns);
  // The key of a tensor that the node sends or receives.
  void OnEnd(std::string_view name, std::string_view key, bool sends);
  // The profile ends: what is under way was not seen as a whole.
  void EndPiece();

  // Once. Without nodes where nothing ran.
  Partition Take();

 private:
  struct Step {
    bool begun = false;
    uint64_t executors = 0;  // that have begun
    uint64_t done = 0;
    std::vector<uint32_t> nodes;
  };
  struct Node {
    PartitionNode facts;
    uint64_t events = 0;
  };

  uint32_t NumberOf(std::string_view name);
  void Close(Step step);

  struct Hash {  // so that a name is looked up without copying it
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };

  std::vector<Node> nodes_;
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> numbers_;
  std::map<int64_t, Step> open_;
  std::vector<int64_t> begun_;  // steps in open_, oldest first
  std::map<std::vector<uint32_t>, uint64_t> graphs_;
  std::set<std::string> devices_;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_PARTITIONS_H_

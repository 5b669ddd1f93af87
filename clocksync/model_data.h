// SPDX-License-Identifier: Apache-2.0
// What a ClockModel holds, and what follows from it. Private to clocksync.
#ifndef SYNCLINE_CLOCKSYNC_MODEL_DATA_H_
#define SYNCLINE_CLOCKSYNC_MODEL_DATA_H_

#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "clocksync/bounded_map.h"
#include "clocksync/clock_model.h"
#include "clocksync/graph.h"
#include "clocksync/host_chain.h"

namespace syncline::clocksync {

struct NodeClocks {
  HostMaps host;
  BoundedMap timeline;  // RAW -> timeline; empty: no way to the reference by probes
  // Largest difference between the rate of `timeline`'s estimate and the true rate, ppb, inside the
  // knots; negative: not known (a break lies inside).
  int64_t rate_slack_ppb = -1;
};

struct ClockModel::Data {
  // ---- stored in models.json -----------------------------------------------------------------
  bool identity = false;
  std::vector<std::string> names;  // of nodes
  std::vector<std::string> hubs;   // further vertices: "coordinator"
  uint32_t reference = 0;
  int64_t zero_reference_raw_ns = 0;
  int64_t epoch_unix_ns = 0;
  std::vector<NodeClocks> clocks;  // per node
  ClockGraph graph;                // vertices: nodes, then hubs
  Grid grid;
  std::vector<ClockEvent> events;

  const std::string& VertexName(uint32_t vertex) const {
    return vertex < names.size() ? names[vertex] : hubs[vertex - names.size()];
  }

  // ---- derived by Finish() -------------------------------------------------------------------
  // Timeline of each node's clock kinds, estimate only: [node][kind]; kind as ClockKind.
  std::vector<std::vector<std::unique_ptr<FastMap>>> fast;
  // What clock j reads when clock i reads x, made on the first question; key: i << 32 | j.
  mutable std::shared_mutex pairs_mutex;
  mutable std::unordered_map<uint64_t, std::unique_ptr<const BoundedMap>> pairs;

  void Finish();
  Bounds RawOf(NodeTime time) const;
  Bounds TimelineOfRaw(uint32_t node, const Bounds& raw) const;
  const BoundedMap& Pair(uint32_t from, uint32_t to) const;
};

// The one with access to ClockModel's inside.
class ModelAssembler {
 public:
  using Data = ClockModel::Data;
  static ClockModel Make(std::unique_ptr<Data> data) { return ClockModel(std::move(data)); }
};

// The interval map of `vertex` -> root from bounds on the grid; empty when not connected.
// `infeasible` is set when the edges contradict each other somewhere; the interval then covers what
// each says.
BoundedMap MapOnGrid(const RootBounds& bounds, const std::vector<int64_t>& x,
                     const std::vector<int64_t>& root_x, const Grid& grid, bool* infeasible);

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_MODEL_DATA_H_

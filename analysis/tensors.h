// SPDX-License-Identifier: Apache-2.0
// Tensors that crossed between processes: edges of the graph with what each took, and how a merge
// by wall clock would have drawn them. Pure.
#ifndef SYNCLINE_ANALYSIS_TENSORS_H_
#define SYNCLINE_ANALYSIS_TENSORS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/levels.h"
#include "common/time.h"
#include "timeline/node_input.h"

namespace syncline::analysis {

// One cut edge of the graph. Medians are of single tensors, so that the bound is that tensor's own.
struct TensorEdgeReport {
  std::string tensor;
  std::string send_device;
  std::string receive_device;
  uint32_t send_node = 0;  // indices into Report::nodes
  uint32_t receive_node = 0;
  uint64_t count = 0;
  // How many of them have a known size, and the median of these. TensorFlow tells of large ones
  // only.
  uint64_t sized = 0;
  std::optional<uint64_t> sized_bytes;
  // From when the receiver began to wait until the tensor was there, on the receiver's own clock.
  std::optional<int64_t> waiting_ns;
  // From the begin of the send until the tensor was there.
  LevelledDuration flight;

  // Of one tensor; nullopt: not known of all.
  std::optional<uint64_t> bytes() const { return sized == count ? sized_bytes : std::nullopt; }
};

struct TensorReport {
  std::vector<TensorEdgeReport> edges;  // by devices and tensor
  uint64_t tensors = 0;                 // with both ends, all edges
  uint64_t across_nodes = 0;            // of those
  // Of those across nodes: received before they were sent, which cannot be.
  uint64_t backwards_by_wall_clock = 0;  // as each host's wall clock has it
  uint64_t backwards_here = 0;           // as the timeline draws them
  uint64_t contradictions = 0;           // also at the ends of the intervals: the model is wrong
  uint64_t likely_contradictions = 0;    // more, by what is called likely: the assumption is wrong
  uint64_t in_complete_steps = 0;        // of all
  timeline::TensorEnds unmatched;        // of all nodes
};

// Without models nothing is known of flights between nodes but their estimate.
TensorReport SummariseTensors(std::span<const timeline::NodeResult> nodes, const Models& models);

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_TENSORS_H_

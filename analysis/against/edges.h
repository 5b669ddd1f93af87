// SPDX-License-Identifier: Apache-2.0
// What recorded processes send each other over TCP, compared: by the kernels' counters over the
// whole recording, so that there are no intervals. Pure.
#ifndef SYNCLINE_ANALYSIS_AGAINST_EDGES_H_
#define SYNCLINE_ANALYSIS_AGAINST_EDGES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/against/units.h"
#include "analysis/report.h"

namespace syncline::analysis::against {

// By how much bytes must change to be called changed. Counters are read up to 50 ms before and
// behind the window, which is some percent of a short one.
inline constexpr double kEdgeLimit = 0.1;
// Of what the busiest edge sends: less is not compared.
inline constexpr double kEdgeLeast = 0.01;

struct Edge {
  std::string from;  // "rank 0", or a process
  std::string to;
  double bytes = 0;           // of a step or second, without those that were sent again
  double retransmitted = -1;  // of 1, of the segments; -1: not known
  int64_t rtt_us = -1;        // the median; -1: not known
};

// Between processes that were recorded, by names.
std::vector<Edge> EdgesOf(const Report& report, const Units& units);

struct EdgeChange {
  Edge before;  // of several recordings the means
  Edge now;
  bool changed = false;  // in bytes, by kEdgeLimit from all recordings before
};

// The largest change of bytes first. None where a recording has none: it is not known then.
std::vector<EdgeChange> CompareEdges(std::span<const std::vector<Edge>> before,
                                     const std::vector<Edge>& now);

}  // namespace syncline::analysis::against

#endif  // SYNCLINE_ANALYSIS_AGAINST_EDGES_H_

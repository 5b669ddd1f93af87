// SPDX-License-Identifier: Apache-2.0
// What `syncline clocks` says beyond its table of edges: how well any two nodes are known from each
// other, what the samples say about the assumptions, what happened to the clocks.
#ifndef SYNCLINE_COORDINATOR_CLI_CLOCKS_TEXT_H_
#define SYNCLINE_COORDINATOR_CLI_CLOCKS_TEXT_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "clocksync/builder.h"

namespace syncline::cli {

// Two nodes, over the time in which there were samples: half of the interval's width.
struct PairBound {
  std::string from;
  std::string to;
  int64_t offset_ns = 0;        // of their RAW clocks, to - from, in the middle
  int64_t bound_median_ns = 0;  // kUnknownHi: unknown
  int64_t bound_worst_ns = 0;
  std::optional<int64_t> likely_median_ns;  // under the assumption of `likely`
};

// Every pair of the first `nodes_max` nodes; of more nodes, each with the reference. `likely`: the
// model under an assumption; nullptr: nothing is assumed.
std::vector<PairBound> PairsOf(const clocksync::BuildResult& built,
                               const clocksync::ClockModel* likely, size_t nodes_max);

// When: "+6.100 s to +6.230 s"; "" for what has no place on the timeline.
std::string WhenText(const clocksync::ClockEvent& event);

// "+3282.123456789 s", "-0.000000054 s": of a column, so that its numbers can be compared. Exact.
std::vector<std::string> InOneUnit(const std::vector<int64_t>& ns);

void PrintPairs(std::ostream& out, const std::vector<PairBound>& pairs);
void PrintAssumptions(std::ostream& out, const clocksync::BuildResult& built,
                      const clocksync::BuildOptions& options);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_CLOCKS_TEXT_H_

// SPDX-License-Identifier: Apache-2.0
// clocks/probes.json: how the nodes' probing of each other went, edge by edge. Which stamps each
// end had and why not better ones, who could not take part and why. For people and for `syncline
// clocks`; no model needs it.
#ifndef SYNCLINE_COORDINATOR_CLOCKS_PROBE_REPORT_H_
#define SYNCLINE_COORDINATOR_CLOCKS_PROBE_REPORT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::clocks {

struct ProbeReport {
  // Texts are empty where there is nothing to say.
  struct End {
    std::string node;
    std::string stamps;          // "kernel", ...; the last that were used
    std::string why_not_better;  // than these
    std::string silence;         // nothing comes from the other end: since when, and why perhaps
    std::string failure;         // it does not take part (any more)
  };
  struct Edge {
    End local;  // asks
    End remote;
    uint64_t samples = 0;
    std::string failure;  // of the file
  };
  struct Node {
    std::string node;
    int64_t cpu_ns = 0;  // that probing has taken since its agent began
    uint64_t samples_forgotten = 0;
    v1::ProbeCounters counters;
  };
  std::vector<Edge> edges;
  std::vector<Node> nodes;
};

std::string ToJson(const ProbeReport& report);
// Edges only: the rest is for people who look. InvalidArgument for anything else than such a file.
absl::StatusOr<ProbeReport> ReportFromJson(std::string_view json);

// One line: the stamps and why not better, or why there are no samples.
std::string Describe(const ProbeReport::Edge& edge);

}  // namespace syncline::clocks

#endif  // SYNCLINE_COORDINATOR_CLOCKS_PROBE_REPORT_H_

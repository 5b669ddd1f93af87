// SPDX-License-Identifier: Apache-2.0
// clocks/probes.json: how the nodes' probing of each other went, edge by edge. Which stamps each
// end had and why not better ones, who could not take part and why. For people and for `syncline
// clocks`; no model needs it.
#ifndef SYNCLINE_COORDINATOR_CLOCKS_PROBE_REPORT_H_
#define SYNCLINE_COORDINATOR_CLOCKS_PROBE_REPORT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

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
    // Of the agent since it began: "packets_sent_count", ...; by name, each once. One that the
    // agent did not send is 0, or is not there.
    std::vector<std::pair<std::string, uint64_t>> counts;
  };
  std::vector<Edge> edges;
  std::vector<Node> nodes;
};

std::string ToJson(const ProbeReport& report);
// InvalidArgument for anything else than such a file. What is said of nodes is for people who look:
// what of it cannot be read is left out.
absl::StatusOr<ProbeReport> ReportFromJson(std::string_view json);

// One line: the stamps and why not better, or why there are no samples.
std::string Describe(const ProbeReport::Edge& edge);

}  // namespace syncline::clocks

#endif  // SYNCLINE_COORDINATOR_CLOCKS_PROBE_REPORT_H_

#include "timeline/builder.h"

#include <utility>

#include "common/status.h"
#include "timeline/emitter.h"
#include "timeline/node_builder.h"

namespace syncline::timeline {

absl::StatusOr<std::vector<NodeResult>> BuildTimeline(std::span<const NodeInput> nodes,
                                                      const BuildOptions& options,
                                                      std::span<TimelineSink* const> sinks) {
  Emitter emitter(std::vector<TimelineSink*>(sinks.begin(), sinks.end()));
  SharedTracks shared;
  std::vector<NodeResult> results;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    NodeBuilder builder(nodes[i], i, options, &emitter, &shared);
    auto result = builder.Build();
    if (!result.ok()) return WithContext(result.status(), "node " + nodes[i].name);
    results.push_back(*std::move(result));
  }
  SYNCLINE_RETURN_IF_ERROR(emitter.Finish());
  return results;
}

}  // namespace syncline::timeline

// SPDX-License-Identifier: Apache-2.0
// From samples to clock models: T in every node's own clock while recording, and clocks/models.json
// after.
#ifndef SYNCLINE_COORDINATOR_CLOCKS_MODELS_H_
#define SYNCLINE_COORDINATOR_CLOCKS_MODELS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clocksync/builder.h"
#include "clocksync/samples.h"
#include "coordinator/recording/recording.h"

namespace syncline::clocks {

// The first edge with samples: its far end is the reference node. Unavailable when there is none.
absl::StatusOr<size_t> ChooseReference(std::span<const clocksync::Edge> edges);

// An instant of the coordinator's MONOTONIC_RAW in that of the edge's far end, by its latest
// samples (which must exist): good enough to say when something is to happen, never to say when it
// did.
int64_t ToRemote(const clocksync::Edge& edge, int64_t coordinator_raw_ns);

// An instant of the reference's MONOTONIC_RAW in that of every edge's far end, by a clock model of
// all edges; nullopt where the clock is not known.
absl::StatusOr<std::vector<std::optional<int64_t>>> InstantInNodes(
    std::span<const clocksync::Edge> edges, size_t reference, int64_t reference_raw_ns);

// The model of a recording from its clocks/*.samples and *.tuples. Files that are missing or
// damaged are ClockEvents of the result, not errors: a node without samples is placed by its wall
// clock, unbounded.
struct ModelOptions {
  std::vector<CausalPair> causal;  // what the traces say happened before what
  bool audit = false;              // BuildOptions::audit
};
absl::StatusOr<clocksync::BuildResult> BuildFromRecording(const recording::Layout& layout,
                                                          const recording::Recording& recording,
                                                          ModelOptions model_options = {});

// Files of which a stored model was made that were cut since (damage), or removed (perhaps to save
// space).
struct LostSamples {
  bool cut = false;
  std::string text;  // which file, how many samples are left of how many
};
// Looks at sizes alone.
std::vector<LostSamples> SamplesLost(const recording::Layout& layout,
                                     const clocksync::ClockModel& stored);

// A merge places nodes by the stored clocks/models.json, not by what `built` could be made of now:
// corrects the events of `built` about nodes whose samples are gone but whom the stored model
// places.
struct StoredModel {
  std::string complaint;  // what is wrong with it, and what to do; empty when nothing is
  std::vector<LostSamples> samples_lost;
};
StoredModel CompareWithStored(const recording::Layout& layout, clocksync::BuildResult* built);

// What BuildFromRecording makes, written to clocks/models.json.
absl::StatusOr<clocksync::BuildResult> WriteModels(const recording::Layout& layout,
                                                   const recording::Recording& recording);

}  // namespace syncline::clocks

#endif  // SYNCLINE_COORDINATOR_CLOCKS_MODELS_H_

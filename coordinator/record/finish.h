// SPDX-License-Identifier: Apache-2.0
// The end of a recording, shared by `record` and by `fetch RUN`, which completes one later: stop
// what still runs, bring the data home, make the models, say what became of each node, and only
// then let the nodes forget it.
#ifndef SYNCLINE_COORDINATOR_RECORD_FINISH_H_
#define SYNCLINE_COORDINATOR_RECORD_FINISH_H_

#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/host/clock.h"
#include "coordinator/record/fleet_state.h"
#include "coordinator/recording/recording.h"

namespace syncline::record {

struct Recorded;
class Interrupts;

struct FinishInput {
  std::string recording_id;
  recording::Layout layout;
  recording::Recording* recording = nullptr;
  std::vector<NodeProgress>* nodes = nullptr;
  host::Clock* clock = nullptr;
  Reporter* reporter = nullptr;
  std::stop_token interrupt;  // leave the data on the nodes
};

// Sends the request until it is answered, while the agent is away only (it may be starting again
// and adopt what it finds); fills in node->record and node->stopped.
void StopNode(const v1::StopRequest& request, fleet::AgentClient::Timeout timeout,
              const std::stop_token& interrupt, host::Clock* clock, Reporter* reporter,
              NodeProgress* node);

// Fetches from the nodes that were stopped, writes clocks/models.json and recording.json, releases.
// Failures of nodes are states in the recording; an error means that this machine could not write.
absl::StatusOr<Recorded> Finish(const FinishInput& input);

// `fetch RUN`: what `record` could not bring home. `clients` by node name; a node without one is
// skipped.
absl::StatusOr<Recorded> Resume(const std::filesystem::path& directory,
                                const std::vector<fleet::Member>& members, host::Clock* clock,
                                Interrupts* interrupts, Observer* observer);

}  // namespace syncline::record

#endif  // SYNCLINE_COORDINATOR_RECORD_FINISH_H_

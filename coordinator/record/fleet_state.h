// SPDX-License-Identifier: Apache-2.0
// The nodes of a recording that is being made, what became of each, and who is told.
#ifndef SYNCLINE_COORDINATOR_RECORD_FLEET_STATE_H_
#define SYNCLINE_COORDINATOR_RECORD_FLEET_STATE_H_

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/fleet/agent_client.h"
#include "coordinator/record/observer.h"
#include "coordinator/recording/recording.h"

namespace syncline::record {

// The observer, one call at a time.
class Reporter {
 public:
  explicit Reporter(Observer* observer) : observer_(*observer) {}

  template <class Call>
  void Tell(const Call& call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    call(observer_);
  }
  void Phase(std::string_view what) {
    Tell([&](Observer& observer) { observer.OnPhase(what); });
  }
  void Note(std::string_view severity, const std::string& node, std::string_view what,
            std::string_view fix = "") {
    Tell([&](Observer& observer) { observer.OnNote(severity, node, what, fix); });
  }
  void Notes(const std::string& node, const std::vector<recording::ComplaintRecord>& complaints) {
    for (const recording::ComplaintRecord& said : complaints) {
      Note(said.severity, node, said.what, said.fix);
    }
  }

 private:
  std::mutex mutex_;
  Observer& observer_;
};

// One node on its way through a recording. Between phases only the recorder touches it, within a
// phase only the thread that works for this node.
struct NodeProgress {
  fleet::AgentClient* client = nullptr;
  recording::NodeRecord* record = nullptr;
  bool takes_part = true;
  bool prepare_sent = false;  // something may be left on the node
  bool started = false;
  bool stopped = false;
  std::string no_vtune;  // why it cannot collect with VTune, where that is asked for
  bool gone = false;     // its agent does not have the recording
  absl::Status failure;
};

// "2 of 3 nodes cannot take part ...", a line for each failure. The code is that of the first.
absl::Status FailureOf(std::string_view what, const std::vector<NodeProgress>& nodes,
                       std::string_view advice);

}  // namespace syncline::record

#endif  // SYNCLINE_COORDINATOR_RECORD_FLEET_STATE_H_

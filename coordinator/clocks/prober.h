// SPDX-License-Identifier: Apache-2.0
// Clock probing of a fleet while something is recorded: one thread and one connection per node.
//
// Probes come in bursts of exchanges without a pause between them (a pause lets both ends sleep and
// doubles the round trip); bursts come ten a second at first and after Hurry(), then once a second.
// The newest samples are kept in memory for the conversion of T, all are appended to
// clocks/coordinator--NODE.samples after every burst.
//
// Sign: the coordinator is `local`, the node `remote` (common/time.h).
#ifndef SYNCLINE_COORDINATOR_CLOCKS_PROBER_H_
#define SYNCLINE_COORDINATOR_CLOCKS_PROBER_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clocksync/samples.h"
#include "coordinator/fleet/agent_client.h"
#include "coordinator/host/clock.h"

namespace syncline::clocks {

struct ProbeTarget {
  std::string node;
  fleet::AgentClient* client = nullptr;
  std::filesystem::path samples_path;  // empty: kept in memory only
};

class Prober {
 public:
  // Begins at once. `clock` outlives the prober.
  Prober(std::vector<ProbeTarget> targets, host::Clock* clock);
  ~Prober();  // Stop()

  // Waits until every probe has `samples` samples or has failed, at most `patience`; less when
  // `stop` is requested.
  void Await(uint64_t samples, std::chrono::milliseconds patience, const std::stop_token& stop);
  // A while of quick bursts, from now: around an instant that matters.
  void Hurry(int64_t ns);
  // Ends all probing and joins. Idempotent.
  void Stop();
  // Leaves one node alone from now on: it failed or has finished.
  void Abandon(size_t index);

  size_t size() const { return probes_.size(); }
  uint64_t SampleCount(size_t index) const;
  // A copy of the newest samples.
  clocksync::Edge EdgeOf(size_t index) const;
  // Why there are no (more) samples: the last failure of the stream or of the file.
  absl::Status StatusOf(size_t index) const;

 private:
  class Probe;
  struct News;  // wakes Await()
  std::unique_ptr<News> news_;
  std::vector<std::unique_ptr<Probe>> probes_;
};

}  // namespace syncline::clocks

#endif  // SYNCLINE_COORDINATOR_CLOCKS_PROBER_H_

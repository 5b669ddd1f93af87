// SPDX-License-Identifier: Apache-2.0
// Looks after a running recording: asks every node how it goes, renews its lease, tells the
// observer.
#ifndef SYNCLINE_COORDINATOR_RECORD_MONITOR_H_
#define SYNCLINE_COORDINATOR_RECORD_MONITOR_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "coordinator/host/clock.h"
#include "coordinator/record/fleet_state.h"

namespace syncline::record {

class Monitor {
 public:
  // Begins at once (with at least one round), ends with its life. All outlive the monitor.
  Monitor(const std::vector<NodeProgress>* nodes, std::string recording_id, int64_t lease_ms,
          int64_t start_raw_ns, host::Clock* clock, Reporter* reporter);

  // Asks no more and reports nothing from now on; the destructor waits for the last answers.
  void Quiet() { thread_.request_stop(); }
  // No node records any more: stopped by themselves (disk, size limit, lease) or unreachable for
  // long.
  bool all_ended() const { return all_ended_; }

 private:
  void Run(const std::stop_token& stop);
  void Ask(const std::stop_token& stop);

  const std::vector<NodeProgress>& nodes_;
  const std::string recording_id_;
  const int64_t lease_ms_;
  const int64_t start_raw_ns_;
  host::Clock& clock_;
  Reporter& reporter_;
  std::vector<NodeCounters> counters_;  // the thread's own
  std::vector<bool> reported_;          // a node's trouble is told once
  std::vector<int64_t> heard_raw_ns_;
  std::atomic<bool> all_ended_{false};
  std::jthread thread_;  // last: it uses the others
};

}  // namespace syncline::record

#endif  // SYNCLINE_COORDINATOR_RECORD_MONITOR_H_

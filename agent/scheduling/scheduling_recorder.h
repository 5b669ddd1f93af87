// SPDX-License-Identifier: Apache-2.0
// When the recorded threads ran, waited for a CPU and slept (SchedulingSampler), as a source of
// evidence: a thread that empties the rings while the window lasts, and writes
// evidence/scheduling.txt as it goes.
//
// Emptying them takes one part in twenty of a processor at most. Where that is not enough rings
// overrun, and what is missing is a loss.
#ifndef SYNCLINE_AGENT_SCHEDULING_SCHEDULING_RECORDER_H_
#define SYNCLINE_AGENT_SCHEDULING_SCHEDULING_RECORDER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "agent/evidence/runtime_directories.h"
#include "agent/evidence/threaded_source.h"
#include "agent/host/log.h"
#include "agent/probe/clock.h"
#include "agent/scheduling/scheduling_sampler.h"

namespace syncline::agent {

struct SchedulingOptions {
  SchedulingSamplerOptions sampler;
  uint64_t bytes_max = 256 << 20;  // of the file
};

class SchedulingRecorder : public ThreadedSource {
 public:
  // Neither clock nor log is owned; both outlive this.
  SchedulingRecorder(RuntimeDirectories directories, Clock* clock, Log* log,
                     SchedulingOptions options = {});

  bool IsWanted(const v1::PrepareRequest& request) const override {
    return request.record_scheduling();
  }
  // What the kernel lets it see, now.
  v1::EvidenceOffer Offer() const;

  // How long to wait behind a round that took so much of a processor, and found the fullest ring so
  // full (0 to 1) behind a wait of `last_ns`. Pure.
  static int64_t PauseNs(int64_t cpu_ns, double fullest, int64_t last_ns);

 private:
  class Run;
  std::unique_ptr<EvidenceRun> MakeRun(const std::vector<uint32_t>& left_out) override;

  const RuntimeDirectories directories_;
  Clock* const clock_;
  const SchedulingOptions options_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SCHEDULING_SCHEDULING_RECORDER_H_

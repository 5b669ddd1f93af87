// SPDX-License-Identifier: Apache-2.0
// The samples of TCP connections of a recording (ConnectionSampler) as a source of evidence: a
// thread that takes them twice a second, from before the gate opens until it is closed, and writes
// evidence/connections.txt as it goes. A recording never fails for it.
//
// Where it would take more than 0.5 % of a processor, or write more than 100 kB a second, it
// samples less often, down to every 30 s.
//
// Thread-safe.
#ifndef SYNCLINE_AGENT_CONNECTIONS_CONNECTION_RECORDER_H_
#define SYNCLINE_AGENT_CONNECTIONS_CONNECTION_RECORDER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "agent/connections/connection_sampler.h"
#include "agent/evidence/runtime_directories.h"
#include "agent/evidence/threaded_source.h"
#include "agent/host/log.h"
#include "agent/probe/clock.h"

namespace syncline::agent {

class ConnectionRecorder : public ThreadedSource {
 public:
  // Neither clock nor log is owned; both outlive this.
  ConnectionRecorder(RuntimeDirectories directories, Clock* clock, Log* log,
                     ConnectionSamplerOptions options = {});

  bool IsWanted(const v1::PrepareRequest& request) const override {
    return !request.skip_evidence();
  }

  // How long to wait behind a round that took so much of a processor and wrote so much. Pure.
  static int64_t PauseNs(int64_t cpu_ns, size_t bytes);

 private:
  class Run;
  std::unique_ptr<EvidenceRun> MakeRun(const std::vector<uint32_t>& left_out) override;

  const RuntimeDirectories directories_;
  Clock* const clock_;
  const ConnectionSamplerOptions options_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CONNECTIONS_CONNECTION_RECORDER_H_

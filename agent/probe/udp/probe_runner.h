// SPDX-License-Identifier: Apache-2.0
// What runs the probing of this host, as the agent's service sees it; a seam for tests.
#ifndef SYNCLINE_AGENT_PROBE_UDP_PROBE_RUNNER_H_
#define SYNCLINE_AGENT_PROBE_UDP_PROBE_RUNNER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "agent/probe/udp/counters.h"
#include "agent/probe/udp/probe_plan.h"

namespace syncline::probe {

// Thread-safe.
class ProbeRunner {
 public:
  virtual ~ProbeRunner() = default;
  virtual absl::Status AddPlan(const ProbePlan& plan) = 0;
  virtual void RemovePlan(uint64_t plan_id) = 0;
  // The plan's edges are probed at the fast rate for so long from now.
  virtual void Hurry(uint64_t plan_id, int64_t duration_ns) = 0;
  virtual std::vector<EdgeStatus> Status() const = 0;
  virtual ProbeCounters counters() const = 0;
  // Processor time that probing has taken so far.
  virtual int64_t CpuNs() const = 0;
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_PROBE_RUNNER_H_

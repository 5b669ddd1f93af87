// SPDX-License-Identifier: Apache-2.0
// What an endpoint is told: which edges it probes and answers, under which key, and how often.
#ifndef SYNCLINE_AGENT_PROBE_UDP_PROBE_PLAN_H_
#define SYNCLINE_AGENT_PROBE_UDP_PROBE_PLAN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/probe/udp/packet.h"
#include "agent/probe/udp/probe_socket.h"
#include "agent/probe/udp/schedule.h"
#include "clocksync/samples.h"

namespace syncline::probe {

// One edge, as seen from this host. Ids are unique in the plan.
struct PlannedEdge {
  uint32_t edge_id = 0;
  bool initiator = false;
  std::string peer;  // the other node's name, for messages
  Address address;   // of the peer; used by the initiator only: an answer goes where the question
                     // came from
};

struct ProbePlan {
  uint64_t plan_id = 0;
  ProbeKey key{};
  std::vector<PlannedEdge> edges;
  ScheduleOptions schedule;
  uint64_t seed = 0;  // of phases and spacings; the same plan, the same schedule
  bool kernel_stamps = true;
  bool spin_allowed = true;
};

struct EdgeSample {
  uint64_t plan_id = 0;
  uint32_t edge_id = 0;
  // Both ends of an edge get its samples. In both, "local" is the initiator.
  bool initiator = false;
  clocksync::ProbeSample sample;
};
// Called on the probing thread: must not wait.
using SampleSink = std::function<void(const EdgeSample&)>;

// How an edge does on this host.
struct EdgeStatus {
  uint64_t plan_id = 0;
  uint32_t edge_id = 0;
  bool initiator = false;
  std::string peer;
  clocksync::StampSource rung = clocksync::StampSource::kKernel;  // of this host's stamps
  std::string reason;                                             // why not a better one
  bool silent = false;     // the peer does not answer (initiator) or ask (responder)
  std::string silence;     // since when, and what may be the cause
  uint64_t exchanges = 0;  // requests sent or received
  uint64_t answered = 0;   // initiator: of these, answered
  uint64_t samples_by_source[clocksync::kStampSources] = {};  // indexed by StampSource
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_PROBE_PLAN_H_

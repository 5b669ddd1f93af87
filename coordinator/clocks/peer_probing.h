// SPDX-License-Identifier: Apache-2.0
// The nodes of a recording probe each other over UDP, with kernel stamps where they have them: much
// narrower than what the coordinator, perhaps a laptop on a VPN, can learn over gRPC. The
// coordinator only hands out the plan (who probes whom, under which key) and takes the samples.
//
// Some hubs probe everybody: any two nodes are then two short hops apart. The samples go to
// clocks/A--B.samples as they come; how each edge was probed, and why not better, to
// clocks/probes.json at the end. Nothing here fails a recording: an agent that cannot probe, or a
// network that swallows UDP, leaves that edge to the coordinator's own probes. Without a recording
// (a look at the fleet) nothing is written: the samples stay in memory.
//
// One thread per node, so that a slow one delays nobody.
#ifndef SYNCLINE_COORDINATOR_CLOCKS_PEER_PROBING_H_
#define SYNCLINE_COORDINATOR_CLOCKS_PEER_PROBING_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "clocksync/samples.h"
#include "coordinator/clocks/probe_report.h"
#include "coordinator/clocks/sample_log.h"
#include "coordinator/fleet/agent_client.h"
#include "coordinator/recording/recording.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::clocks {

struct PeerTarget {
  std::string node;
  std::string address;  // HOST:PORT as the other nodes reach it; empty: cannot be probed
  fleet::AgentClient* client = nullptr;
};

// Who probes whom, as indices: the first is the initiator.
struct Pair {
  size_t local = 0;
  size_t remote = 0;
  bool operator==(const Pair&) const = default;
};
// Every pair of which one is among the first eight (the hubs), and neighbours, who are likely to
// talk to each other. Where all are hubs both of a pair ask, each half as often (agent/probe/udp):
// in larger fleets leaves that ask would load the hubs.
std::vector<Pair> PairsToProbe(size_t nodes);

class PeerProbing {
 public:
  // Begins at once, and does not wait for the nodes.
  PeerProbing(std::vector<PeerTarget> targets, std::optional<recording::Layout> layout);
  ~PeerProbing();  // Stop()

  // A while of quick bursts, from now.
  void Hurry(int64_t ns);
  // Takes the last samples, ends the plan, writes clocks/probes.json. Idempotent. Takes as long as
  // the slowest node, a few seconds at most.
  void Stop();
  // After Stop().
  ProbeReport Report() const;
  // After Stop(), without a recording: the edges that have samples.
  std::vector<clocksync::Edge> Edges() const;

 private:
  // Belongs to its thread until that has ended.
  struct Node {
    PeerTarget target;
    bool active = false;  // follows the plan
    absl::Status status;  // why not (any more), or what went wrong last
    uint64_t next_sample_number = 0;
    uint64_t dropped_count = 0;
    v1::ProbePlanReply last;
    std::jthread thread;
  };
  // Belongs to the thread of the node that asks.
  struct Line {
    Pair pair;
    SampleLog log;
    uint64_t samples = 0;
    absl::Status status;                            // of the file
    std::vector<clocksync::ProbeSample> in_memory;  // without a recording
  };

  void Run(size_t index, const std::stop_token& stop);
  v1::ProbePlan PlanFor(size_t index) const;
  // Prolongs the lease and takes the samples; with a lease of 0, ends the plan.
  void Collect(size_t index, int64_t lease_ms, int64_t hurry_ms);
  void Take(size_t index);
  void Append(size_t index, uint32_t edge_number,
              const std::vector<clocksync::ProbeSample>& samples);
  ProbeReport::End EndOf(size_t index, size_t edge_number) const;

  const std::optional<recording::Layout> layout_;
  v1::ProbePlan plan_;       // without edges
  std::vector<Line> lines_;  // by edge number
  bool stopped_ = false;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  uint64_t hurry_number_ = 0;  // guarded by mutex_; counts the calls of Hurry()
  int64_t hurry_ms_ = 0;       // guarded by mutex_; of the last of them
  std::deque<Node> nodes_;     // last: their threads use the others
};

}  // namespace syncline::clocks

#endif  // SYNCLINE_COORDINATOR_CLOCKS_PEER_PROBING_H_

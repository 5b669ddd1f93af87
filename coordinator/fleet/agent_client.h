// SPDX-License-Identifier: Apache-2.0
// One agent as the coordinator sees it: the seam between what a recording does (record/, clocks/,
// collect/) and gRPC. A thousand fakes of it fit in one test process.
//
// Every call ends: by its answer, its deadline, or Cancel(). Errors carry the canonical code; the
// message is the agent's own, or says why it could not be reached (diagnosis.h). The node's name is
// not in it: who calls knows it.
//
// Thread-safety: an AgentClient may be used by several threads at once; a ClockStream by one
// (Cancel() aside).
#ifndef SYNCLINE_COORDINATOR_FLEET_AGENT_CLIENT_H_
#define SYNCLINE_COORDINATOR_FLEET_AGENT_CLIENT_H_

#include <chrono>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/hosts/hosts.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::fleet {

// Four-timestamp exchanges, on a connection of their own: a bulk fetch does not delay them.
class ClockStream {
 public:
  virtual ~ClockStream() = default;
  // Sends one probe and waits for its answer. `sent_raw_ns` and `received_raw_ns` are
  // CLOCK_MONOTONIC_RAW read right before the send and right after the receipt; the stream reads
  // the clock because nothing else may come between. An error ends the stream.
  struct Exchange {
    int64_t sent_raw_ns = 0;
    int64_t received_raw_ns = 0;
    v1::ClockProbeReply reply;
  };
  virtual absl::StatusOr<Exchange> Probe(uint64_t sequence_number) = 0;
  // Ends a running Probe() and every later one with Cancelled. From any thread.
  virtual void Cancel() = 0;
};

class AgentClient {
 public:
  using Timeout = std::chrono::milliseconds;
  // Returns an error to end the transfer.
  using ChunkSink = std::function<absl::Status(v1::FetchChunk&)>;

  virtual ~AgentClient() = default;

  virtual absl::StatusOr<v1::DescribeResponse> Describe(const v1::DescribeRequest& request,
                                                        Timeout timeout) = 0;
  virtual absl::StatusOr<v1::PrepareResponse> Prepare(const v1::PrepareRequest& request,
                                                      Timeout timeout) = 0;
  virtual absl::StatusOr<v1::StartResponse> Start(const v1::StartRequest& request,
                                                  Timeout timeout) = 0;
  virtual absl::StatusOr<v1::StopResponse> Stop(const v1::StopRequest& request,
                                                Timeout timeout) = 0;
  virtual absl::StatusOr<v1::StatusResponse> Status(const v1::StatusRequest& request,
                                                    Timeout timeout) = 0;
  virtual absl::StatusOr<v1::ReleaseResponse> Release(const v1::ReleaseRequest& request,
                                                      Timeout timeout) = 0;
  // The timeout is for silence: it starts anew with every chunk.
  virtual absl::Status Fetch(const v1::FetchRequest& request, Timeout timeout,
                             const ChunkSink& sink) = 0;
  virtual absl::StatusOr<std::unique_ptr<ClockStream>> OpenClockStream() = 0;

  // Clock probes among the nodes over UDP. An agent without them says Unimplemented.
  virtual absl::StatusOr<v1::ProbePlanReply> Probe(const v1::ProbePlan&, Timeout) {
    return absl::UnimplementedError("this agent does not probe clocks over UDP");
  }
  virtual absl::StatusOr<v1::ProbeSamplesReply> ProbeSamples(const v1::ProbeSamplesRequest&,
                                                             Timeout) {
    return absl::UnimplementedError("this agent does not probe clocks over UDP");
  }

  // Stacks of the node's processes. An older agent says Unimplemented.
  virtual absl::StatusOr<v1::StacksResponse> Stacks(const v1::StacksRequest&, Timeout) {
    return absl::UnimplementedError("this agent cannot show stacks");
  }

  // Ends every call that is running now (clock streams aside) with Cancelled. From any thread.
  virtual void Cancel() = 0;
};

// A node and the way to its agent. The client outlives nothing but the calls on it.
struct Member {
  hosts::Node node;
  std::unique_ptr<AgentClient> client;
};

}  // namespace syncline::fleet

#endif  // SYNCLINE_COORDINATOR_FLEET_AGENT_CLIENT_H_

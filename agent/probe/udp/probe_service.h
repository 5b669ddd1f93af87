// SPDX-License-Identifier: Apache-2.0
// The probing of this host as the wire contract has it: plans with leases come in, samples go out.
// Knows messages but no gRPC. Thread-safe.
#ifndef SYNCLINE_AGENT_PROBE_UDP_PROBE_SERVICE_H_
#define SYNCLINE_AGENT_PROBE_UDP_PROBE_SERVICE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/probe/udp/probe_plan.h"
#include "agent/probe/udp/probe_runner.h"
#include "agent/probe/udp/probe_socket.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::probe {

// The first address of HOST:PORT in the family (AF_INET, AF_INET6: IPv4 is mapped into it;
// AF_UNSPEC). An empty host or "*" is every address of this machine. May ask a name server.
absl::StatusOr<Address> Resolve(const std::string& host_and_port, int family);

class ProbeService {
 public:
  using Resolver = std::function<absl::StatusOr<Address>(const std::string& host_and_port)>;

  // Until Listen() or Use() every call is answered with `Unavailable`.
  ProbeService();
  ~ProbeService();

  // Opens the UDP socket on the port of the agent's TCP server. A failure is what Probe() says from
  // then on.
  absl::Status Listen(const std::string& host_and_port);
  // For tests: another runner.
  void Use(std::unique_ptr<ProbeRunner> runner, Resolver resolver);
  // Where samples come in.
  SampleSink sink();

  // `now_ns` is any clock of this host that goes forward, the same in all calls.
  absl::StatusOr<v1::ProbePlanReply> Probe(const v1::ProbePlan& plan, int64_t now_ns);
  absl::StatusOr<v1::ProbeSamplesReply> Samples(const v1::ProbeSamplesRequest& request);
  // Ends plans whose lease is over; call it now and then. Never waits: a plan whose names take long
  // to look up must not delay whoever ticks.
  void Tick(int64_t now_ns);

 private:
  struct Store {
    uint64_t first_number = 0;  // of the oldest sample kept
    uint64_t dropped = 0;
    std::deque<EdgeSample> kept;
  };

  void Keep(const EdgeSample& sample);
  void End(uint64_t plan_number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Begin(const v1::ProbePlan& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<ProbePlan> Understand(const v1::ProbePlan& message) const;
  v1::ProbePlanReply Describe(uint64_t plan_number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Two locks: the probing thread stores samples while a call waits for that thread.
  mutable std::mutex mutex_;
  absl::Status state_ ABSL_GUARDED_BY(mutex_);
  Resolver resolver_;
  std::map<uint64_t, int64_t> leases_ ABSL_GUARDED_BY(mutex_);  // plan number to its end
  mutable std::mutex samples_mutex_;
  std::map<uint64_t, Store> stores_ ABSL_GUARDED_BY(samples_mutex_);
  std::unique_ptr<ProbeRunner> runner_;  // last: it uses the others
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_PROBE_SERVICE_H_

// SPDX-License-Identifier: Apache-2.0
// Runs an Endpoint on a thread of its own, on a real UDP socket. Thread-safe.
#ifndef SYNCLINE_AGENT_PROBE_UDP_PROBE_THREAD_H_
#define SYNCLINE_AGENT_PROBE_UDP_PROBE_THREAD_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/probe/udp/counters.h"
#include "agent/probe/udp/endpoint.h"
#include "agent/probe/udp/probe_clock.h"
#include "agent/probe/udp/probe_plan.h"
#include "agent/probe/udp/probe_runner.h"
#include "agent/probe/udp/udp_socket.h"

namespace syncline::probe {

class ProbeThread : public ProbeRunner {
 public:
  struct Options {
    Address listen;
    bool kernel_stamps = true;
  };
  // `sink` is called on the probing thread and must neither wait nor call back.
  static absl::StatusOr<std::unique_ptr<ProbeThread>> Start(const Options& options,
                                                            SampleSink sink);
  ~ProbeThread() override;

  absl::Status AddPlan(const ProbePlan& plan) override;
  void RemovePlan(uint64_t plan_id) override;
  void Hurry(uint64_t plan_id, int64_t duration_ns) override;
  std::vector<EdgeStatus> Status() const override;
  ProbeCounters counters() const override;
  const Address& address() const { return address_; }
  int64_t CpuNs() const override;

 private:
  ProbeThread() = default;
  void Loop(const std::stop_token& stop);
  // Everything that is there; false when nothing was.
  bool Drain();
  void Wait(int64_t until_raw_ns);
  void Wake();

  std::unique_ptr<SystemProbeClock> clock_;
  std::unique_ptr<UdpSocket> socket_;
  Address address_;
  int wake_ = -1;  // an eventfd
  mutable std::mutex mutex_;
  std::unique_ptr<Endpoint> endpoint_ ABSL_PT_GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses the others
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_PROBE_THREAD_H_

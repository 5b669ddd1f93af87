// SPDX-License-Identifier: Apache-2.0
// Finds profilers by asking the ports of TensorFlow's processes. What a port turned out to be is
// remembered for as long as its process lives, so that only newcomers are asked: a worker hears
// from us twice in its life, however often somebody looks. Users take turns: whose ports do not
// answer holds up no other user's. Thread-safe.
#ifndef SYNCLINE_AGENT_TFPROFILER_PORT_PROBER_H_
#define SYNCLINE_AGENT_TFPROFILER_PORT_PROBER_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "agent/probe/clock.h"
#include "agent/tfprofiler/listening_ports.h"
#include "agent/tfprofiler/profiler_finder.h"

namespace syncline::agent {

struct PortProberOptions {
  uint32_t only_uid = 0;  // whose processes; 0: everybody's
  std::filesystem::path proc = "/proc";
  int port_limit_ms = 2'000;  // for one port: it answers within 1 ms, unless the machine is starved
  int limit_ms = 4'000;       // for all
};

class PortProber : public ProfilerFinder {
 public:
  // `clock` is not owned.
  PortProber(Clock* clock, PortProberOptions options) : clock_(clock), options_(options) {}

  std::vector<FoundProfiler> Find() override;

 private:
  using PortKey = std::tuple<int32_t, uint64_t, uint64_t>;  // pid, start, socket
  struct Answer {
    bool is_profiler = false;
    bool final = false;  // it will not be another one next time
    std::string task;
    std::string incarnation;
    std::string refusal;  // why it is none
  };
  struct Question {
    PortKey key;
    const TensorFlowProcess* process;
    const ListeningSocket* socket;
  };

  static PortKey KeyOf(const TensorFlowProcess& process, const ListeningSocket& socket);
  void AskAll(const std::vector<Question>& questions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Answer Ask(const Question& question, int64_t until_ns) const;
  FoundProfiler Choose(const TensorFlowProcess& process) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock* const clock_;
  const PortProberOptions options_;
  std::mutex mutex_;
  std::map<PortKey, Answer> answers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_TFPROFILER_PORT_PROBER_H_

// SPDX-License-Identifier: Apache-2.0
// The seam to the profilers that TensorFlow's workers serve: where they are.
#ifndef SYNCLINE_AGENT_TFPROFILER_PROFILER_FINDER_H_
#define SYNCLINE_AGENT_TFPROFILER_PROFILER_FINDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "agent/host/process_table.h"

namespace syncline::agent {

// A process with TensorFlow in it, and its profiler's port.
struct FoundProfiler {
  ProcessEntry process;
  uint64_t net_namespace = 0;  // inode; 0: not allowed to see
  std::string address;         // that it listens on
  uint16_t port = 0;           // 0: none was found
  std::string task;            // "/job:worker/replica:0/task:0"; empty: it is no such server
  std::string incarnation;     // 16 hex digits, as in the keys of tensors that it sends
  std::string absence;         // why there is no port, for people
  // It has run a collective (MultiWorkerMirroredStrategy). TensorFlow follows one from thread to
  // thread, and when a profile ends it looks at such events after their memory was freed
  // (tsl::profiler::TraceMeRecorder::Consume, 2.21): every third profile ended its job.
  bool runs_collectives = false;
  bool jax = false;  // JAX, whose profiler is the same where the program starts its server
};

class ProfilerFinder {
 public:
  virtual ~ProfilerFinder() = default;
  // What there is now. Takes a bounded time, however many ports there are and whoever is behind
  // them. Thread-safe.
  virtual std::vector<FoundProfiler> Find() = 0;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_TFPROFILER_PROFILER_FINDER_H_

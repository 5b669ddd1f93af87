// SPDX-License-Identifier: Apache-2.0
// Reads the node's clocks ten times a second and more, all its life: the last readings for whoever
// asks, and, while a recording exists, every reading into its clock.tuples. CLOCK_MONOTONIC, the
// trace's clock, is slewed by NTP; only these readings tie it to CLOCK_MONOTONIC_RAW, on which all
// clock maths stands. Thread-safe; a thread of its own.
#ifndef SYNCLINE_AGENT_PROBE_CLOCK_SAMPLER_H_
#define SYNCLINE_AGENT_PROBE_CLOCK_SAMPLER_H_

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "agent/probe/clock.h"

namespace syncline::agent {

// What a recording needs of the sampler.
class ClockRecorder {
 public:
  virtual ~ClockRecorder() = default;
  // Every reading from now on is appended to `path`.
  virtual absl::Status StartFile(const std::filesystem::path& path) = 0;
  virtual void StopFile() = 0;
};

class ClockSampler : public ClockRecorder {
 public:
  // `clock` is not owned. `node` goes into the head of the files.
  ClockSampler(Clock* clock, std::string node);
  ~ClockSampler() override;

  absl::Status StartFile(const std::filesystem::path& path) override;
  void StopFile() override;
  clocksync::ClockTuple last() const;

 private:
  void Loop(const std::stop_token& stop);
  void Append(const clocksync::ClockTuple& tuple) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock* const clock_;
  const std::string node_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  int file_ ABSL_GUARDED_BY(mutex_) = -1;
  clocksync::ClockTuple last_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses the others
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_PROBE_CLOCK_SAMPLER_H_

// SPDX-License-Identifier: Apache-2.0
// Whether LTTng's session daemon ran all the time while a recording was prepared. Programs wait
// half a second for its answers when a session begins (instrumentation/abi/tracer.h); when it is
// stopped for longer (SIGSTOP, a debugger) they give up, and LTTng never reaches them again: the
// node would be ready, and record nothing.
#ifndef SYNCLINE_AGENT_RECORDING_DAEMON_WATCH_H_
#define SYNCLINE_AGENT_RECORDING_DAEMON_WATCH_H_

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

namespace syncline::agent {

// Looks many times a second, as long as it lives, at the session daemons of one user beside this
// agent: others' cannot hinder it. Thread-safe.
class DaemonWatch {
 public:
  DaemonWatch(std::filesystem::path proc, uint32_t uid);

  // FailedPrecondition: one of them was stopped since this watch began, with what to do.
  absl::Status AllRan();

 private:
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(const std::stop_token& stop);

  const std::filesystem::path proc_;
  const std::vector<int32_t> daemons_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  int32_t stopped_ ABSL_GUARDED_BY(mutex_) = 0;  // the first that was; 0: none
  std::jthread thread_;                          // last: it uses the others
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_DAEMON_WATCH_H_

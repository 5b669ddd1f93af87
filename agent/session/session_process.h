// SPDX-License-Identifier: Apache-2.0
// LttngControl in a child process that is killed and replaced when a call exceeds its limit:
// neither a blocked session daemon nor a crash in the tracer's library can hold or end the agent.
// Thread-safe: calls queue behind one another.
#ifndef SYNCLINE_AGENT_SESSION_SESSION_PROCESS_H_
#define SYNCLINE_AGENT_SESSION_SESSION_PROCESS_H_

#include <sys/types.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "agent/session/lttng_control.h"
#include "agent/session/session_protocol.h"

namespace syncline::agent {

// How long each call may take before its process is replaced, ms. Guessed, from measurements:
// starting with one stopped program takes 5.3 s, with large buffers 2 s; everything else well below
// 1 s.
struct SessionLimits {
  int alive_ms = 5'000;
  int create_ms = 10'000;
  int start_ms = 30'000;
  int stop_ms = 10'000;
  int counters_ms = 5'000;
  int programs_ms = 15'000;  // the daemon waits up to 5 s for a program that does not answer
  int destroy_beyond_wait_ms = 3'000;  // on top of the wait asked for
};

class SessionProcess : public LttngControl {
 public:
  // `command` starts the child; it finds the socket as descriptor 3.
  SessionProcess(std::vector<std::string> command, std::map<std::string, std::string> environment,
                 SessionLimits limits = {});
  ~SessionProcess() override;
  SessionProcess(const SessionProcess&) = delete;
  SessionProcess& operator=(const SessionProcess&) = delete;

  absl::StatusOr<bool> DaemonAlive() override;
  absl::Status Create(const SessionSpec& spec) override;
  absl::Status Start(const std::string& session) override;
  absl::Status Stop(const std::string& session) override;
  absl::StatusOr<std::vector<ChannelCounters>> Counters(const std::string& session) override;
  absl::Status Destroy(const std::string& session, int wait_ms) override;
  absl::StatusOr<std::vector<std::string>> Sessions() override;
  absl::StatusOr<std::vector<int32_t>> Programs() override;

 private:
  // The reply with an OK status, or the error.
  absl::StatusOr<SessionReply> Call(const SessionCall& call, int limit_ms);
  absl::StatusOr<SessionReply> Exchange(const SessionCall& call, int limit_ms)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status EnsureChild() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KillChild() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::vector<std::string> command_;
  const std::map<std::string, std::string> environment_;
  const SessionLimits limits_;
  std::mutex mutex_;
  pid_t child_ ABSL_GUARDED_BY(mutex_) = -1;
  int socket_ ABSL_GUARDED_BY(mutex_) = -1;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SESSION_SESSION_PROCESS_H_

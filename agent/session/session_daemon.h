// SPDX-License-Identifier: Apache-2.0
// A session daemon for the node: the one that runs is left alone; where there is none, one is
// started, and ended again when the agent ends and nobody else uses it.
#ifndef SYNCLINE_AGENT_SESSION_SESSION_DAEMON_H_
#define SYNCLINE_AGENT_SESSION_SESSION_DAEMON_H_

#include <filesystem>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "agent/session/lttng_control.h"
#include "agent/session/spawn.h"

namespace syncline::agent {

class SessionDaemon {
 public:
  // `environment` is given to the daemon (LTTNG_HOME); `pid_file` remembers, across restarts of the
  // agent, that the daemon is ours. Neither `control` nor `runner` is owned.
  SessionDaemon(LttngControl* control, ProcessRunner* runner,
                std::map<std::string, std::string> environment, std::filesystem::path pid_file);

  // Returns when a session daemon answers. FailedPrecondition: LTTng is not installed, or the
  // daemon does not start; the message holds the daemon's own words.
  absl::Status Ensure();

  // Ends a daemon that this agent started, unless it has sessions of others.
  void StopIfOurs();

  // Another daemon in place of one that is broken. FailedPrecondition: it is not ours to end.
  absl::Status Renew();

 private:
  LttngControl* const control_;
  ProcessRunner* const runner_;
  const std::map<std::string, std::string> environment_;
  const std::filesystem::path pid_file_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SESSION_SESSION_DAEMON_H_

// SPDX-License-Identifier: Apache-2.0
// This user's own agent on this machine: what commands talk to when no node is named. It is started
// when none runs, serves a Unix socket only, and ends by itself when nobody has called for a while.
//
// Its data lie on this machine's disk and its socket in this machine's shared memory, because a
// home directory may be shared by many machines.
#ifndef SYNCLINE_COORDINATOR_CLI_LOCAL_AGENT_H_
#define SYNCLINE_COORDINATOR_CLI_LOCAL_AGENT_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/cli/environment.h"

namespace syncline::cli {

inline constexpr int kLocalAgentIdleMinutes = 10;

struct LocalAgentPlace {
  std::filesystem::path program;         // syncline-agent
  std::filesystem::path data_directory;  // $SYNCLINE_DATA_DIR, else /var/tmp/syncline-UID
  std::filesystem::path socket;  // agent.sock in the runtime directory of `uid` on this machine
};

// `executable`: the path of `syncline`; the agent's program stands beside it. Pure.
LocalAgentPlace PlaceOfLocalAgent(const std::filesystem::path& executable, uint32_t uid,
                                  const Environment& environment);

// What the agent gets of its starter's environment: nothing that `syncline env` planted there, for
// it is no program to be traced. Pure.
Environment EnvironmentOfLocalAgent(const Environment& environment);

// Whether an agent runs at `place` now; if not, one is started: true. Waits until it can be called.
// FailedPrecondition says why it does not start; DeadlineExceeded when it is not ready in time.
absl::StatusOr<bool> EnsureLocalAgent(const LocalAgentPlace& place, const Environment& environment);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_LOCAL_AGENT_H_

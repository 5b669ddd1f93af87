// SPDX-License-Identifier: Apache-2.0
// The canary: a short-lived program, run as each user to be traced, whose one event must come back
// through the session before the node says that it is ready. LTTng itself reports success where
// nothing can be recorded (shared memory full, another LTTNG_HOME, a user that the daemon does not
// see).
#ifndef SYNCLINE_AGENT_RECORDING_CANARY_H_
#define SYNCLINE_AGENT_RECORDING_CANARY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/session/lttng_control.h"
#include "agent/session/spawn.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

class Canary {
 public:
  virtual ~Canary() = default;
  // Returns once the event was handed to the tracer. FailedPrecondition: no session listens to
  // programs of this user, or the program cannot be run as that user.
  virtual absl::Status Sing(uint32_t uid, uint64_t nonce) = 0;
};

struct SystemCanaryOptions {
  uint32_t own_uid = 0;
  std::string canary_program;
  std::string agent_program;  // run with --run-as to become another user
  std::map<std::string, std::string> environment;
};

class SystemCanary : public Canary {
 public:
  // `runner` is not owned.
  SystemCanary(ProcessRunner* runner, SystemCanaryOptions options);
  absl::Status Sing(uint32_t uid, uint64_t nonce) override;

 private:
  ProcessRunner* const runner_;
  const SystemCanaryOptions options_;
};

struct CanaryRound {
  Canary* canary = nullptr;
  LttngControl* lttng = nullptr;
  const SessionSpec* session = nullptr;  // which runs; afterwards it is stopped
  uint32_t own_uid = 0;                  // the agent's
  bool own_has_processes = false;
  std::map<uint32_t, uint64_t> nonces;  // by user; the agent's own among them
  std::string room;                     // what there is of shared memory, for the message
};

// Whether events of these users come back. The node is not ready where the agent's own does not, or
// that of nobody who has processes: FailedPrecondition. One of them whose does not may have seen to
// that himself (the canary runs as he): that is a complaint about him.
absl::StatusOr<std::vector<v1::Complaint>> RunCanaries(const CanaryRound& round);

// Becomes `uid` with that user's group and nothing else, then executes the program; returns only
// with an exit code for failure. In a process of its own: the identity of a whole process changes.
int RunAs(uint32_t uid, const std::string& program, const std::string& argument);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_CANARY_H_

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

#include "absl/status/status.h"
#include "agent/session/spawn.h"

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

// Becomes `uid` with that user's group and nothing else, then executes the program; returns only
// with an exit code for failure. In a process of its own: the identity of a whole process changes.
int RunAs(uint32_t uid, const std::string& program, const std::string& argument);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_CANARY_H_

// SPDX-License-Identifier: Apache-2.0
// Starting other programs from a process with threads: posix_spawn only, nothing inherited but what
// is named, and every wait with a limit. ProcessRunner is the seam for those who run a program to
// its end.
#ifndef SYNCLINE_AGENT_SESSION_SPAWN_H_
#define SYNCLINE_AGENT_SESSION_SPAWN_H_

#include <sys/resource.h>
#include <sys/types.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace syncline::agent {

struct SpawnOptions {
  std::vector<std::string> arguments;              // [0]: the program, looked up in PATH
  std::map<std::string, std::string> environment;  // added to our own, or replacing in it
  // The program belongs to another user, who can read its environment: of our own it gets only what
  // the dynamic linker and LTTng need.
  bool for_another_user = false;
  int pass_as_3 = -1;       // becomes descriptor 3 of the child
  int pass_as_output = -1;  // becomes its standard output and error
};

// The child runs in a session of its own, with no signal blocked.
absl::StatusOr<pid_t> Spawn(const SpawnOptions& options);

// Waits up to `limit_ms`, then kills. The exit code, 128 + signal, or DeadlineExceeded.
absl::StatusOr<int> WaitForExit(pid_t pid, int limit_ms);

struct RunResult {
  int exit_code = 0;
  std::string output;  // standard output and error, the first 4 KiB
};

class ProcessRunner {
 public:
  virtual ~ProcessRunner() = default;
  // Runs a program to its end, at most `limit_ms`; then it is killed: DeadlineExceeded.
  virtual absl::StatusOr<RunResult> Run(const SpawnOptions& options, int limit_ms) = 0;
};

class SystemProcessRunner : public ProcessRunner {
 public:
  // `launcher`: a command that becomes the program whose command line follows its own, and exits
  // with kNoSuchProgram when there is none (`syncline-agent --limit-files N`).
  explicit SystemProcessRunner(std::vector<std::string> launcher = {})
      : launcher_(std::move(launcher)) {}
  absl::StatusOr<RunResult> Run(const SpawnOptions& options, int limit_ms) override;

 private:
  const std::vector<std::string> launcher_;
};

inline constexpr int kNoSuchProgram = 127;  // as a shell says it

// Becomes the program argv[0] with `soft` as its soft limit of open files: posix_spawn cannot set
// that, and lowering it in a process with threads takes descriptors away from them. Returns only
// when there is no such program; what to exit with.
int BecomeWithDescriptors(rlim_t soft, char** argv);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SESSION_SPAWN_H_

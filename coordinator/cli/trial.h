// SPDX-License-Identifier: Apache-2.0
// Something that may crash or hang, tried in a child process first. Thread-safety: one thread.
#ifndef SYNCLINE_COORDINATOR_CLI_TRIAL_H_
#define SYNCLINE_COORDINATOR_CLI_TRIAL_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace syncline::cli {

struct Trial {
  std::string said;   // what the child wrote into its descriptor
  bool late = false;  // it was silent for too long, and was killed
  int status = 0;     // as waitpid has it
};

// Runs `child` in a fork of this process; it is given a descriptor to write to and must not return.
// Errors: from errno, when there is no child.
absl::StatusOr<Trial> Try(const std::function<void(int report)>& child, int limit_ms);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_TRIAL_H_

// SPDX-License-Identifier: Apache-2.0
// syncline why A --against B: what changed between recordings, or profiles, of one job.
#ifndef SYNCLINE_COORDINATOR_CLI_WHY_AGAINST_H_
#define SYNCLINE_COORDINATOR_CLI_WHY_AGAINST_H_

#include <optional>
#include <string>
#include <vector>

#include "coordinator/cli/context.h"

namespace syncline::cli {

struct AgainstArguments {
  std::vector<std::string> now;      // a recording, or the profiles of all ranks
  std::vector<std::string> before;   // at least one: recordings, or directories of profiles
  std::optional<std::string> job;    // of all
  std::vector<std::string> fail_if;  // analysis/why/limits.h
  bool json = false;
};

// Prints the comparison. kAboveLimit: a limit was exceeded, which is so only if all of the interval
// lies above it; kIncomplete: not compared, or a limit could not be judged; else kDone.
int WhyAgainst(const Context& context, const AgainstArguments& arguments);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_WHY_AGAINST_H_

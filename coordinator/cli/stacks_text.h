// SPDX-License-Identifier: Apache-2.0
// The answer of `syncline stacks` for people: who stands behind, then every rank with its groups
// and the stacks of its threads. Pure.
#ifndef SYNCLINE_COORDINATOR_CLI_STACKS_TEXT_H_
#define SYNCLINE_COORDINATOR_CLI_STACKS_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "coordinator/stacks/verdict.h"

namespace syncline::cli {

struct TextOptions {
  size_t width = 80;
  bool all = false;  // also the stacks of a rank's further processes: loader's workers and the like
};

std::string StacksText(const std::vector<stacks::NodeLook>& looks,
                       const std::vector<stacks::GroupVerdict>& verdicts,
                       const TextOptions& options);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_STACKS_TEXT_H_

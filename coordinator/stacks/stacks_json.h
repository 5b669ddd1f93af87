// SPDX-License-Identifier: Apache-2.0
// The same for programs: what the agents say, and who stands behind. Pure.
#ifndef SYNCLINE_COORDINATOR_STACKS_STACKS_JSON_H_
#define SYNCLINE_COORDINATOR_STACKS_STACKS_JSON_H_

#include <string>
#include <vector>

#include "coordinator/stacks/verdict.h"

namespace syncline::stacks {

std::string StacksJson(const std::vector<NodeLook>& looks,
                       const std::vector<GroupVerdict>& verdicts);

}  // namespace syncline::stacks

#endif  // SYNCLINE_COORDINATOR_STACKS_STACKS_JSON_H_

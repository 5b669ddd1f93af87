// SPDX-License-Identifier: Apache-2.0
// Jobs whose ranks have no process group yet, because one of them does not come: it has ended, is
// stopped, or in no process that is known. How many ranks there should be is known
// by WORLD_SIZE and the like alone, so that nothing is said unless a rank stands in PyTorch's
// making of a process group. Pure.
#ifndef SYNCLINE_COORDINATOR_STACKS_WITHOUT_GROUP_H_
#define SYNCLINE_COORDINATOR_STACKS_WITHOUT_GROUP_H_

#include <vector>

#include "coordinator/stacks/verdict.h"

namespace syncline::stacks {

// One for each such job, without a name.
std::vector<GroupVerdict> JudgeWithoutGroups(const std::vector<NodeLook>& looks);

}  // namespace syncline::stacks

#endif  // SYNCLINE_COORDINATOR_STACKS_WITHOUT_GROUP_H_

// SPDX-License-Identifier: Apache-2.0
// A process group as a process tells of it, for tests.
#ifndef SYNCLINE_COORDINATOR_STACKS_TESTING_GROUP_H_
#define SYNCLINE_COORDINATOR_STACKS_TESTING_GROUP_H_

#include <cstdint>
#include <string>

#include "syncline/v1/agent.pb.h"

namespace syncline::stacks {

// Adds group 0, of `ranks` ("0-2"), over Gloo: at both looks `rank` had entered its `number`-th
// collective last, an all_reduce, which is `pending` or over.
inline v1::ProcessGroupState& AddGroup(const std::string& ranks, int32_t rank, int64_t number,
                                       bool pending, v1::ProcessStacks* stacks) {
  v1::ProcessGroupState& group = *stacks->add_groups();
  group.set_name("0");
  group.set_ranks(ranks);
  group.set_rank(rank);
  group.set_backend("gloo");
  group.set_sequence_number(number);
  group.set_first_look_sequence_number(number);
  group.set_collective_number(number);
  group.set_first_look_collective_number(number);
  group.set_collective("all_reduce");
  group.set_collective_pending(pending);
  group.set_pending_number(pending ? number : -1);
  group.set_first_look_pending_number(pending ? number : -1);
  return group;
}

}  // namespace syncline::stacks

#endif  // SYNCLINE_COORDINATOR_STACKS_TESTING_GROUP_H_

// SPDX-License-Identifier: Apache-2.0
// Who stands behind in a job that stands still, by counts and never by clocks.
//
// Each rank knows the number of the last collective that it has asked for in each of its process
// groups. A rank whose number is lower than another's has not entered the other's last one. Numbers
// only grow, and each rank was looked at twice: where both looks of it agree, its number was so all
// the time in between. If the times in between of all ranks share an instant, the numbers were so
// together; otherwise nothing is said. No clock of two nodes is compared for that: how long before
// its answer a node has looked is a duration, and counts back from when the answer was here.
//
// Worked example: rank 0 says "#42, all_reduce, not over", rank 1 says "#41": rank 1 is behind, and
// rank 0 waits for it. Rank 2 of the same group does not answer: that rank 1 is behind is true all
// the same. If 0 and 1 said #42 both, nothing would be said but that 2 is unknown.
//
// Pure.
#ifndef SYNCLINE_COORDINATOR_STACKS_VERDICT_H_
#define SYNCLINE_COORDINATOR_STACKS_VERDICT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::stacks {

// What one node answered. The times are one clock's of the caller, right before the call and right
// after it.
struct NodeLook {
  std::string node;
  absl::StatusOr<v1::StacksResponse> answer;
  int64_t asked_ns = 0;
  int64_t answered_ns = 0;
};

struct Member {
  int32_t rank = -1;
  const std::string* node = nullptr;
  const v1::ProcessStacks* process = nullptr;
  const v1::ProcessGroupState* state = nullptr;
  int64_t number = -1;  // of its last collective; -1: unknown
};

enum class GroupKind : uint8_t {
  kBehind,     // `behind` have not entered what others have
  kMismatch,   // under one number they ask for different collectives
  kWaiting,    // all have entered the same one, and it is not over on some
  kIdle,       // all have left the same one
  kMoves,      // it does not stand still
  kUndecided,  // the sentence says why
};

// Of one process group. Points into the looks.
struct GroupVerdict {
  GroupKind kind = GroupKind::kUndecided;
  std::string name;
  std::string description;
  std::string job;
  size_t size = 0;              // ranks that it has
  std::vector<Member> members;  // those that answered, by rank
  std::vector<int32_t> behind;
  std::vector<int32_t> unknown;  // ranks of which nothing is known
  std::string sentence;
};

// Whether what PyTorch's record says is the group's own. Where it says more than was counted, it is
// of an earlier group with the same name.
bool HasOwnRecord(const v1::ProcessGroupState& group);

// Behind and mismatched ones first.
std::vector<GroupVerdict> Judge(const std::vector<NodeLook>& looks);

// "0-3,8" -> 0 1 2 3 8, at most 2^20. InvalidArgument for anything else.
absl::StatusOr<std::vector<int32_t>> ParseRanks(const std::string& text);

// The innermost frame of the program's own code, or of any; null: there is no stack of the main
// thread.
const v1::StackFrame* MainPlace(const v1::ProcessStacks& process);

// "load_batch (train.py:23)".
std::string PlaceText(const v1::StackFrame& frame);

const char* KindName(GroupKind kind);

}  // namespace syncline::stacks

#endif  // SYNCLINE_COORDINATOR_STACKS_VERDICT_H_

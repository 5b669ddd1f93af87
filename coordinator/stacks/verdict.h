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
// the same. If 0 and 1 said #42 both, nothing would be said but that 2 is unknown, and why. If its
// process has ended, 0 and 1 wait for a rank that is dead: absent.h says when that is known.
//
// Pure.
#ifndef SYNCLINE_COORDINATOR_STACKS_VERDICT_H_
#define SYNCLINE_COORDINATOR_STACKS_VERDICT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/stacks/absent.h"
#include "coordinator/stacks/members.h"

namespace syncline::stacks {

enum class GroupKind : uint8_t {
  kDead,       // the process of a rank has ended
  kStopped,    // that of a rank is stopped
  kBehind,     // `behind` have not entered what others have
  kMismatch,   // under one number they ask for different collectives
  kMissing,    // a rank is in no process that is known on a node that answered
  kWaiting,    // all have entered the same one, and it is not over on some
  kIdle,       // all have left the same one
  kMoves,      // it does not stand still
  kUndecided,  // the sentence says why
};

// Of one process group, or of a job whose ranks have none so far: then `name` is empty. Points into
// the looks.
struct GroupVerdict {
  GroupKind kind = GroupKind::kUndecided;
  std::string name;
  std::string description;
  std::string job;
  size_t size = 0;              // ranks that it has
  std::vector<Member> members;  // those that answered, by rank
  std::vector<int32_t> behind;
  std::vector<int32_t> unknown;  // ranks that are no members here
  AbsentRanks absent;            // what is known of these
  std::string sentence;
};

// Those with ranks that have ended first, then stopped, behind and mismatched ones.
std::vector<GroupVerdict> Judge(const std::vector<NodeLook>& looks);

// "0-3,8" -> 0 1 2 3 8, at most 2^20. InvalidArgument for anything else.
absl::StatusOr<std::vector<int32_t>> ParseRanks(const std::string& text);

// The innermost frame of the program's own code, or of any; null: there is no stack of the main
// thread.
const v1::StackFrame* MainPlace(const v1::ProcessStacks& process);

// "load_batch (train.py:23)".
std::string PlaceText(const v1::StackFrame& frame);

// "Rank 1's main thread stood in load_batch (train.py:23) at both looks."; empty: not known.
std::string Where(const Member& member);

// Behind what is there, as a sentence of its own. Nothing for an empty text.
void AppendSentence(std::string text, std::string* sentence);

const char* KindName(GroupKind kind);

}  // namespace syncline::stacks

#endif  // SYNCLINE_COORDINATOR_STACKS_VERDICT_H_

// SPDX-License-Identifier: Apache-2.0
// What the nodes answered, and who of it is a member of a process group. Plain values.
#ifndef SYNCLINE_COORDINATOR_STACKS_MEMBERS_H_
#define SYNCLINE_COORDINATOR_STACKS_MEMBERS_H_

#include <cstdint>
#include <optional>
#include <string>

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
  int64_t number = -1;                           // of its last collective; -1: unknown
  std::optional<int64_t> age_ns = std::nullopt;  // when its node answered; nullopt: unknown
};

// Processes of two users are never of one group: nobody speaks for another user's job.
struct JobKey {
  uint32_t uid = 0;
  std::string job;
  std::string incarnation;
  auto operator<=>(const JobKey&) const = default;
};

// Whether what PyTorch's record says is the group's own. Where it says more than was counted, it is
// of an earlier group with the same name.
bool HasOwnRecord(const v1::ProcessGroupState& group);

// The number of its last collective; nullopt: not known. NCCL's counter has collectives alone,
// Gloo's transfers as well; a group of several backends has one for each.
std::optional<int64_t> NumberOf(const v1::ProcessGroupState& state);

JobKey JobOf(const v1::ProcessInfo& process);

// Whether it is a rank itself: a launcher has a rank's number, and so have loader workers and
// children.
bool IsRankItself(const v1::ProcessInfo& process);

// How long the process had run when its node answered; nullopt: unknown.
std::optional<int64_t> AgeNs(const v1::ProcessInfo& process, const v1::StacksResponse& answer);

// Whether an answer has the process among those that have ended: it did while the node looked.
bool HasEndedMeanwhile(const v1::ProcessInfo& process, const v1::StacksResponse& answer);

}  // namespace syncline::stacks

#endif  // SYNCLINE_COORDINATOR_STACKS_MEMBERS_H_

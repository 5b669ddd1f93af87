// SPDX-License-Identifier: Apache-2.0
#include "coordinator/stacks/members.h"

#include <algorithm>

#include "common/process_part.h"

namespace syncline::stacks {

bool HasOwnRecord(const v1::ProcessGroupState& group) {
  return group.collective_number() >= 0 && group.collective_number() <= group.sequence_number();
}

std::optional<int64_t> NumberOf(const v1::ProcessGroupState& state) {
  const int64_t counter = state.sequence_number();
  if (counter == 0) return 0;
  if (counter < 0) return std::nullopt;
  if (state.backend() == "nccl") return counter;
  if (state.backend() != "gloo" || !HasOwnRecord(state)) return std::nullopt;
  return state.collective_number();
}

JobKey JobOf(const v1::ProcessInfo& process) {
  return {process.uid(), process.job(), process.incarnation()};
}

bool IsRankItself(const v1::ProcessInfo& process) {
  return process.rank() >= 0 && IsRankPart(process.part());
}

std::optional<int64_t> AgeNs(const v1::ProcessInfo& process, const v1::StacksResponse& answer) {
  const int64_t started_ns = process.started_monotonic_ns();  // the process says it
  if (started_ns <= 0 || started_ns > answer.answered_monotonic_ns()) return std::nullopt;
  return answer.answered_monotonic_ns() - started_ns;
}

bool HasEndedMeanwhile(const v1::ProcessInfo& process, const v1::StacksResponse& answer) {
  return std::any_of(
      answer.ended().begin(), answer.ended().end(), [&](const v1::EndedProcess& one) {
        const v1::ProcessInfo& ended = one.process();
        return ended.uid() == process.uid() && ended.own_pid() == process.own_pid() &&
               ended.start_ticks() == process.start_ticks() &&
               ended.pid_namespace_inode() == process.pid_namespace_inode();
      });
}

}  // namespace syncline::stacks

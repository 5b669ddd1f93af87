// SPDX-License-Identifier: Apache-2.0
// What a process says of its threads and process groups (instrumentation/torch/syncline_stacks.py),
// as a message. The text is the process's: everything is checked and bounded, what is of another
// type counts as absent. Pure.
#ifndef SYNCLINE_AGENT_STACKS_STACK_ANSWER_H_
#define SYNCLINE_AGENT_STACKS_STACK_ANSWER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

struct StackAnswer {
  uint32_t number = 0;       // of the request that it answers
  int64_t begin_ns = 0;      // when it looked, by its CLOCK_MONOTONIC
  v1::ProcessStacks stacks;  // threads and groups
};

// InvalidArgument: it is no answer, or one of another version.
absl::StatusOr<StackAnswer> ParseStackAnswer(const std::string& text);

// Lays the first look beside the second one, which is `second`: what the groups had then, and
// whether the main thread stood elsewhere.
void AddFirstLook(const v1::ProcessStacks& first, v1::ProcessStacks* second);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_STACKS_STACK_ANSWER_H_

// SPDX-License-Identifier: Apache-2.0
// py-spy, where it is installed: it reads the Python stacks of a process from outside, without
// stopping it. It is never run on another user's process: it reads that process's memory and files,
// which are not to be believed.
#ifndef SYNCLINE_AGENT_STACKS_PY_SPY_H_
#define SYNCLINE_AGENT_STACKS_PY_SPY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

// Adds what `program` (looked up in PATH) says of the process, within `limit_ms`. NotFound: it is
// not installed; other errors: what it said.
absl::Status AddPySpyThreads(const std::string& program, int32_t pid, int limit_ms,
                             v1::ProcessStacks* stacks);

// The same of its JSON. InvalidArgument: that is none of py-spy's.
absl::Status ParsePySpy(const std::string& text, int32_t pid, v1::ProcessStacks* stacks);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_STACKS_PY_SPY_H_

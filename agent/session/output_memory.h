// SPDX-License-Identifier: Apache-2.0
// Memory for what another program says. It cannot grow: the program may be another user's, and its
// output is ours. Thread-safe: no state.
#ifndef SYNCLINE_AGENT_SESSION_OUTPUT_MEMORY_H_
#define SYNCLINE_AGENT_SESSION_OUTPUT_MEMORY_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "common/files.h"

namespace syncline::agent {

// A file in memory of so many zeros, to be a child's standard output; `name` is for /proc.
absl::StatusOr<Descriptor> MakeOutputMemory(const char* name, size_t bytes_max);

// What was written there until now.
std::string ReadOutputMemory(int fd, size_t bytes_max);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SESSION_OUTPUT_MEMORY_H_

// SPDX-License-Identifier: Apache-2.0
// Where the kernel says that a process's threads wait: what is left to know of a process that
// cannot answer. Pure but for reading /proc.
#ifndef SYNCLINE_AGENT_STACKS_KERNEL_THREADS_H_
#define SYNCLINE_AGENT_STACKS_KERNEL_THREADS_H_

#include <cstdint>
#include <filesystem>

#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

// Adds the process's threads, the main one first, and how many were too many. What the agent may
// not see stays empty; of a process that is gone there are none.
void AddKernelThreads(const std::filesystem::path& proc, int32_t pid, v1::ProcessStacks* stacks);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_STACKS_KERNEL_THREADS_H_

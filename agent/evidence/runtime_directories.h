// SPDX-License-Identifier: Apache-2.0
// Where the processes that the agent serves have their control blocks.
#ifndef SYNCLINE_AGENT_EVIDENCE_RUNTIME_DIRECTORIES_H_
#define SYNCLINE_AGENT_EVIDENCE_RUNTIME_DIRECTORIES_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

namespace syncline::agent {

// Of each user: the id, and the runtime directory of the user's processes.
using RuntimeDirectories = std::function<std::vector<std::pair<uint32_t, std::filesystem::path>>()>;

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_EVIDENCE_RUNTIME_DIRECTORIES_H_

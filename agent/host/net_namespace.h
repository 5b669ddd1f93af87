// SPDX-License-Identifier: Apache-2.0
// Work in the network namespace of another process: that of a container.
#ifndef SYNCLINE_AGENT_HOST_NET_NAMESPACE_H_
#define SYNCLINE_AGENT_HOST_NET_NAMESPACE_H_

#include <cstdint>
#include <filesystem>
#include <functional>

#include "absl/status/status.h"

namespace syncline::agent {

// Calls `visit` where the network is that of `pid`, namespace `inode`, and waits for it: here if
// that is the agent's own, else in a thread that has entered it. Unavailable: the process has ended
// or has another one now. PermissionDenied: the agent may not. `visit` was not called then.
absl::Status InNetNamespace(const std::filesystem::path& proc, int32_t pid, uint64_t inode,
                            const std::function<void()>& visit);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_HOST_NET_NAMESPACE_H_

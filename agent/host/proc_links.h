// SPDX-License-Identifier: Apache-2.0
// What the links in /proc/PID name by an inode: sockets, namespaces. `proc` is a parameter for
// tests.
#ifndef SYNCLINE_AGENT_HOST_PROC_LINKS_H_
#define SYNCLINE_AGENT_HOST_PROC_LINKS_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string_view>

namespace syncline::agent {

// Of "socket:[123]", "net:[123]" the number; 0: another kind, gone, or not allowed to see.
uint64_t InodeOfLink(const std::filesystem::path& link, std::string_view kind);

// Inodes of the sockets that a process has open; empty when it may not be looked at. `left`: of so
// many descriptors, of any kind, at most, which are taken off.
std::set<uint64_t> OpenSockets(const std::filesystem::path& proc, int32_t pid,
                               size_t* left = nullptr);

// The inode of a process's network namespace; 0: gone, or not allowed to see.
uint64_t NetNamespaceOf(const std::filesystem::path& proc, int32_t pid);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_HOST_PROC_LINKS_H_

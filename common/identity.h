// SPDX-License-Identifier: Apache-2.0
// Who did it: keys of nodes, processes and threads.
//
// A node is its name in the hosts file; inside one recording it is the index of that name. Pids
// repeat between nodes, between pid namespaces of one node, and in time, so a process is (node, pid
// namespace, pid, start ticks). Never key by pid, hostname, boot id or clock uuid.
#ifndef SYNCLINE_COMMON_IDENTITY_H_
#define SYNCLINE_COMMON_IDENTITY_H_

#include <compare>
#include <cstdint>

namespace syncline {

struct ProcessKey {
  uint32_t node = 0;           // index into the recording's nodes
  uint64_t pid_namespace = 0;  // inode of /proc/PID/ns/pid
  int32_t pid = 0;             // as the process sees itself, in its own namespace
  uint64_t start_ticks = 0;    // field 22 of /proc/PID/stat
  auto operator<=>(const ProcessKey&) const = default;
};

struct ThreadKey {
  ProcessKey process;
  int32_t tid = 0;
  auto operator<=>(const ThreadKey&) const = default;
};

}  // namespace syncline

#endif  // SYNCLINE_COMMON_IDENTITY_H_

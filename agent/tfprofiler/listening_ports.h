// SPDX-License-Identifier: Apache-2.0
// Which processes have TensorFlow in them and on which TCP ports they listen, from /proc alone.
// Every process is looked at in its own network namespace. `proc` is a parameter for tests.
#ifndef SYNCLINE_AGENT_TFPROFILER_LISTENING_PORTS_H_
#define SYNCLINE_AGENT_TFPROFILER_LISTENING_PORTS_H_

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/process_table.h"

namespace syncline::agent {

struct ListeningSocket {
  uint64_t inode = 0;   // of the socket: unique in its network namespace's kernel
  std::string address;  // "127.0.0.1", "::"; what it is bound to
  uint16_t port = 0;
};

struct TensorFlowProcess {
  ProcessEntry entry;
  uint64_t net_namespace = 0;  // inode; 0: not allowed to see
  std::vector<ListeningSocket> sockets;
  bool runs_collectives = false;  // it has TensorFlow's threads for them
  bool jax = false;               // it has JAX, and no TensorFlow
};

// The listening sockets in the text of /proc/PID/net/tcp or tcp6. Lines that are no sockets are
// left out.
std::vector<ListeningSocket> ParseTcpTable(std::string_view text);

// In the order of their pids. A socket that several processes have (forked data loaders) belongs
// to the oldest of them; a fork of such a process that listens on nothing of its own is left out.
// `only_uid`: nobody else's processes, unless it is root's 0.
std::vector<TensorFlowProcess> FindTensorFlow(const std::filesystem::path& proc, uint32_t only_uid);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_TFPROFILER_LISTENING_PORTS_H_

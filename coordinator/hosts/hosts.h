// SPDX-License-Identifier: Apache-2.0
// Which nodes there are: the hosts file, the -H list, and $SYNCLINE_HOSTS.
//
// A hosts file has one node a line, `name address[:port] [role=...]`, with # comments:
//
//   # the two halves of the job
//   master-0  10.77.0.1            role=master
//   worker-0  10.77.0.2:7700       role=worker
//   worker-1  [fe80::2]:7611       role=worker
//   here      unix:/run/syncline/agent.sock
//
// The -H list names nodes that are their own address: `a,b,node[01-16]`, optionally `name:port`. An
// IPv6 address needs a name, and therefore a hosts file.
//
// Pure: no I/O, no environment.
#ifndef SYNCLINE_COORDINATOR_HOSTS_HOSTS_H_
#define SYNCLINE_COORDINATOR_HOSTS_HOSTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace syncline::hosts {

inline constexpr uint16_t kDefaultPort = 7611;
// Guards against node[1-999999999]; the largest clusters have some tens of thousands of nodes.
inline constexpr size_t kNodesMax = 65'536;

struct Node {
  std::string name;  // the node's identity everywhere, and the DNS name in its certificate
  std::string host;  // DNS name or IP address without brackets; empty for a Unix socket
  uint16_t port = kDefaultPort;
  std::string socket_path;  // not empty: a Unix socket of this machine
  std::string role;

  bool local() const { return !socket_path.empty(); }
  // "host:port", "[v6]:port" or "unix:/path".
  std::string Address() const;
  bool operator==(const Node&) const = default;
};

// The text of a hosts file. InvalidArgument: "FILE:LINE: what is wrong". `file_name` is for
// messages only.
absl::StatusOr<std::vector<Node>> ParseHosts(std::string_view text, std::string_view file_name);

// A -H list.
absl::StatusOr<std::vector<Node>> ParseHostList(std::string_view list);

// The nodes of `all` that a -H list names, in the list's order. NotFound names the ones it does not
// know.
absl::StatusOr<std::vector<Node>> SelectHosts(const std::vector<Node>& all, std::string_view list);

// An address as written in recording.json: the inverse of Node::Address().
absl::StatusOr<Node> ParseAddress(std::string_view name, std::string_view address);

}  // namespace syncline::hosts

#endif  // SYNCLINE_COORDINATOR_HOSTS_HOSTS_H_

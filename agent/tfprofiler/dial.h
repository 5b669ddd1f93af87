// SPDX-License-Identifier: Apache-2.0
// A TCP connection to a port in another process's network namespace.
#ifndef SYNCLINE_AGENT_TFPROFILER_DIAL_H_
#define SYNCLINE_AGENT_TFPROFILER_DIAL_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/status/statusor.h"

namespace syncline::agent {

struct Destination {
  int32_t pid = 0;             // whose network namespace
  uint64_t net_namespace = 0;  // its inode, against a pid that was given to somebody else
  std::string address;         // that the port is bound to; "0.0.0.0" and "::" stand for loopback
  uint16_t port = 0;
};

// A connected, non-blocking descriptor; the caller owns it. Unavailable: nobody answers;
// PermissionDenied: the namespace may not be entered. Thread-safe: only a thread of its own ever
// enters the namespace.
absl::StatusOr<int> Dial(const Destination& to, int timeout_ms,
                         const std::filesystem::path& proc = "/proc");

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_TFPROFILER_DIAL_H_

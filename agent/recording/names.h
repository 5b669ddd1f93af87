// SPDX-License-Identifier: Apache-2.0
// What a peer may name: recording ids, and files of a recording. Everything else is refused before
// it comes near the file system. Pure.
#ifndef SYNCLINE_AGENT_RECORDING_NAMES_H_
#define SYNCLINE_AGENT_RECORDING_NAMES_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace syncline::agent {

inline constexpr const char* kProcessesDirectory = "processes";  // in a recording's

// [a-z0-9-]{1,64}, not beginning with "-". InvalidArgument.
absl::Status CheckRecordingId(std::string_view id);

// A relative path of a recording's file that may be fetched: below trace/, processes/, xspace/,
// kineto/, evidence/ or vtune/, or one of clock.tuples, node.json, agent.log; no "..", ".", empty
// part or NUL.
bool IsFetchablePath(std::string_view path);

// An LTTng-UST event pattern: provider:name with LTTng's own characters and "*". InvalidArgument.
absl::Status CheckEventPattern(std::string_view pattern);

// Text of a peer, made fit for one line of a log: control characters become "?", cut at 200 bytes.
std::string ForLog(std::string_view text);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_NAMES_H_

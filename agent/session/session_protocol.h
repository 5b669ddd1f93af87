// SPDX-License-Identifier: Apache-2.0
// What the agent and its session child say to each other: one JSON object per packet of a
// SOCK_SEQPACKET socket pair, one reply per call, in order. Both ends are the same program, so
// there is no versioning. Pure; thread-safe.
#ifndef SYNCLINE_AGENT_SESSION_SESSION_PROTOCOL_H_
#define SYNCLINE_AGENT_SESSION_SESSION_PROTOCOL_H_

#include <string>
#include <string_view>
#include <vector>

#include "agent/session/lttng_control.h"

namespace syncline::agent {

inline constexpr size_t kSessionPacketBytesMax = 64 * 1024;

// A method of LttngControl by name, with the arguments that it takes; the others stay empty.
struct SessionCall {
  std::string method;
  SessionSpec spec;
  std::string session;
  int wait_ms = 0;
};

struct SessionReply {
  absl::Status status;
  bool alive = false;
  std::vector<ChannelCounters> counters;
  std::vector<std::string> sessions;
  std::vector<int32_t> programs;
};

std::string EncodeCall(const SessionCall& call);
absl::StatusOr<SessionCall> DecodeCall(std::string_view packet);
std::string EncodeReply(const SessionReply& reply);
absl::StatusOr<SessionReply> DecodeReply(std::string_view packet);

// Does what `call` says.
SessionReply Perform(LttngControl& control, const SessionCall& call);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SESSION_SESSION_PROTOCOL_H_

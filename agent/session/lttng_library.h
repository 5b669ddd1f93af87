// SPDX-License-Identifier: Apache-2.0
// LttngControl on liblttng-ctl. The library keeps its socket in unguarded statics and blocks: one
// thread of one process that can be killed calls it (session_child.h), nobody else.
#ifndef SYNCLINE_AGENT_SESSION_LTTNG_LIBRARY_H_
#define SYNCLINE_AGENT_SESSION_LTTNG_LIBRARY_H_

#include <string>
#include <vector>

#include "agent/session/lttng_control.h"

namespace syncline::agent {

class LttngLibrary : public LttngControl {
 public:
  absl::StatusOr<bool> DaemonAlive() override;
  absl::Status Create(const SessionSpec& spec) override;
  absl::Status Start(const std::string& session) override;
  absl::Status Stop(const std::string& session) override;
  absl::StatusOr<std::vector<ChannelCounters>> Counters(const std::string& session) override;
  absl::Status Destroy(const std::string& session, int wait_ms) override;
  absl::StatusOr<std::vector<std::string>> Sessions() override;
  absl::StatusOr<std::vector<int32_t>> Programs() override;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SESSION_LTTNG_LIBRARY_H_

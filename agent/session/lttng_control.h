// SPDX-License-Identifier: Apache-2.0
// The seam to LTTng: everything that the agent asks of the tracer.
//
// The real tracer may block for seconds (a stopped program holds `start` for 5.3 s) or for ever (a
// session daemon that hangs), so each call has a time limit: DeadlineExceeded when it passed. The
// call may then still take effect in the session daemon; callers go on as if it had not, and clean
// up by name.
//
// Implementations: LttngLibrary (liblttng-ctl, blocking, no limits of its own), SessionProcess
// (runs an LttngLibrary in a child process that it kills and replaces when a limit passes),
// FakeLttngControl.
#ifndef SYNCLINE_AGENT_SESSION_LTTNG_CONTROL_H_
#define SYNCLINE_AGENT_SESSION_LTTNG_CONTROL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace syncline::agent {

// One LTTng session with one user-space channel, as a recording needs it.
struct SessionSpec {
  std::string name;
  std::string trace_directory;  // absolute; LTTng makes it
  std::string channel = "syncline";
  bool buffers_per_process = false;  // false: shared by all processes of a user
  uint64_t subbuffer_bytes = 0;      // a power of two
  uint32_t subbuffer_count = 0;      // a power of two, at least 2
  std::vector<std::string> events;   // tracepoint patterns, "provider:*"
  std::vector<uint32_t> only_users;  // LTTng says nothing to programs of others; empty: all
};

struct ChannelCounters {
  std::string name;
  uint64_t discarded_events = 0;  // may be garbage: bit 63 tells (seen after a writer was killed)
  uint64_t lost_packets = 0;
};

// Aborted, from any call: the session daemon answers, and its consumer daemon is dead. It does not
// start another one: only a new session daemon records again.
class LttngControl {
 public:
  virtual ~LttngControl() = default;

  // Whether a session daemon answers.
  virtual absl::StatusOr<bool> DaemonAlive() = 0;
  // Session, metadata channel, channel, events; nothing is recorded yet.
  virtual absl::Status Create(const SessionSpec& spec) = 0;
  virtual absl::Status Start(const std::string& session) = 0;
  // Returns when the data is in the files, as far as the tracer knows. OK when it was not started.
  virtual absl::Status Stop(const std::string& session) = 0;
  // Totals since the session began; after Stop and before Destroy.
  virtual absl::StatusOr<std::vector<ChannelCounters>> Counters(const std::string& session) = 0;
  // Waits up to `wait_ms` for the last bytes. NotFound: no such session. DeadlineExceeded: not
  // finished in time; the files are as they are.
  virtual absl::Status Destroy(const std::string& session, int wait_ms) = 0;
  virtual absl::StatusOr<std::vector<std::string>> Sessions() = 0;
  // The programs with tracepoints that are registered: each one's pid as it has it for itself.
  virtual absl::StatusOr<std::vector<int32_t>> Programs() = 0;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SESSION_LTTNG_CONTROL_H_

// SPDX-License-Identifier: Apache-2.0
// The guard of a recording: a process of its own that ends the recording where its agent cannot,
// because the agent is dead or has stopped answering. While the agent lives and sends its orders,
// the guard does nothing. What it did stands in the recording's directory, for the agent that
// comes next.
//
// A guard that ends together with its agent (a service manager that kills the whole group) guards
// nothing.
#ifndef SYNCLINE_AGENT_RECORDING_GUARD_H_
#define SYNCLINE_AGENT_RECORDING_GUARD_H_

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/host/room.h"
#include "agent/probe/clock.h"
#include "agent/recording/journal.h"

namespace syncline::agent {

// The agent's program runs as a guard with this flag, the recording's id behind it.
inline constexpr const char* kGuardFlag = "--guard";

// An agent that has sent nothing for this long, and has let an end pass for this long, is taken for
// dead.
inline constexpr int64_t kSilentAgentNs = 30 * int64_t{1'000'000'000};

struct GuardSight {
  int64_t now_raw_ns = 0;
  int64_t now_monotonic_ns = 0;
  bool agent_gone = false;   // its end of the socket is closed
  bool told_to_end = false;  // by a signal
  int64_t silent_ns = 0;     // since the agent's last orders
  uint64_t bytes = 0;        // of the recording
  uint64_t disk_free_bytes = 0;
};

// Why the guard must end the recording now, as the report says it; nullopt: not yet.
std::optional<std::string> WhyGuardEnds(const journal::GuardOrders& orders,
                                        const GuardSight& sight);

struct GuardParts {
  Clock* clock = nullptr;
  Room* room = nullptr;
  // Closes the gates, then ends the session, in bounded time; what a stop would have answered.
  std::function<v1::StopResponse(const journal::GuardOrders&)> end;
};

// The guard process: reads orders from `socket` until it is told that all is done, or ends the
// recording. Its exit code.
int RunGuard(int socket, const GuardParts& parts);

// The agent's side. The seam for tests. Thread-safe.
class Guard {
 public:
  virtual ~Guard() = default;
  // Starts a guard; its process. A guard before it is ended.
  virtual absl::StatusOr<pid_t> Begin(const journal::GuardOrders& orders) = 0;
  // Never waits; a guard that does not read is left alone.
  virtual void Tell(const journal::GuardOrders& orders) = 0;
  // The recording has ended; waits until the guard has, and kills one that does not end.
  virtual void End() = 0;
};

class GuardProcess : public Guard {
 public:
  // `command` begins the guard's arguments: the agent's program and the flag for this mode.
  explicit GuardProcess(std::vector<std::string> command) : command_(std::move(command)) {}
  ~GuardProcess() override;
  absl::StatusOr<pid_t> Begin(const journal::GuardOrders& orders) override;
  void Tell(const journal::GuardOrders& orders) override;
  void End() override;

 private:
  const std::vector<std::string> command_;
  std::mutex mutex_;
  pid_t pid_ ABSL_GUARDED_BY(mutex_) = -1;
  int socket_ ABSL_GUARDED_BY(mutex_) = -1;
};

// Ends the guard that a killed agent left, before its recording is adopted. Only a process whose
// command line names this recording's guard is ended.
void EndLeftoverGuard(const std::filesystem::path& proc, pid_t pid,
                      const std::string& recording_id);

// What a guard did in a recording's directory; nullopt: nothing.
std::optional<v1::StopResponse> GuardResult(const std::filesystem::path& directory);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_GUARD_H_

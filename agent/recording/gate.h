// SPDX-License-Identifier: Apache-2.0
// The seam to the training processes: who is there, and the gate that switches their recording on
// and off (instrumentation/abi/control_block.h).
#ifndef SYNCLINE_AGENT_RECORDING_GATE_H_
#define SYNCLINE_AGENT_RECORDING_GATE_H_

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/recording/left_out.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

// The bracket around writing all control blocks, and what could not be written.
struct GateMove {
  int64_t begin_raw_ns = 0;
  int64_t end_raw_ns = 0;
  int64_t begin_monotonic_ns = 0;
  int64_t end_monotonic_ns = 0;
  uint32_t processes = 0;
  bool complete = true;  // false: some process could not be taken in; a complaint says why
  std::vector<v1::Complaint> complaints;
};

struct GateCounts {
  uint32_t processes = 0;
  uint64_t events = 0;  // of this recording, by the processes' own counts
  uint64_t lost = 0;
};

// What an agent that died, or hangs, has left open.
struct Leftover {
  uint32_t generation = 0;
  // Users whose processes another agent had: that one numbers its recordings by itself.
  std::vector<uint32_t> others;
  bool agent_lives = false;  // it holds the locks of all the rest
};

class Gate {
 public:
  virtual ~Gate() = default;

  // The processes that live now, and what is wrong with some of them (stopped, out of reach).
  virtual std::vector<v1::ProcessInfo> Processes(std::vector<v1::Complaint>* complaints) = 0;
  // The users whose processes are traced; the agent's own first.
  virtual std::vector<uint32_t> Users() = 0;

  // Takes the processes of these users for `holder`. FailedPrecondition: those of the agent's own
  // user cannot be had, with who has them or what is wrong. Of another user that is said by
  // Processes(), which leaves that user out until Unlock.
  virtual absl::Status Lock(const std::string& holder) = 0;
  virtual void Unlock() = 0;
  // Users who are left out since Lock.
  virtual std::vector<uint32_t> RefusedUsers() = 0;
  // From here until Unlock nobody is served but the users who are now, without `left_out`: they are
  // returned. An agent of their own may record those who are left out.
  virtual std::vector<uint32_t> Restrict(const std::set<uint32_t>& left_out) = 0;

  // Nothing of an earlier recording is told from here on: what Counts and the like say is about the
  // recording that is being prepared.
  virtual void Forget() = 0;

  // Where the blocks of processes that end are kept from now on, until they are copied: before Arm
  // or CloseLeftover. The same directory is given to CopyBlocks.
  virtual void KeepEndedIn(const std::filesystem::path& directory) = 0;
  // What is left out of the recordings from the next Arm on.
  virtual void LeaveOut(const LeftOut& left_out) = 0;
  // Opens the control blocks, so that Open() only has to write; the generation to open with: one
  // that no process has seen.
  virtual uint32_t Arm() = 0;
  // Writes the generation everywhere, now; processes that appear from now on get it as well.
  virtual GateMove Open(uint32_t generation) = 0;
  // Clears it, and gives the processes a short bounded time to notice.
  virtual GateMove Close() = 0;
  // After a restart, or in a guard: clears the generation wherever it still stands, and takes those
  // processes in. Nothing of users whom another agent records meanwhile is touched; the others are
  // locked until Unlock.
  virtual void CloseLeftover(const Leftover& leftover) = 0;

  // Of the recording since Open; also after Close, until the next Arm.
  virtual GateCounts Counts() = 0;
  virtual std::vector<v1::ProcessCoverage> Coverage() = 0;
  virtual std::vector<v1::ProcessInfo> Members() = 0;
  virtual absl::Status CopyBlocks(const std::filesystem::path& directory) = 0;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_GATE_H_

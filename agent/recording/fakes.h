// SPDX-License-Identifier: Apache-2.0
// Stand-ins for the manager's parts, for its tests.
#ifndef SYNCLINE_AGENT_RECORDING_FAKES_H_
#define SYNCLINE_AGENT_RECORDING_FAKES_H_

#include <atomic>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "agent/evidence/evidence_source.h"
#include "agent/host/room.h"
#include "agent/probe/clock_sampler.h"
#include "agent/probe/fake_clock.h"
#include "agent/recording/canary.h"
#include "agent/recording/gate.h"
#include "agent/recording/guard.h"
#include "agent/session/fake_lttng_control.h"
#include "agent/session/spawn.h"
#include "common/files.h"
#include "ctf/test_trace.h"

namespace syncline::agent {

class FakeGate : public Gate {
 public:
  explicit FakeGate(Clock* clock) : clock_(clock) {}
  std::vector<v1::ProcessInfo> Processes(std::vector<v1::Complaint>*) override { return processes; }
  std::vector<uint32_t> Users() override { return {1000}; }
  absl::Status Lock(const std::string&) override {
    if (!lock_status.ok()) return lock_status;
    locked = true;
    return absl::OkStatus();
  }
  void Unlock() override { locked = false; }
  void Forget() override { tells = 0; }
  void KeepEndedIn(const std::filesystem::path&) override {}
  void LeaveOut(const LeftOut& what) override { detail = what; }
  uint32_t Arm() override { return 7; }
  GateMove Open(uint32_t new_generation) override {
    if (on_open) on_open();
    generation = new_generation;
    tells = new_generation;
    return Move();
  }
  GateMove Close() override {
    generation = 0;
    return Move();
  }
  std::vector<uint32_t> RefusedUsers() override { return refused; }
  std::vector<uint32_t> Restrict(const std::set<uint32_t>& users) override {
    left_out = users;
    refused.insert(refused.end(), users.begin(), users.end());
    return {1000};
  }
  void CloseLeftover(const Leftover& leftover) override {
    closed_leftovers.push_back(leftover.generation);
    last_leftover = leftover;
    tells = leftover.generation;
  }
  GateCounts Counts() override { return {.processes = 1, .events = 42, .lost = 0}; }
  std::vector<v1::ProcessCoverage> Coverage() override {
    if (tells == 0) return {};
    v1::ProcessCoverage one;
    one.set_events_count(42);
    return {one};
  }
  std::vector<v1::ProcessInfo> Members() override { return processes; }
  absl::Status CopyBlocks(const std::filesystem::path& directory) override {
    return MakeDirectories(directory, 0700);
  }

  std::vector<v1::ProcessInfo> processes;
  absl::Status lock_status;
  bool locked = false;
  LeftOut detail;
  uint32_t generation = 0;
  uint32_t tells = 0;  // the generation of the recording that its counts are of; 0: of none
  std::function<void()> on_open;
  std::vector<uint32_t> refused;
  std::set<uint32_t> left_out;
  std::vector<uint32_t> closed_leftovers;
  Leftover last_leftover;

 private:
  GateMove Move() {
    GateMove move;
    move.begin_raw_ns = clock_->RawNs();
    move.end_raw_ns = clock_->RawNs();
    move.processes = 1;
    return move;
  }
  Clock* const clock_;
};

// Its event reaches the trace of the session in `lttng`, unless told otherwise.
class FakeCanary : public Canary {
 public:
  explicit FakeCanary(FakeLttngControl* lttng) : lttng_(lttng) {}
  absl::Status Sing(uint32_t uid, uint64_t nonce) override {
    sung_for.push_back(uid);
    if (failing.count(uid) != 0) return absl::FailedPreconditionError("Killed by its user");
    if (!reaches_the_trace) return absl::OkStatus();
    const std::filesystem::path trace = lttng_->spec.trace_directory;
    if (absl::Status made = MakeDirectories(trace, 0700); !made.ok()) return made;
    std::ofstream(trace / "metadata") << ctf::testing::kMetadata;
    std::ofstream stream(trace / "syncline_0", std::ios::binary | std::ios::app);
    stream.write(reinterpret_cast<const char*>(&nonce), sizeof nonce);
    return absl::OkStatus();
  }
  bool reaches_the_trace = true;
  std::set<uint32_t> failing;
  std::vector<uint32_t> sung_for;

 private:
  FakeLttngControl* const lttng_;
};

class FakeGuard : public Guard {
 public:
  absl::StatusOr<pid_t> Begin(const journal::GuardOrders& begun) override {
    if (!status.ok()) return status;
    orders = begun;
    guards = true;
    return 0;  // no process: nothing to end in Recover
  }
  void Tell(const journal::GuardOrders& newer) override { orders = newer; }
  void End() override { guards = false; }
  journal::GuardOrders orders;
  absl::Status status;
  bool guards = false;
};

class FakeRoom : public Room {
 public:
  uint32_t PossibleCpus() override { return 4; }
  uint64_t ShmFreeBytes() override { return shm_free_bytes; }
  uint64_t ShmTotalBytes() override { return shm_free_bytes; }
  std::optional<uint64_t> CgroupHeadroomBytes() override { return std::nullopt; }
  uint64_t DiskFreeBytes(const std::filesystem::path&) override { return disk_free_bytes; }
  uint64_t shm_free_bytes = uint64_t{1} << 30;
  uint64_t disk_free_bytes = uint64_t{1} << 40;
};

class FakeProcessRunner : public ProcessRunner {
 public:
  absl::StatusOr<RunResult> Run(const SpawnOptions& options, int) override {
    runs.push_back(options.arguments);
    if (on_run) on_run();
    return result;
  }
  std::vector<std::vector<std::string>> runs;
  std::function<void()> on_run;
  absl::StatusOr<RunResult> result = RunResult{};
};

class FakeClockRecorder : public ClockRecorder {
 public:
  absl::Status StartFile(const std::filesystem::path& path) override {
    recording = true;
    return WriteFileAtomically(path, "tuples");
  }
  void StopFile() override { recording = false; }
  bool recording = false;
};

class FakeProfiles : public EvidenceSource {
 public:
  bool IsWanted(const v1::PrepareRequest& request) const override {
    return !of_tensorflow || !request.skip_tf_profiler();
  }
  void Find(const std::vector<uint32_t>&) override { calls.push_back("find"); }
  void Begin(const EvidenceWindow& begun) override {
    calls.push_back("begin");
    window = begun;
  }
  void Adopt(const EvidenceWindow& adopted) override {
    calls.push_back("adopt");
    window = adopted;
  }
  void End() override { calls.push_back("end"); }
  std::vector<v1::Complaint> Collect() override {
    calls.push_back("collect");
    return complaints;
  }
  bool of_tensorflow = false;
  std::vector<std::string> calls;
  EvidenceWindow window;
  std::vector<v1::Complaint> complaints;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_FAKES_H_

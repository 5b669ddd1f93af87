// SPDX-License-Identifier: Apache-2.0
// What the agent does, without gRPC: the life of recordings on one node.
//
//   -Prepare-> PREPARING -> READY -Start-> RECORDING -Stop-> STOPPING -> STOPPED -Release->
//                  \-> FAILED ----------------------------------------------------Release->
//
// One recording is active (PREPARING to STOPPING) at a time, because they would share the
// processes' gates; any number of finished ones wait on the disk to be fetched. Every call is
// idempotent by recording id. What LTTng is about to be told is in the recording's journal first,
// so that Recover() finds sessions, gates and files again after a kill.
//
// Thread-safe. `operation_` is held while a recording changes its state (for seconds, while LTTng
// works); `mutex_` guards the table and is held briefly. An entry is written with both held and
// read with either. Waits for an instant hold neither, so that a Stop can overtake a Start or
// another Stop.
#ifndef SYNCLINE_AGENT_RECORDING_RECORDING_MANAGER_H_
#define SYNCLINE_AGENT_RECORDING_RECORDING_MANAGER_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/evidence/evidence_source.h"
#include "agent/host/log.h"
#include "agent/host/room.h"
#include "agent/probe/clock_sampler.h"
#include "agent/recording/canary.h"
#include "agent/recording/gate.h"
#include "agent/recording/guard.h"
#include "agent/recording/journal.h"
#include "agent/recording/registration.h"
#include "agent/session/lttng_control.h"
#include "agent/session/session_daemon.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

// None is owned; all live longer than the manager.
struct ManagerParts {
  LttngControl* lttng = nullptr;
  SessionDaemon* daemon = nullptr;
  Gate* gate = nullptr;
  Canary* canary = nullptr;
  Room* room = nullptr;
  Clock* clock = nullptr;
  ClockRecorder* clock_recorder = nullptr;
  Guard* guard = nullptr;  // null: none
  std::vector<EvidenceSource*> sources;
  Log* log = nullptr;
  std::function<std::string()> node_json;  // the inventory, to be kept in the recording
};

struct ManagerOptions {
  std::filesystem::path data_directory;
  int64_t retention_ns = 7 * 24 * 3600 * int64_t{1'000'000'000};  // of finished recordings
  uint64_t seed = 0;                                              // of the canary's nonces
  std::filesystem::path proc = "/proc";
};

class RecordingManager {
 public:
  RecordingManager(ManagerParts parts, ManagerOptions options);

  // Before anything else: finishes what a killed agent left, keeps its data, forgets its sessions.
  absl::Status Recover();

  absl::StatusOr<v1::PrepareResponse> Prepare(const v1::PrepareRequest& request);
  absl::StatusOr<v1::StartResponse> Start(const v1::StartRequest& request);
  absl::StatusOr<v1::StopResponse> Stop(const v1::StopRequest& request);
  absl::StatusOr<v1::StatusResponse> Status(const v1::StatusRequest& request);
  absl::StatusOr<v1::ReleaseResponse> Release(const v1::ReleaseRequest& request);

  // Where a finished recording's files are; FailedPrecondition while it is active.
  absl::StatusOr<std::filesystem::path> DirectoryForFetch(const std::string& recording_id);
  // The coordinator has all of it, verified as far as the agent can tell.
  void MarkFetched(const std::string& recording_id);

  // To be called a few times a second: leases, size limit, disk, retention.
  void Tick();
  // Whether a recording is being prepared, runs, or is being stopped.
  bool IsBusy() { return Active() != nullptr; }
  // Ends the active recording and keeps its data. Calls that wait return.
  void Shutdown();

  std::vector<v1::RecordingInfo> Recordings();

  // In a guard's process: closes the gates and ends the session of another, dead agent. Needs the
  // gate, the clock, the log and LTTng only.
  v1::StopResponse EndForAgent(const journal::GuardOrders& orders);

 private:
  struct Recording {
    journal::Entry entry;  // all that is in the journal
    std::filesystem::path directory;
    int64_t lease_end_monotonic_ns = 0;  // 0: none
    uint64_t bytes = 0;                  // as last looked at
    int64_t end_raw_ns = 0;              // T + D; 0: until it is stopped
    bool flush_hangs = false;            // LTTng was not done with stopping in its time
    bool abandon_wait = false;           // a Stop or Shutdown overtakes the waiting Start
    bool stop_asked = false;             // by a client, who may want its files
    // How old it is, for retention: since this agent changed or met it, by a clock that nobody
    // sets; and by the wall clock, what it had behind it when this agent met it.
    int64_t met_raw_ns = 0;
    int64_t age_when_met_ns = 0;
  };
  using RecordingPtr = std::shared_ptr<Recording>;

  // Prepare's steps (recording_steps.cc), under operation_.
  absl::Status CheckRoom(const v1::PrepareRequest& request);
  absl::StatusOr<v1::PrepareResponse> DoPrepare(Recording& recording);
  // `stopped`: see AwaitAnswer().
  absl::Status BeginSession(const SessionSpec& spec, std::vector<ProcessEntry> stopped);
  absl::StatusOr<SessionSpec> MakeSpec(const Recording& recording, const std::set<uint32_t>& users,
                                       v1::PrepareResponse* response);
  // The users of whom nothing can be recorded, or, with their `stopped` programs, only at
  // everybody's cost.
  absl::StatusOr<std::set<uint32_t>> LeaveOut(uint32_t own_uid,
                                              const std::vector<ProcessEntry>& stopped,
                                              v1::PrepareResponse* response);
  void FindUnregistered(bool some_are_left_out, v1::PrepareResponse* response);
  void AbandonSession(Recording& recording);
  // What must stay free on the disk.
  static uint64_t KeepFreeBytes(const v1::PrepareRequest& request);
  // The guard (recording_guard.cc).
  static journal::GuardOrders OrdersOf(const Recording& recording);
  void BeginGuard(Recording& recording, v1::PrepareResponse* response);
  void TellGuard(const Recording& recording);
  void EndGuard();
  // Those that the recording is to have.
  std::vector<EvidenceSource*> SourcesOf(const Recording& recording) const;
  void BeginSources(const Recording& recording, const v1::StartRequest& request);
  // Stop's steps, under operation_.
  v1::StopResponse DoStop(Recording& recording, const std::string& reason);
  // Stops the session and asks for its counters; ends it. What went wrong is in `response`.
  void StopSession(Recording& recording, v1::StopResponse* response);
  // Waits no longer for what stopping has waited for already.
  void DestroySession(Recording& recording, v1::StopResponse* response);
  static constexpr const char* kStepFlush = "flush";  // steps of stopping, as the journal has them
  static constexpr const char* kStepDestroy = "destroy";
  static constexpr const char* kStepKeep = "keep";
  static constexpr int kLeftoverDestroyWaitMs = 2'000;
  void NotFinished(const absl::Status& status, v1::StopResponse* response);
  // What is done of stopping, for an agent that has to go on from there.
  void JournalStop(Recording& recording, const char* next, const v1::StopResponse& so_far);
  void KeepFiles(Recording& recording, v1::StopResponse* response);
  void ForgetLeftoverSessions();
  bool IsOld(const Recording& recording);
  void Adopt(const RecordingPtr& recording);
  v1::StopResponse StopAdopted(Recording& recording);

  absl::Status CheckPrepare(const v1::PrepareRequest& request);
  absl::StatusOr<RecordingPtr> Find(const std::string& recording_id);
  RecordingPtr Active();
  absl::StatusOr<v1::StopResponse> StopNow(const RecordingPtr& recording,
                                           const std::string& reason);
  // False: the wait was cut short.
  bool WaitUntilRaw(int64_t at_raw_ns, const std::function<bool()>& cut_short);
  // Journal and table; `change` holds only what is new.
  absl::Status Record(Recording& recording, journal::Entry change);
  v1::RecordingInfo Describe(const Recording& recording);
  std::string SessionName(const std::string& recording_id) const;
  std::filesystem::path DirectoryOf(const std::string& recording_id) const;
  void CheckLimits(const RecordingPtr& recording);
  void ForgetOld();

  const ManagerParts parts_;
  const ManagerOptions options_;
  const std::string session_prefix_;  // tells this agent's sessions from another's on the same node
  std::mutex operation_;
  std::mt19937_64 nonces_ ABSL_GUARDED_BY(operation_);
  // Of the last Prepare: what the session daemon did not know.
  std::vector<v1::ProcessInfo> unregistered_ ABSL_GUARDED_BY(operation_);
  RegistrationPatience patience_ ABSL_GUARDED_BY(operation_);
  bool renew_daemon_ ABSL_GUARDED_BY(operation_) = false;  // it does not reach a program
  std::mutex mutex_;
  std::map<std::string, RecordingPtr> recordings_ ABSL_GUARDED_BY(mutex_);
  bool shutting_down_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_RECORDING_MANAGER_H_

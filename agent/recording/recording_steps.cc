// SPDX-License-Identifier: Apache-2.0
// The steps of RecordingManager that talk to LTTng, the gate and the disk: preparing and stopping.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/recording/daemon_watch.h"
#include "agent/recording/names.h"
#include "agent/recording/recording_manager.h"
#include "agent/recording/registration.h"
#include "agent/recording/trace_files.h"
#include "agent/recording/trace_result.h"
#include "agent/session/buffer_sizing.h"
#include "common/files.h"
#include "common/status.h"
#include "instrumentation/abi/events.h"

namespace syncline::agent {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kHourNs = 3600 * int64_t{1'000'000'000};
constexpr uint64_t kReserveBytes = 4 << 20;  // control blocks, node.json, the journal's last lines
constexpr const char* kReserveFile = "reserve";
constexpr const char* kLeaseExpired = "lease expired: no contact with the coordinator";
constexpr int kDestroyWaitMs = 5'000;    // usual: 0.5 s; a killed writer can make it endless
constexpr int kHungDestroyWaitMs = 500;  // as long as one takes that is not hindered
constexpr uint64_t kDamagedCounterBit = uint64_t{1} << 63;

v1::Complaint Warning(std::string what, std::string fix) {
  v1::Complaint complaint;
  complaint.set_severity(v1::Complaint::WARNING);
  complaint.set_what(std::move(what));
  complaint.set_fix(std::move(fix));
  return complaint;
}

// The agent's own user and those with a live process: they get buffers and a canary.
std::set<uint32_t> UsersToTrace(const v1::PrepareResponse& response, uint32_t own_uid) {
  std::set<uint32_t> users = {own_uid};
  for (const v1::ProcessInfo& process : response.processes()) users.insert(process.uid());
  return users;
}

// Room that is still there when the disk has become full: given back when the tracer has ended, for
// the last files. Its size is 0 (the room lies behind its end), so it does not count as data; where
// the file system cannot do that, there is no reserve.
void TakeReserve(const std::filesystem::path& directory) {
  const int fd =
      ::open((directory / kReserveFile).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return;
  [[maybe_unused]] const int taken = ::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, kReserveBytes);
  ::close(fd);
}

void GiveReserveBack(const std::filesystem::path& directory) {
  std::error_code ignored;
  std::filesystem::remove(directory / kReserveFile, ignored);
}

}  // namespace

absl::Status RecordingManager::CheckRoom(const v1::PrepareRequest& request) {
  const uint64_t free = parts_.room->DiskFreeBytes(options_.data_directory);
  if (free > KeepFreeBytes(request)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "The disk of \"%s\" has %d MiB free, and %d MiB must stay free (--keep-free); free disk "
      "space, release old recordings, or lower --keep-free",
      options_.data_directory.string(), free >> 20, KeepFreeBytes(request) >> 20));
}

absl::StatusOr<SessionSpec> RecordingManager::MakeSpec(const Recording& recording,
                                                       const std::set<uint32_t>& users,
                                                       v1::PrepareResponse* response) {
  const v1::PrepareRequest& request = recording.entry.request();
  const bool per_process = request.buffer_scheme() == v1::PER_PROCESS;
  // Of processes that are not visible there may be any number, and LTTng refuses them.
  const auto visible =
      std::count_if(response->processes().begin(), response->processes().end(),
                    [](const v1::ProcessInfo& process) { return process.pid() != 0; });
  BufferNeeds needs;
  needs.possible_cpus = parts_.room->PossibleCpus();
  needs.buffer_sets =
      static_cast<uint32_t>(users.size() + (per_process ? static_cast<size_t>(visible) : 0));
  needs.requested_subbuffer_bytes = request.subbuffer_bytes();
  needs.requested_subbuffer_count = request.subbuffer_count();
  SYNCLINE_ASSIGN_OR_RETURN(
      const BufferPlan plan,
      PlanBuffers(needs, {.shm_free_bytes = parts_.room->ShmFreeBytes(),
                          .cgroup_headroom_bytes = parts_.room->CgroupHeadroomBytes()}));
  if (plan.shrunk) {
    *response->add_complaints() = Warning(
        absl::StrCat("Little shared memory: the trace buffers are ", plan.subbuffer_count, " x ",
                     plan.subbuffer_bytes >> 10, " KiB per CPU; busy programs may lose events"),
        "enlarge /dev/shm (docker run --shm-size=256m)");
  }
  response->set_subbuffer_bytes(plan.subbuffer_bytes);
  response->set_subbuffer_count(plan.subbuffer_count);
  response->set_buffers_bytes(plan.total_bytes);
  SessionSpec spec;
  spec.name = recording.entry.session_name();
  spec.trace_directory = (recording.directory / "trace").string();
  spec.buffers_per_process = per_process;
  spec.subbuffer_bytes = plan.subbuffer_bytes;
  spec.subbuffer_count = plan.subbuffer_count;
  spec.events = abi::EventPatterns();
  spec.events.insert(spec.events.end(), request.extra_events().begin(),
                     request.extra_events().end());
  return spec;
}

absl::Status RecordingManager::BeginSession(const SessionSpec& spec,
                                            std::vector<ProcessEntry> stopped) {
  if (std::exchange(renew_daemon_, false)) {
    parts_.log->Failure("renew the session daemon", parts_.daemon->Renew());
  }
  SYNCLINE_RETURN_IF_ERROR(
      AwaitAnswer(*parts_.lttng, *parts_.clock, options_.proc, std::move(stopped)));
  absl::Status begun = parts_.lttng->Create(spec);
  if (begun.ok()) begun = parts_.lttng->Start(spec.name);
  if (begun.ok()) return begun;
  // It may also have ended when it met what is broken, with whatever error that gave.
  const auto alive = parts_.lttng->DaemonAlive();
  const bool gone = absl::IsUnavailable(begun) || (alive.ok() && !*alive);
  if (!absl::IsAborted(begun) && !gone) return begun;
  parts_.log->Warning("session daemon", {{"renewed, because", std::string(begun.message())}});
  parts_.lttng->Destroy(spec.name, 0).IgnoreError();
  if (const absl::Status renewed = parts_.daemon->Renew(); !renewed.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(begun.message(), ": ", renewed.message()));
  }
  SYNCLINE_RETURN_IF_ERROR(parts_.lttng->Create(spec));
  return parts_.lttng->Start(spec.name);
}

absl::StatusOr<v1::PrepareResponse> RecordingManager::DoPrepare(Recording& recording) {
  v1::PrepareResponse response;
  TakeReserve(recording.directory);
  // First: the processes of who cannot be locked are not listed.
  SYNCLINE_RETURN_IF_ERROR(parts_.gate->Lock(recording.entry.request().holder()));
  std::vector<v1::Complaint> complaints;
  for (v1::ProcessInfo& process : parts_.gate->Processes(&complaints)) {
    *response.add_processes() = std::move(process);
  }
  for (v1::Complaint& complaint : complaints) *response.add_complaints() = std::move(complaint);
  parts_.gate->Forget();  // it may end before the processes are asked
  const uint32_t own_uid = parts_.gate->Users().front();
  std::vector<ProcessEntry> stopped = StoppedPrograms(options_.proc);
  SYNCLINE_ASSIGN_OR_RETURN(const std::set<uint32_t> left_out,
                            LeaveOut(own_uid, stopped, &response));
  std::set<uint32_t> users = UsersToTrace(response, own_uid);
  SYNCLINE_RETURN_IF_ERROR(parts_.daemon->Ensure());
  // One session daemon has all programs of the machine, also those that somebody else records.
  std::vector<uint32_t> only_users;
  if (!left_out.empty() || !parts_.gate->RefusedUsers().empty()) {
    only_users = parts_.gate->Restrict(left_out);
    if (std::count(only_users.begin(), only_users.end(), own_uid) == 0) {
      only_users.push_back(own_uid);  // its canary
    }
    std::erase_if(users, [&](uint32_t uid) {
      return std::count(only_users.begin(), only_users.end(), uid) == 0;
    });
  }
  SYNCLINE_ASSIGN_OR_RETURN(SessionSpec spec, MakeSpec(recording, users, &response));
  spec.only_users = std::move(only_users);
  response.set_session_name(spec.name);
  SYNCLINE_RETURN_IF_ERROR(parts_.clock_recorder->StartFile(recording.directory / "clock.tuples"));
  BeginGuard(recording, &response);
  DaemonWatch watch(options_.proc, own_uid);
  SYNCLINE_RETURN_IF_ERROR(BeginSession(spec, std::move(stopped)));
  const int64_t begin_ns = parts_.clock->MonotonicNs();
  CanaryRound round = {
      .canary = parts_.canary,
      .lttng = parts_.lttng,
      .session = &spec,
      .own_uid = own_uid,
      .room = absl::StrFormat("/dev/shm has %d KiB free and the buffers need %d KiB",
                              parts_.room->ShmFreeBytes() >> 10, response.buffers_bytes() >> 10)};
  for (const uint32_t uid : users) round.nonces[uid] = nonces_();
  round.own_has_processes =
      std::any_of(response.processes().begin(), response.processes().end(),
                  [&](const v1::ProcessInfo& process) { return process.uid() == round.own_uid; });
  SYNCLINE_ASSIGN_OR_RETURN(complaints, RunCanaries(round));
  for (v1::Complaint& complaint : complaints) *response.add_complaints() = std::move(complaint);
  response.set_canary_round_trip_ns(parts_.clock->MonotonicNs() - begin_ns);
  SYNCLINE_RETURN_IF_ERROR(parts_.lttng->Start(spec.name));
  if (const absl::Status ran = watch.AllRan(); !ran.ok()) {
    renew_daemon_ = true;
    return ran;
  }
  FindUnregistered(!left_out.empty(), &response);
  const std::vector<uint32_t> refused = parts_.gate->RefusedUsers();
  for (EvidenceSource* source : SourcesOf(recording)) {
    source->Configure(recording.entry.request());
    source->Find(refused);
  }
  return response;
}

absl::StatusOr<std::set<uint32_t>> RecordingManager::LeaveOut(
    uint32_t own_uid, const std::vector<ProcessEntry>& stopped, v1::PrepareResponse* response) {
  SYNCLINE_ASSIGN_OR_RETURN(std::set<uint32_t> left_out,
                            UsersLeftOut(options_.proc, own_uid, response));
  SYNCLINE_ASSIGN_OR_RETURN(const std::set<uint32_t> too_slow,
                            UsersWhoHoldUp(stopped, own_uid, response));
  left_out.insert(too_slow.begin(), too_slow.end());
  return left_out;
}

void RecordingManager::FindUnregistered(bool some_are_left_out, v1::PrepareResponse* response) {
  unregistered_.clear();
  if (some_are_left_out) return;  // the daemon would ask all programs, those that it must not
  auto unregistered = AwaitRegistration(*parts_.lttng, *parts_.gate, *parts_.clock, &patience_);
  parts_.log->Failure("registration", unregistered.status());
  if (unregistered.ok()) unregistered_ = *std::move(unregistered);
  for (const v1::ProcessInfo& process : unregistered_) {
    *response->add_complaints() = NotRegistered(process);
  }
}

std::vector<EvidenceSource*> RecordingManager::SourcesOf(const Recording& recording) const {
  std::vector<EvidenceSource*> wanted;
  for (EvidenceSource* source : parts_.sources) {
    if (source->IsWanted(recording.entry.request())) wanted.push_back(source);
  }
  return wanted;
}

void RecordingManager::BeginSources(const Recording& recording, const v1::StartRequest& request) {
  const v1::PrepareRequest& prepared = recording.entry.request();
  const EvidenceWindow window = {
      .recording_id = prepared.recording_id(),
      .directory = recording.directory,
      .start_raw_ns = request.at_monotonic_raw_ns(),
      .length_ns = std::max<int64_t>(0, request.window_ns()),
      .host_tracer_level = static_cast<int>(prepared.tf_profiler_level()),
      .device_tracer_level = static_cast<int>(prepared.tf_profiler_device_level()),
      .collectives_too = prepared.tf_profiler_collectives()};
  for (EvidenceSource* source : SourcesOf(recording)) source->Begin(window);
}

void RecordingManager::AbandonSession(Recording& recording) {
  const absl::Status destroyed =
      parts_.lttng->Destroy(recording.entry.session_name(), kLeftoverDestroyWaitMs);
  if (!absl::IsNotFound(destroyed) && !absl::IsUnavailable(destroyed)) {
    parts_.log->Failure("abandon", destroyed);
  }
  for (EvidenceSource* source : SourcesOf(recording)) source->End();
  EndGuard();
  parts_.gate->Unlock();
  parts_.clock_recorder->StopFile();
  GiveReserveBack(recording.directory);
  std::error_code ignored;
  std::filesystem::remove_all(recording.directory / "trace", ignored);
}

v1::StopResponse RecordingManager::DoStop(Recording& recording, const std::string& reason) {
  const bool opened = recording.entry.has_started();
  journal::Entry change;
  change.set_state(v1::STOPPING);
  change.set_step("stop");
  parts_.log->Failure("journal", Record(recording, change));
  v1::StopResponse response;
  response.set_stop_reason(reason);
  response.set_complete(true);
  if (opened) {
    const GateMove move = parts_.gate->Close();
    response.set_gate_begin_monotonic_raw_ns(move.begin_raw_ns);
    response.set_gate_end_monotonic_raw_ns(move.end_raw_ns);
    response.set_gate_begin_monotonic_ns(move.begin_monotonic_ns);
    response.set_gate_end_monotonic_ns(move.end_monotonic_ns);
    for (const v1::Complaint& complaint : move.complaints) *response.add_complaints() = complaint;
    if (!move.complete) response.set_complete(false);
  }
  // They hand over while the session is flushed.
  for (EvidenceSource* source : SourcesOf(recording)) source->End();
  // Or this agent was silent for so long that the guard has ended the recording.
  if (auto ended = GuardResult(recording.directory); ended.has_value()) {
    ended->mutable_complaints()->MergeFrom(response.complaints());
    ended->set_complete(ended->complete() && response.complete());
    response = *std::move(ended);
  } else {
    JournalStop(recording, kStepFlush, response);
    StopSession(recording, &response);
    JournalStop(recording, kStepDestroy, response);
    DestroySession(recording, &response);
  }
  EndGuard();
  // Of who came, and was refused, when the session was there already.
  RemoveTracesOf(parts_.gate->RefusedUsers(), recording.directory / "trace");
  JournalStop(recording, kStepKeep, response);
  KeepFiles(recording, &response);
  journal::Entry stopped;
  stopped.set_state(v1::STOPPED);
  *stopped.mutable_stopped() = response;
  parts_.log->Info("stopped", {{"recording", recording.entry.request().recording_id()},
                               {"reason", response.stop_reason()},
                               {"complete", response.complete() ? "yes" : "no"},
                               {"bytes", absl::StrCat(response.bytes())}});
  parts_.log->Failure("journal", Record(recording, stopped));
  parts_.log->Detach();
  return response;
}

void RecordingManager::JournalStop(Recording& recording, const char* next,
                                   const v1::StopResponse& so_far) {
  journal::Entry change;
  change.set_state(v1::STOPPING);
  change.set_step(next);
  *change.mutable_stopped() = so_far;
  parts_.log->Failure("journal", Record(recording, change));
}

void RecordingManager::StopSession(Recording& recording, v1::StopResponse* response) {
  const std::string& session = recording.entry.session_name();
  const std::vector<ProcessEntry> held =
      StoppedPrograms(options_.proc, parts_.gate->RefusedUsers());
  const bool few = !held.empty() && held.size() <= kStoppedMax;
  absl::Status stopped = parts_.lttng->Stop(session);
  // LTTng goes on waiting for them. It answers when it has done that, and is not told it twice.
  size_t more = few ? (held.size() + 1) / 2 : 0;  // 10 s each, and they take 5
  for (; more > 0 && absl::IsDeadlineExceeded(stopped); --more) {
    stopped = parts_.lttng->Stop(session);
  }
  recording.flush_hangs = absl::IsDeadlineExceeded(stopped);
  if (recording.flush_hangs && held.size() > kStoppedMax) {
    response->set_complete(false);
    *response->add_complaints() =
        Warning(absl::StrCat("LTTng had not ended the recording when its files were kept: the "
                             "last events of any program may be missing. ",
                             HeldUpBy(held)),
                "the files are kept as they are; record again when no program is stopped");
    parts_.log->Failure("finish", stopped);
    return;  // nor would it give its counters in time
  }
  if (!stopped.ok()) NotFinished(stopped, response);
  if (const auto counters = parts_.lttng->Counters(session); counters.ok()) {
    for (const ChannelCounters& one : *counters) {
      v1::ChannelResult& channel = *response->add_channels();
      channel.set_name(one.name);
      channel.set_discarded_events_valid((one.discarded_events & kDamagedCounterBit) == 0);
      channel.set_discarded_events_count(one.discarded_events & ~kDamagedCounterBit);
      channel.set_lost_packets_count(one.lost_packets);
    }
  } else if (stopped.ok()) {  // else it is said already
    NotFinished(counters.status(), response);
  }
}

void RecordingManager::DestroySession(Recording& recording, v1::StopResponse* response) {
  const absl::Status destroyed = parts_.lttng->Destroy(
      recording.entry.session_name(), recording.flush_hangs ? kHungDestroyWaitMs : kDestroyWaitMs);
  // An agent that was killed in this very call has destroyed it.
  const bool again = response->channels_size() != 0 && absl::IsNotFound(destroyed);
  if (!destroyed.ok() && !again && response->complete()) NotFinished(destroyed, response);
  GiveReserveBack(recording.directory);  // now that nobody writes events any more
}

void RecordingManager::NotFinished(const absl::Status& status, v1::StopResponse* response) {
  response->set_complete(false);
  const bool daemon_gone =
      absl::IsAborted(status) || absl::IsUnavailable(status) || absl::IsNotFound(status);
  *response->add_complaints() = Warning(
      daemon_gone ? absl::StrCat("LTTng exited while it recorded (", status.message(),
                                 "): the events that it had not written are lost")
                  : std::string(status.message()),
      daemon_gone ? "was it killed, by a user or by the kernel for lack of memory? The next "
                    "recording starts a new one"
                  : "the files are kept as they are; a program that is killed while it writes an "
                    "event causes this: with --buffers process it cannot affect other programs");
  parts_.log->Failure("finish", status);
}

void RecordingManager::KeepFiles(Recording& recording, v1::StopResponse* response) {
  for (v1::ProcessInfo& process : parts_.gate->Members()) {
    *response->add_processes() = std::move(process);
  }
  const std::vector<v1::ProcessCoverage> coverage = parts_.gate->Coverage();
  for (const v1::ProcessCoverage& one : coverage) *response->add_coverage() = one;
  for (const int32_t pid : Unreached(coverage, unregistered_)) {
    renew_daemon_ = true;
    *response->add_complaints() = Warning(
        absl::StrCat(
            "LTTng recorded no event of process ", pid,
            " although the process is registered: LTTng has lost its connection to the process"),
        "record again: the agent then starts a new session daemon if it started this one; "
        "otherwise restart lttng-sessiond");
  }
  const absl::Status copied = parts_.gate->CopyBlocks(recording.directory / kProcessesDirectory);
  if (!copied.ok()) {
    *response->add_complaints() =
        Warning(absl::StrCat("Some control blocks could not be kept: ", copied.message()),
                "free disk space; the names of these processes come from the trace itself");
  }
  for (EvidenceSource* source : SourcesOf(recording)) {
    for (v1::Complaint& complaint : source->Collect()) {
      *response->add_complaints() = std::move(complaint);
    }
  }
  parts_.gate->Unlock();
  parts_.clock_recorder->StopFile();  // after the sources: their times need it
  parts_.log->Failure("node_json", WriteFileAtomically(recording.directory / "node.json",
                                                       parts_.node_json(), 0600));
  RepairFileNames(recording.directory / "trace");
  AddTraceResult(recording.directory, response);
  const std::lock_guard lock(mutex_);
  recording.bytes = response->bytes();
}

void RecordingManager::CheckLimits(const RecordingPtr& recording) {
  const absl::StatusOr<uint64_t> bytes = DirectoryBytes(recording->directory);
  parts_.log->Failure("bytes", bytes.status());  // the limits of lease and disk hold all the same
  const uint64_t free = parts_.room->DiskFreeBytes(options_.data_directory);
  std::string reason;
  {
    const std::lock_guard lock(mutex_);
    if (bytes.ok()) recording->bytes = *bytes;
    const v1::PrepareRequest& request = recording->entry.request();
    const v1::RecordingState state = recording->entry.state();
    if (state != v1::READY && state != v1::RECORDING) return;
    if (recording->lease_end_monotonic_ns != 0 &&
        parts_.clock->MonotonicNs() >= recording->lease_end_monotonic_ns) {
      reason = kLeaseExpired;
    } else if (request.size_limit_bytes() != 0 && recording->bytes >= request.size_limit_bytes()) {
      reason = absl::StrFormat(
          "size limit reached: %d KiB recorded, --limit is %d KiB; raise it, "
          "or record for a shorter time",
          recording->bytes >> 10, request.size_limit_bytes() >> 10);
    } else if (free < KeepFreeBytes(request)) {
      reason = absl::StrFormat(
          "disk nearly full: \"%s\" has %d MiB left, %d MiB must stay free (--keep-free)",
          options_.data_directory.string(), free >> 20, KeepFreeBytes(request) >> 20);
    }
  }
  if (!reason.empty()) parts_.log->Failure("limit", StopNow(recording, reason).status());
}

// No step of the wall clock makes a recording old. Of one that another agent left only that clock
// tells how long it lies there: it has an hour to be set right, and is believed while it says so.
bool RecordingManager::IsOld(const Recording& recording) {
  const v1::RecordingState state = recording.entry.state();
  if (state != v1::STOPPED && state != v1::FAILED) return false;
  const int64_t here_ns = parts_.clock->RawNs() - recording.met_raw_ns;
  // Of one that never began there is only why it ended, for whoever asks soon. Where its
  // coordinator is silent and nobody has asked, soon is as long again as its lease was.
  if (state == v1::STOPPED && !recording.entry.has_started()) {
    const bool abandoned =
        !recording.stop_asked && recording.entry.stopped().stop_reason() == kLeaseExpired;
    if (abandoned && here_ns > recording.entry.request().lease_ms() * kNsPerMs) return true;
    if (recording.entry.generation() == 0 && here_ns > kHourNs) return true;
  }
  if (here_ns > options_.retention_ns) return true;
  const int64_t wall_ns = parts_.clock->RealtimeNs() - recording.entry.written_realtime_ns();
  return here_ns > kHourNs && wall_ns > options_.retention_ns &&
         recording.age_when_met_ns > options_.retention_ns - here_ns;
}

void RecordingManager::ForgetOld() {
  std::vector<std::string> old;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, recording] : recordings_) {
      if (IsOld(*recording)) old.push_back(id);
    }
  }
  for (const std::string& id : old) {
    parts_.log->Warning("retention", {{"recording", id}});
    v1::ReleaseRequest request;
    request.set_recording_id(id);
    request.set_even_if_not_fetched(true);
    parts_.log->Failure("retention", Release(request).status());
  }
}

void RecordingManager::Tick() {
  if (const RecordingPtr active = Active()) {
    TellGuard(*active);
    CheckLimits(active);
  }
  ForgetOld();
}

void RecordingManager::Shutdown() {
  {
    const std::lock_guard lock(mutex_);
    shutting_down_ = true;
  }
  if (const RecordingPtr active = Active()) {
    parts_.log->Failure("shutdown", StopNow(active, "agent shutdown").status());
  }
}

}  // namespace syncline::agent

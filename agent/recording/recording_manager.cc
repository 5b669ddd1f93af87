// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/recording_manager.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/recording/names.h"
#include "agent/recording/trace_files.h"
#include "common/checksum.h"
#include "common/files.h"
#include "common/status.h"
#include "vtune/analyses.h"

namespace syncline::agent {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kSpinNs = 200'000;  // the end of a wait: sleeping is not that exact
constexpr int64_t kWaitSliceNs =
    10'000'000;  // how soon a waiting call notices that it was overtaken
constexpr int64_t kWaitLimitNs =
    600 * int64_t{1'000'000'000};  // an instant further away is a mistake
constexpr uint32_t kTfProfilerLevelMax = 3;
constexpr uint32_t kTfProfilerDeviceLevelMax = 3;
constexpr int64_t kLeaseLimitMs = 24 * 3600 * int64_t{1000};

bool IsActive(v1::RecordingState state) {
  return state == v1::PREPARING || state == v1::READY || state == v1::RECORDING ||
         state == v1::STOPPING;
}

absl::Status NoSuchRecording(const std::string& id) {
  return absl::NotFoundError(
      absl::StrCat("This node has no recording \"", ForLog(id),
                   "\": it was never made, was released, was not started before its lease expired, "
                   "was deleted after --retention-hours, or is in another --data-dir"));
}

// A coordinator that was suspended asks for the start of what has ended meanwhile.
std::string WhyNotReady(const journal::Entry& entry) {
  const std::string name = absl::StrCat("Recording \"", entry.request().recording_id(), "\"");
  if (entry.state() != v1::STOPPED && entry.state() != v1::FAILED) {
    return absl::StrCat(name, " is not ready on this node: it is ",
                        absl::AsciiStrToLower(v1::RecordingState_Name(entry.state())));
  }
  const std::string& reason = entry.stopped().stop_reason();
  const std::string& why = reason.empty() ? entry.failure() : reason;
  return absl::StrCat(name, " ended on this node before its start", why.empty() ? "" : ": ", why,
                      ". Record again");
}

}  // namespace

RecordingManager::RecordingManager(ManagerParts parts, ManagerOptions options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      session_prefix_(absl::StrFormat("syncline-%08x-", Crc32c(options_.data_directory.string()))),
      nonces_(options_.seed) {}

std::string RecordingManager::SessionName(const std::string& recording_id) const {
  return session_prefix_ + recording_id;
}

std::filesystem::path RecordingManager::DirectoryOf(const std::string& recording_id) const {
  return options_.data_directory / "recordings" / recording_id;
}

absl::StatusOr<RecordingManager::RecordingPtr> RecordingManager::Find(
    const std::string& recording_id) {
  SYNCLINE_RETURN_IF_ERROR(CheckRecordingId(recording_id));
  const std::lock_guard lock(mutex_);
  const auto it = recordings_.find(recording_id);
  if (it == recordings_.end()) return NoSuchRecording(recording_id);
  return it->second;
}

RecordingManager::RecordingPtr RecordingManager::Active() {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, recording] : recordings_) {
    if (IsActive(recording->entry.state())) return recording;
  }
  return nullptr;
}

absl::Status RecordingManager::Record(Recording& recording, journal::Entry change) {
  change.set_written_realtime_ns(parts_.clock->RealtimeNs());
  {
    const std::lock_guard lock(mutex_);
    AddToJournal(change, &recording.entry);
    recording.met_raw_ns = parts_.clock->RawNs();
    recording.age_when_met_ns = 0;
  }
  return Journal(recording.directory / "journal").Append(change);
}

absl::Status RecordingManager::CheckPrepare(const v1::PrepareRequest& request) {
  SYNCLINE_RETURN_IF_ERROR(CheckRecordingId(request.recording_id()));
  for (const std::string& pattern : request.extra_events()) {
    SYNCLINE_RETURN_IF_ERROR(CheckEventPattern(pattern));
  }
  if (request.lease_ms() < 0 || request.lease_ms() > kLeaseLimitMs) {
    return absl::InvalidArgumentError("A lease lasts from 0 (none) to 24 hours");
  }
  if (request.tf_profiler_level() > kTfProfilerLevelMax) {
    return absl::InvalidArgumentError("TensorFlow's profiler has the levels 1 to 3");
  }
  if (request.tf_profiler_device_level() > kTfProfilerDeviceLevelMax) {
    return absl::InvalidArgumentError("XLA's profiler has the levels 0 to 3 for devices");
  }
  if (request.has_vtune()) {
    SYNCLINE_RETURN_IF_ERROR(vtune::CheckRequest(
        {.analysis = request.vtune().analysis(),
         .knobs = {request.vtune().knobs().begin(), request.vtune().knobs().end()}}));
  }
  return CheckRoom(request);
}

absl::StatusOr<v1::PrepareResponse> RecordingManager::Prepare(const v1::PrepareRequest& request) {
  const std::string& id = request.recording_id();
  SYNCLINE_RETURN_IF_ERROR(CheckRecordingId(id));
  const std::lock_guard operation(operation_);
  auto recording = std::make_shared<Recording>();
  {
    const std::lock_guard lock(mutex_);
    if (shutting_down_) return absl::UnavailableError("The agent is shutting down");
    for (const auto& [other_id, other] : recordings_) {
      const v1::RecordingState state = other->entry.state();
      if (other_id == id && state != v1::FAILED) {
        if (IsActive(state)) return other->entry.prepared();
        return absl::AlreadyExistsError(absl::StrCat("Recording \"", id, "\" has already ended"));
      }
      if (other_id != id && IsActive(state)) {
        return absl::FailedPreconditionError(absl::StrCat(
            "This node is recording \"", other_id, "\" for ", other->entry.request().holder(),
            "; wait until that recording has ended, or stop it: syncline stop ", other_id));
      }
    }
  }
  SYNCLINE_RETURN_IF_ERROR(CheckPrepare(request));
  recording->directory = DirectoryOf(id);
  std::error_code ignored;
  std::filesystem::remove_all(recording->directory, ignored);  // of an attempt that failed
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(recording->directory, 0700));
  journal::Entry first;
  first.set_state(v1::PREPARING);
  first.set_step("create");
  first.set_session_name(SessionName(id));
  *first.mutable_request() = request;
  SYNCLINE_RETURN_IF_ERROR(Record(*recording, first));
  {
    const std::lock_guard lock(mutex_);
    recordings_[id] = recording;
  }
  parts_.log->Attach(recording->directory / "agent.log");
  parts_.log->Info("prepare", {{"recording", id}, {"holder", ForLog(request.holder())}});
  const int64_t begin_ns = parts_.clock->MonotonicNs();
  auto response = DoPrepare(*recording);
  journal::Entry change;
  if (response.ok()) {
    response->set_prepare_duration_ns(parts_.clock->MonotonicNs() - begin_ns);
    change.set_state(v1::READY);
    *change.mutable_prepared() = *response;
    const std::lock_guard lock(mutex_);
    if (request.lease_ms() > 0) {
      recording->lease_end_monotonic_ns =
          parts_.clock->MonotonicNs() + request.lease_ms() * kNsPerMs;
    }
  }
  const absl::Status written = response.ok() ? Record(*recording, change) : response.status();
  if (written.ok()) {
    parts_.log->Info("ready", {{"recording", id},
                               {"buffers_bytes", absl::StrCat(response->buffers_bytes())},
                               {"duration_ns", absl::StrCat(response->prepare_duration_ns())}});
    return response;
  }
  AbandonSession(*recording);
  journal::Entry failed;
  failed.set_state(v1::FAILED);
  failed.set_failure(std::string(written.message()));
  parts_.log->Failure("prepare_failed", written);
  parts_.log->Failure("journal", Record(*recording, failed));
  parts_.log->Detach();
  return written;
}

bool RecordingManager::WaitUntilRaw(int64_t at_raw_ns, const std::function<bool()>& cut_short) {
  for (;;) {
    const int64_t left_ns = at_raw_ns - parts_.clock->RawNs();
    if (left_ns <= 0) return true;
    if (left_ns > kSpinNs) {
      if (cut_short()) return false;
      parts_.clock->SleepNs(std::min(left_ns - kSpinNs, kWaitSliceNs));
    }
  }
}

absl::StatusOr<v1::StartResponse> RecordingManager::Start(const v1::StartRequest& request) {
  SYNCLINE_ASSIGN_OR_RETURN(const RecordingPtr recording, Find(request.recording_id()));
  uint32_t generation = 0;
  {
    const std::lock_guard operation(operation_);
    if (recording->entry.has_started()) return recording->entry.started();
    if (recording->entry.state() != v1::READY) {
      return absl::FailedPreconditionError(WhyNotReady(recording->entry));
    }
    if (request.at_monotonic_raw_ns() - parts_.clock->RawNs() > kWaitLimitNs) {
      return absl::InvalidArgumentError("The start is more than 10 minutes ahead");
    }
    parts_.gate->KeepEndedIn(recording->directory / kProcessesDirectory);
    parts_.gate->LeaveOut(LeftOutOf(recording->entry.request().detail()));
    generation = parts_.gate->Arm();
    journal::Entry change;
    change.set_step("gate");
    change.set_generation(generation);
    for (const uint32_t uid : parts_.gate->RefusedUsers()) change.add_other_uids(uid);
    SYNCLINE_RETURN_IF_ERROR(Record(*recording, change));
    if (request.window_ns() > 0) {
      const std::lock_guard lock(mutex_);
      recording->end_raw_ns =
          std::max(request.at_monotonic_raw_ns(), parts_.clock->RawNs()) + request.window_ns();
    }
    TellGuard(*recording);  // before a gate is open: this agent may die with the first
    BeginSources(*recording, request);
  }
  const auto overtaken = [&] {
    const std::lock_guard lock(mutex_);
    return recording->abandon_wait || recording->entry.state() != v1::READY;
  };
  WaitUntilRaw(request.at_monotonic_raw_ns(), overtaken);
  const std::lock_guard operation(operation_);
  if (recording->entry.has_started()) return recording->entry.started();
  if (overtaken()) {
    return absl::AbortedError(
        absl::StrCat("Recording \"", request.recording_id(), "\" was stopped before it started"));
  }
  const GateMove move = parts_.gate->Open(generation);
  v1::StartResponse response;
  response.set_gate_begin_monotonic_raw_ns(move.begin_raw_ns);
  response.set_gate_end_monotonic_raw_ns(move.end_raw_ns);
  response.set_gate_begin_monotonic_ns(move.begin_monotonic_ns);
  response.set_gate_end_monotonic_ns(move.end_monotonic_ns);
  response.set_generation(generation);
  response.set_processes_switched_count(move.processes);
  for (const v1::Complaint& complaint : move.complaints) *response.add_complaints() = complaint;
  journal::Entry change;
  change.set_state(v1::RECORDING);
  *change.mutable_started() = response;
  parts_.log->Failure("journal", Record(*recording, change));
  TellGuard(*recording);
  parts_.log->Info(
      "started",
      {{"recording", request.recording_id()},
       {"generation", absl::StrCat(generation)},
       {"processes", absl::StrCat(move.processes)},
       {"late_ns", absl::StrCat(request.at_monotonic_raw_ns() == 0
                                    ? 0
                                    : move.begin_raw_ns - request.at_monotonic_raw_ns())}});
  return response;
}

absl::StatusOr<v1::StopResponse> RecordingManager::Stop(const v1::StopRequest& request) {
  SYNCLINE_ASSIGN_OR_RETURN(const RecordingPtr recording, Find(request.recording_id()));
  if (request.at_monotonic_raw_ns() - parts_.clock->RawNs() > kWaitLimitNs) {
    return absl::InvalidArgumentError("The stop is more than 10 minutes ahead");
  }
  {
    const std::lock_guard lock(mutex_);
    recording->stop_asked = true;
  }
  WaitUntilRaw(request.at_monotonic_raw_ns(), [&] {
    const std::lock_guard lock(mutex_);
    return shutting_down_ || !IsActive(recording->entry.state());
  });
  return StopNow(recording, request.reason().empty() ? "requested" : ForLog(request.reason()));
}

absl::StatusOr<v1::StopResponse> RecordingManager::StopNow(const RecordingPtr& recording,
                                                           const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    recording->abandon_wait = true;
  }
  const std::lock_guard operation(operation_);
  if (recording->entry.state() == v1::STOPPED) return recording->entry.stopped();
  if (recording->entry.state() == v1::FAILED) {
    return absl::FailedPreconditionError(
        absl::StrCat("The recording failed: ", recording->entry.failure()));
  }
  return DoStop(*recording, reason);
}

v1::RecordingInfo RecordingManager::Describe(const Recording& recording) {
  v1::RecordingInfo info;
  info.set_recording_id(recording.entry.request().recording_id());
  info.set_state(recording.entry.state());
  info.set_holder(recording.entry.request().holder());
  info.set_bytes(recording.bytes);
  info.set_failure(recording.entry.failure());
  info.set_stop_reason(recording.entry.stopped().stop_reason());
  info.set_started_realtime_ns(recording.entry.written_realtime_ns());
  if (IsActive(recording.entry.state()) && recording.lease_end_monotonic_ns != 0) {
    info.set_lease_remaining_ms(
        std::max<int64_t>(0, recording.lease_end_monotonic_ns - parts_.clock->MonotonicNs()) /
        kNsPerMs);
  }
  if (IsActive(recording.entry.state())) info.set_guard_pid(recording.entry.guard_pid());
  return info;
}

std::vector<v1::RecordingInfo> RecordingManager::Recordings() {
  const std::lock_guard lock(mutex_);
  std::vector<v1::RecordingInfo> infos;
  for (const auto& [id, recording] : recordings_) infos.push_back(Describe(*recording));
  return infos;
}

absl::StatusOr<v1::StatusResponse> RecordingManager::Status(const v1::StatusRequest& request) {
  v1::StatusResponse response;
  response.set_disk_free_bytes(parts_.room->DiskFreeBytes(options_.data_directory));
  if (request.recording_id().empty()) {
    for (v1::RecordingInfo& info : Recordings()) *response.add_recordings() = std::move(info);
    return response;
  }
  if (request.renew_lease_ms() < 0 || request.renew_lease_ms() > kLeaseLimitMs) {
    return absl::InvalidArgumentError("A lease lasts up to 24 hours");
  }
  SYNCLINE_ASSIGN_OR_RETURN(const RecordingPtr recording, Find(request.recording_id()));
  bool recording_now = false;
  {
    const std::lock_guard lock(mutex_);
    if (request.renew_lease_ms() > 0) {
      recording->lease_end_monotonic_ns =
          parts_.clock->MonotonicNs() + request.renew_lease_ms() * kNsPerMs;
    }
    recording_now = recording->entry.state() == v1::RECORDING;
    if (!recording_now) {
      for (const v1::ProcessCoverage& one : recording->entry.stopped().coverage()) {
        response.set_events_count(response.events_count() + one.events_count());
        response.set_lost_count(response.lost_count() + one.lost_count());
      }
      response.set_processes_count(
          static_cast<uint32_t>(recording->entry.stopped().coverage_size()));
    }
  }
  const absl::StatusOr<uint64_t> bytes = DirectoryBytes(recording->directory);
  parts_.log->Failure("bytes", bytes.status());
  if (recording_now) {
    const GateCounts counts = parts_.gate->Counts();
    response.set_events_count(counts.events);
    response.set_lost_count(counts.lost);
    response.set_processes_count(counts.processes);
  }
  const std::lock_guard lock(mutex_);
  if (bytes.ok()) recording->bytes = *bytes;  // else as last looked at
  response.set_bytes(recording->bytes);
  *response.add_recordings() = Describe(*recording);
  return response;
}

absl::StatusOr<v1::ReleaseResponse> RecordingManager::Release(const v1::ReleaseRequest& request) {
  SYNCLINE_RETURN_IF_ERROR(CheckRecordingId(request.recording_id()));
  v1::ReleaseResponse response;
  auto found = Find(request.recording_id());
  if (absl::IsNotFound(found.status())) {
    // Who breaks off a Prepare releases at once, perhaps before that call has made its entry.
    const std::lock_guard operation(operation_);
    found = Find(request.recording_id());
  }
  if (absl::IsNotFound(found.status())) return response;
  SYNCLINE_RETURN_IF_ERROR(found);
  const RecordingPtr recording = *found;
  bool active = false;
  bool safe = false;
  {
    const std::lock_guard lock(mutex_);
    active = IsActive(recording->entry.state());
    safe = recording->entry.fetched() || recording->entry.state() == v1::FAILED;
  }
  if (!request.even_if_not_fetched() && (active || !safe)) {
    return absl::FailedPreconditionError(
        absl::StrCat("Recording \"", request.recording_id(), "\" ",
                     active ? "is still active" : "was not fetched",
                     ": fetch the recording first, or delete it with `syncline release --force`"));
  }
  if (active) parts_.log->Failure("release", StopNow(recording, "released").status());
  const std::lock_guard operation(operation_);
  std::error_code error;
  std::filesystem::remove_all(recording->directory, error);
  if (error) {
    return ErrnoStatus(error.value(),
                       absl::StrCat("Cannot delete \"", recording->directory.string(), "\""));
  }
  const std::lock_guard lock(mutex_);
  recordings_.erase(request.recording_id());
  response.set_existed(true);
  return response;
}

absl::StatusOr<std::filesystem::path> RecordingManager::DirectoryForFetch(
    const std::string& recording_id) {
  SYNCLINE_ASSIGN_OR_RETURN(const RecordingPtr recording, Find(recording_id));
  const std::lock_guard lock(mutex_);
  if (IsActive(recording->entry.state())) {
    return absl::FailedPreconditionError(
        absl::StrCat("Recording \"", recording_id, "\" is ",
                     v1::RecordingState_Name(recording->entry.state()), ": stop it first"));
  }
  std::error_code error;
  if (!std::filesystem::exists(recording->directory, error) && !error) {
    return absl::NotFoundError(absl::StrCat("Recording \"", recording_id,
                                            "\" was deleted on this node by hand: \"",
                                            recording->directory.string(), "\" is gone"));
  }
  return recording->directory;
}

void RecordingManager::MarkFetched(const std::string& recording_id) {
  const auto recording = Find(recording_id);
  if (!recording.ok()) return;
  const std::lock_guard operation(operation_);
  journal::Entry change;
  change.set_fetched(true);
  parts_.log->Failure("journal", Record(**recording, change));
}

}  // namespace syncline::agent

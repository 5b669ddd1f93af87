// SPDX-License-Identifier: Apache-2.0
// What RecordingManager does of recordings that a killed agent left.
#include <system_error>

#include "absl/strings/match.h"
#include "agent/recording/names.h"
#include "agent/recording/recording_manager.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::agent {

absl::Status RecordingManager::Recover() {
  const std::filesystem::path root = options_.data_directory / "recordings";
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(root, 0700));
  const std::lock_guard operation(operation_);
  std::error_code error;
  for (std::filesystem::directory_iterator it(root, error), end; !error && it != end;
       it.increment(error)) {
    const std::string id = it->path().filename().string();
    if (!CheckRecordingId(id).ok()) continue;  // not ours: leave it alone
    auto recording = std::make_shared<Recording>();
    recording->directory = it->path();
    const auto entry = Journal(it->path() / "journal").Read();
    if (entry.ok()) {
      recording->entry = *entry;
    } else {
      recording->entry.set_state(v1::FAILED);
      recording->entry.set_failure(std::string(entry.status().message()));
    }
    recording->entry.mutable_request()->set_recording_id(id);
    recording->met_raw_ns = parts_.clock->RawNs();
    recording->age_when_met_ns =
        parts_.clock->RealtimeNs() - recording->entry.written_realtime_ns();
    {
      const std::lock_guard lock(mutex_);
      recordings_[id] = recording;
    }
    Adopt(recording);
  }
  ForgetLeftoverSessions();
  if (error) return ErrnoStatus(error.value(), absl::StrCat("Cannot list \"", root.string(), "\""));
  return absl::OkStatus();
}

// Goes on where a killed agent was: what it had done, and when, is in the journal.
v1::StopResponse RecordingManager::StopAdopted(Recording& recording) {
  const bool stopping = recording.entry.state() == v1::STOPPING && recording.entry.has_stopped();
  v1::StopResponse response = recording.entry.stopped();
  const std::string step = stopping ? recording.entry.step() : kStepFlush;
  const bool opened = recording.entry.generation() != 0;  // or about to be
  if (!stopping) {
    response.set_stop_reason("adopted: the agent was killed while recording");
    response.set_complete(true);
  }
  if (!stopping && opened) {
    response.set_gate_begin_monotonic_raw_ns(parts_.clock->RawNs());
    response.set_gate_begin_monotonic_ns(parts_.clock->MonotonicNs());
  }
  parts_.gate->Forget();
  if (opened) {
    parts_.gate->KeepEndedIn(recording.directory / kProcessesDirectory);
    const auto& others = recording.entry.other_uids();
    parts_.gate->CloseLeftover(
        {.generation = recording.entry.generation(), .others = {others.begin(), others.end()}});
  }
  if (auto guard = GuardResult(recording.directory); guard.has_value() && step == kStepFlush) {
    if (stopping) {  // the gate was closed before, and not by the guard
      response.mutable_channels()->Swap(guard->mutable_channels());
      response.mutable_complaints()->MergeFrom(guard->complaints());
      response.set_complete(response.complete() && guard->complete());
      return response;
    }
    return *std::move(guard);
  }
  if (!stopping && opened) {
    response.set_gate_end_monotonic_ns(parts_.clock->MonotonicNs());
    response.set_gate_end_monotonic_raw_ns(parts_.clock->RawNs());
  }
  if (step == kStepFlush) {
    StopSession(recording, &response);
    JournalStop(recording, kStepDestroy, response);
  }
  if (step != kStepKeep) DestroySession(recording, &response);
  return response;
}

void RecordingManager::Adopt(const RecordingPtr& recording) {
  const v1::RecordingState state = recording->entry.state();
  const std::string& id = recording->entry.request().recording_id();
  EndLeftoverGuard(options_.proc, recording->entry.guard_pid(), id);
  journal::Entry change;
  if (state == v1::READY || state == v1::RECORDING || state == v1::STOPPING) {
    parts_.log->Attach(recording->directory / "agent.log");
    parts_.log->Warning("adopted", {{"recording", id}, {"state", v1::RecordingState_Name(state)}});
    v1::StopResponse response = StopAdopted(*recording);
    // Processes that never heard of it have nothing of it.
    if (recording->entry.has_started()) {
      for (EvidenceSource* source : SourcesOf(*recording)) {
        source->Adopt({.recording_id = id, .directory = recording->directory});
      }
    }
    KeepFiles(*recording, &response);
    change.set_state(v1::STOPPED);
    *change.mutable_stopped() = response;
  } else if (state == v1::PREPARING || state == v1::RECORDING_STATE_UNSPECIFIED) {
    AbandonSession(*recording);
    change.set_state(v1::FAILED);
    change.set_failure("The agent was killed while it prepared this recording");
  } else {
    return;
  }
  parts_.log->Failure("journal", Record(*recording, change));
  parts_.log->Detach();
}

void RecordingManager::ForgetLeftoverSessions() {
  const auto sessions = parts_.lttng->Sessions();
  if (!sessions.ok()) {
    parts_.log->Failure("sessions", sessions.status());
    return;
  }
  for (const std::string& session : *sessions) {
    if (!absl::StartsWith(session, session_prefix_)) continue;
    parts_.log->Warning("leftover_session", {{"session", session}});
    parts_.log->Failure("destroy", parts_.lttng->Destroy(session, kLeftoverDestroyWaitMs));
  }
}

}  // namespace syncline::agent

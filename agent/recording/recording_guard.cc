// SPDX-License-Identifier: Apache-2.0
// RecordingManager and its guard: what the guard is told, and what it does in the agent's place.
#include "absl/strings/str_cat.h"
#include "agent/recording/recording_manager.h"

namespace syncline::agent {
namespace {

constexpr uint64_t kDefaultKeepFreeBytes = 256 << 20;

}  // namespace

uint64_t RecordingManager::KeepFreeBytes(const v1::PrepareRequest& request) {
  return request.disk_keep_free_bytes() != 0 ? request.disk_keep_free_bytes()
                                             : kDefaultKeepFreeBytes;
}

journal::GuardOrders RecordingManager::OrdersOf(const Recording& recording) {
  const v1::PrepareRequest& request = recording.entry.request();
  journal::GuardOrders orders;
  orders.set_recording_id(request.recording_id());
  orders.set_directory(recording.directory.string());
  orders.set_session_name(recording.entry.session_name());
  orders.set_opened(recording.entry.has_started());
  orders.set_generation(recording.entry.generation());
  orders.set_end_raw_ns(recording.end_raw_ns);
  orders.set_lease_end_monotonic_ns(recording.lease_end_monotonic_ns);
  orders.set_size_limit_bytes(request.size_limit_bytes());
  orders.set_keep_free_bytes(KeepFreeBytes(request));
  *orders.mutable_other_uids() = recording.entry.other_uids();
  return orders;
}

void RecordingManager::BeginGuard(Recording& recording, v1::PrepareResponse* response) {
  if (parts_.guard == nullptr) return;
  const auto pid = parts_.guard->Begin(OrdersOf(recording));
  if (!pid.ok()) {
    v1::Complaint& complaint = *response->add_complaints();
    complaint.set_severity(v1::Complaint::WARNING);
    complaint.set_what(
        absl::StrCat("The recording has no guard: ", pid.status().message(),
                     ". If the agent dies, nothing ends the recording on this node"));
    complaint.set_fix("free memory or process ids on the node, and record again");
    return;
  }
  journal::Entry change;
  change.set_guard_pid(*pid);
  parts_.log->Failure("journal", Record(recording, change));
}

void RecordingManager::TellGuard(const Recording& recording) {
  if (parts_.guard == nullptr) return;
  const std::lock_guard lock(mutex_);
  parts_.guard->Tell(OrdersOf(recording));
}

void RecordingManager::EndGuard() {
  if (parts_.guard != nullptr) parts_.guard->End();
}

v1::StopResponse RecordingManager::EndForAgent(const journal::GuardOrders& orders) {
  v1::StopResponse response;
  response.set_complete(true);
  response.set_gate_begin_monotonic_raw_ns(parts_.clock->RawNs());
  response.set_gate_begin_monotonic_ns(parts_.clock->MonotonicNs());
  if (orders.generation() != 0) {
    parts_.gate->CloseLeftover({.generation = orders.generation(),
                                .others = {orders.other_uids().begin(), orders.other_uids().end()},
                                .agent_lives = orders.agent_lives()});
  }
  response.set_gate_end_monotonic_ns(parts_.clock->MonotonicNs());
  response.set_gate_end_monotonic_raw_ns(parts_.clock->RawNs());
  Recording recording;
  recording.directory = orders.directory();
  recording.entry.set_session_name(orders.session_name());
  StopSession(recording, &response);
  DestroySession(recording, &response);
  return response;
}

}  // namespace syncline::agent

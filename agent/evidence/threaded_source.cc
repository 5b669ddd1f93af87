// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/threaded_source.h"

#include <chrono>

namespace syncline::agent {

bool EvidenceRun::Wait(int64_t ns, const std::stop_token& stop) {
  if (ns > 0) {
    std::unique_lock lock(sleeping_);
    wake_.wait_for(lock, stop, std::chrono::nanoseconds(ns), [] { return false; });
  }
  return !stop.stop_requested();
}

void ThreadedSource::Find(const std::vector<uint32_t>& left_out) {
  const std::lock_guard lock(mutex_);
  // One that was told to end and never collected: its recording was given up.
  if (thread_.joinable() && thread_.get_stop_token().stop_requested()) Forget();
  if (thread_.joinable()) return;
  run_ = MakeRun(left_out);
}

void ThreadedSource::Begin(const EvidenceWindow& window) {
  const std::lock_guard lock(mutex_);
  if (recording_id_ == window.recording_id || thread_.joinable() || run_ == nullptr) return;
  recording_id_ = window.recording_id;
  if (const absl::Status begun = run_->Begin(window); !begun.ok()) {
    log_->Failure(what_, begun);
    run_->Fail(begun);
    return;
  }
  thread_ = std::jthread([run = run_.get()](const std::stop_token& stop) { run->Work(stop); });
}

void ThreadedSource::End() {
  const std::lock_guard lock(mutex_);
  thread_.request_stop();
}

std::vector<v1::Complaint> ThreadedSource::Collect() {
  const std::lock_guard lock(mutex_);
  thread_ = {};  // it ends soon: each source's work behind the window is bounded
  std::vector<v1::Complaint> complaints;
  if (run_ != nullptr) complaints = run_->TakeComplaints();
  Forget();
  return complaints;
}

void ThreadedSource::Forget() {
  thread_ = {};
  run_.reset();
  recording_id_.clear();
}

}  // namespace syncline::agent

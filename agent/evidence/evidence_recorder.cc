// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/evidence_recorder.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <utility>

#include "absl/strings/str_cat.h"

namespace syncline::agent {
namespace {

constexpr int64_t kWaitMinNs = 1'000'000;

// Waits in real time: it is the machine's processors that are sampled.
void Run(Sampling* sampling, const std::stop_token& stop) {
  std::mutex sleeping;
  std::condition_variable_any wake;
  while (!stop.stop_requested()) {
    const std::chrono::nanoseconds wait(std::max(sampling->Round(), kWaitMinNs));
    std::unique_lock lock(sleeping);
    wake.wait_for(lock, stop, wait, [] { return false; });
  }
  sampling->End();
}

}  // namespace

EvidenceRecorder::EvidenceRecorder(RuntimeDirectories directories, Clock* clock, Log* log,
                                   EvidenceOptions options)
    : directories_(std::move(directories)),
      clock_(clock),
      log_(log),
      options_(std::move(options)) {}

// Who is busy, only a second search can tell: this is the first.
void EvidenceRecorder::Find(const std::vector<uint32_t>&) {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable()) return;
  sampling_ = std::make_unique<Sampling>(directories_, clock_, options_);
  sampling_->Find();
}

void EvidenceRecorder::Begin(const EvidenceWindow& window) {
  const std::lock_guard lock(mutex_);
  if (recording_id_ == window.recording_id || thread_.joinable()) return;
  recording_id_ = window.recording_id;
  if (sampling_ == nullptr) sampling_ = std::make_unique<Sampling>(directories_, clock_, options_);
  const absl::Status begun = sampling_->Begin(window.directory);
  if (!begun.ok()) {
    log_->Failure("evidence", begun);
    failure_ = absl::StrCat("No samples of processor time: ", begun.message());
    sampling_.reset();
    return;
  }
  thread_ = std::jthread(
      [sampling = sampling_.get()](const std::stop_token& stop) { Run(sampling, stop); });
}

void EvidenceRecorder::End() {
  const std::lock_guard lock(mutex_);
  thread_.request_stop();
}

std::vector<v1::Complaint> EvidenceRecorder::Collect() {
  const std::lock_guard lock(mutex_);
  thread_ = {};  // it ends within a round
  std::vector<std::string> said;
  if (!failure_.empty()) said.push_back(std::exchange(failure_, {}));
  if (sampling_ != nullptr) {
    for (std::string& what : sampling_->TakeComplaints()) said.push_back(std::move(what));
  }
  sampling_.reset();
  recording_id_.clear();
  return Warnings(said,
                  "the rest of the recording is not affected; `syncline why` names fewer causes");
}

}  // namespace syncline::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/connections/connection_recorder.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/evidence/evidence_file.h"
#include "common/status.h"
#include "evidence/code_samples.h"
#include "evidence/write.h"

namespace syncline::agent {
namespace {

constexpr int64_t kRoundNs = 500'000'000;
constexpr int64_t kSearchNs = 2'000'000'000;
constexpr int64_t kCpuShare = 200;      // one part in so many of a processor, at most
constexpr int64_t kNsPerByte = 10'000;  // 100 kB a second
constexpr int64_t kPauseMaxNs = 30'000'000'000;

}  // namespace

// One recording's.
class ConnectionRecorder::Run {
 public:
  Run(const RuntimeDirectories& directories, Clock* clock, const ConnectionSamplerOptions& options,
      const std::vector<uint32_t>& left_out)
      : clock_(clock), sampler_(directories, clock, options) {
    sampler_.LeaveOut(left_out);
  }

  absl::Status Begin(const EvidenceWindow& window) {
    SYNCLINE_RETURN_IF_ERROR(file_.Create(window.directory, evidence::kConnectionsFileName));
    std::string head;
    evidence::AppendConnectionsHead(&head);
    Write(head);
    return absl::OkStatus();
  }

  // The thread's work. Waits in real time: it is the machine's network that is sampled.
  void Work(const std::stop_token& stop) {
    const int64_t begin_cpu_ns = ThreadCpuNs();
    while (Wait(Round(), stop)) {
    }
    Round();  // what grew until the end
    std::string last;
    evidence::AppendCost(ThreadCpuNs() - begin_cpu_ns, &last);
    evidence::AppendEnd(&last);
    Write(last);
    file_.Close();
  }

  std::vector<std::string> TakeComplaints() {
    for (std::string& what : sampler_.TakeComplaints()) complaints_.push_back(std::move(what));
    return std::exchange(complaints_, {});
  }

 private:
  // How long to wait until the next.
  int64_t Round() {
    const int64_t begin_cpu_ns = ThreadCpuNs();
    if (clock_->MonotonicNs() >= next_search_ns_) Search();
    sampler_.Round();
    const std::string text = sampler_.TakeText();
    Write(text);
    return PauseNs(ThreadCpuNs() - begin_cpu_ns, text.size());
  }

  void Search() {
    sampler_.Search();
    next_search_ns_ = clock_->MonotonicNs() + kSearchNs;
  }

  // false: it is to end.
  bool Wait(int64_t ns, const std::stop_token& stop) {
    std::unique_lock lock(sleeping_);
    wake_.wait_for(lock, stop, std::chrono::nanoseconds(ns), [] { return false; });
    return !stop.stop_requested();
  }

  void Write(std::string_view text) {
    const auto ended = file_.Write(text);
    if (ended.has_value()) {
      complaints_.push_back(absl::StrCat("Samples of TCP connections end early: ", *ended));
    }
  }

  Clock* const clock_;
  ConnectionSampler sampler_;
  EvidenceFile file_;
  int64_t next_search_ns_ = 0;
  std::vector<std::string> complaints_;
  std::mutex sleeping_;
  std::condition_variable_any wake_;
};

int64_t ConnectionRecorder::PauseNs(int64_t cpu_ns, size_t bytes) {
  const int64_t wanted_ns = std::max(cpu_ns * kCpuShare, static_cast<int64_t>(bytes) * kNsPerByte);
  return std::clamp(wanted_ns, kRoundNs, kPauseMaxNs);
}

ConnectionRecorder::ConnectionRecorder(RuntimeDirectories directories, Clock* clock, Log* log,
                                       ConnectionSamplerOptions options)
    : directories_(std::move(directories)),
      clock_(clock),
      log_(log),
      options_(std::move(options)) {}

ConnectionRecorder::~ConnectionRecorder() = default;

void ConnectionRecorder::Find(const std::vector<uint32_t>& left_out) {
  const std::lock_guard lock(mutex_);
  left_out_ = left_out;
}

void ConnectionRecorder::Begin(const EvidenceWindow& window) {
  const std::lock_guard lock(mutex_);
  if (recording_id_ == window.recording_id || thread_.joinable()) return;
  recording_id_ = window.recording_id;
  run_ = std::make_unique<Run>(directories_, clock_, options_, left_out_);
  if (const absl::Status begun = run_->Begin(window); !begun.ok()) {
    log_->Failure("connections", begun);
    failure_ = absl::StrCat("No samples of TCP connections: ", begun.message());
    run_.reset();
    return;
  }
  thread_ = std::jthread([run = run_.get()](const std::stop_token& stop) { run->Work(stop); });
}

void ConnectionRecorder::End() {
  const std::lock_guard lock(mutex_);
  thread_.request_stop();
}

std::vector<v1::Complaint> ConnectionRecorder::Collect() {
  const std::lock_guard lock(mutex_);
  thread_ = {};  // it ends within a round
  std::vector<std::string> said;
  if (!failure_.empty()) said.push_back(std::exchange(failure_, {}));
  if (run_ != nullptr) {
    for (std::string& what : run_->TakeComplaints()) said.push_back(std::move(what));
  }
  run_.reset();
  recording_id_.clear();
  return Warnings(said,
                  "the rest of the recording is not affected; the report says less of the network");
}

}  // namespace syncline::agent

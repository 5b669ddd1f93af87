// SPDX-License-Identifier: Apache-2.0
#include "agent/connections/connection_recorder.h"

#include <algorithm>
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
class ConnectionRecorder::Run : public EvidenceRun {
 public:
  Run(const RuntimeDirectories& directories, Clock* clock, const ConnectionSamplerOptions& options,
      const std::vector<uint32_t>& left_out)
      : clock_(clock), sampler_(directories, clock, options) {
    sampler_.LeaveOut(left_out);
  }

  absl::Status Begin(const EvidenceWindow& window) override {
    SYNCLINE_RETURN_IF_ERROR(file_.Create(window.directory, evidence::kConnectionsFileName));
    std::string head;
    evidence::AppendConnectionsHead(&head);
    Write(head);
    return absl::OkStatus();
  }

  void Work(const std::stop_token& stop) override {
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

  void Fail(const absl::Status& status) override {
    complaints_.push_back(absl::StrCat("No samples of TCP connections: ", status.message()));
  }

  std::vector<v1::Complaint> TakeComplaints() override {
    for (std::string& what : sampler_.TakeComplaints()) complaints_.push_back(std::move(what));
    return Warnings(
        complaints_,
        "the rest of the recording is not affected; the report says less of the network");
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
};

int64_t ConnectionRecorder::PauseNs(int64_t cpu_ns, size_t bytes) {
  const int64_t wanted_ns = std::max(cpu_ns * kCpuShare, static_cast<int64_t>(bytes) * kNsPerByte);
  return std::clamp(wanted_ns, kRoundNs, kPauseMaxNs);
}

ConnectionRecorder::ConnectionRecorder(RuntimeDirectories directories, Clock* clock, Log* log,
                                       ConnectionSamplerOptions options)
    : ThreadedSource("connections", log),
      directories_(std::move(directories)),
      clock_(clock),
      options_(std::move(options)) {}

std::unique_ptr<EvidenceRun> ConnectionRecorder::MakeRun(const std::vector<uint32_t>& left_out) {
  return std::make_unique<Run>(directories_, clock_, options_, left_out);
}

}  // namespace syncline::agent

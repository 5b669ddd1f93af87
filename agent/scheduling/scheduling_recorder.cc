// SPDX-License-Identifier: Apache-2.0
#include "agent/scheduling/scheduling_recorder.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/evidence/evidence_file.h"
#include "common/status.h"
#include "evidence/code_samples.h"
#include "evidence/scheduling.h"
#include "evidence/write.h"

namespace syncline::agent {
namespace {

constexpr int64_t kPauseMinNs = 5'000'000;
constexpr int64_t kPauseFirstNs = 20'000'000;
constexpr int64_t kPauseMaxNs = 200'000'000;
constexpr int64_t kCpuShare = 20;  // one part in so many of a processor, at most
constexpr double kFull = 0.25;     // behind a pause: then the next one is shorter
constexpr double kEmpty = 0.06;
constexpr int64_t kAheadNs = 10'000'000;  // it takes some ms until all is watched
constexpr int64_t kThreadsNs = 500'000'000;
constexpr int64_t kSearchNs = 2'000'000'000;
constexpr int64_t kSearchShare = 500;  // searches take one part in so many of a processor at most

constexpr char kRefused[] = "The scheduler is not recorded: ";

// What to do about a refusal.
std::string AdviceFor(const absl::Status& status) {
  if (absl::IsNotFound(status)) return "mount -t tracefs nodev /sys/kernel/tracing";
  if (absl::IsPermissionDenied(status)) {
    return "run syncline-agent as root, or give it CAP_PERFMON and read access to "
           "/sys/kernel/tracing; in a container also allow perf_event_open (its seccomp profile)";
  }
  if (absl::IsResourceExhausted(status)) {
    return "give syncline-agent the capability CAP_IPC_LOCK, or raise kernel.perf_event_mlock_kb";
  }
  return "the rest of the recording is not affected";
}

}  // namespace

int64_t SchedulingRecorder::PauseNs(int64_t cpu_ns, double fullest, int64_t last_ns) {
  int64_t pause_ns = last_ns > 0 ? last_ns : kPauseFirstNs;
  if (fullest > kFull) pause_ns /= 2;
  if (fullest < kEmpty) pause_ns *= 2;
  pause_ns = std::clamp(pause_ns, kPauseMinNs, kPauseMaxNs);
  return std::max(pause_ns, cpu_ns * kCpuShare);
}

// One recording's.
class SchedulingRecorder::Run : public EvidenceRun {
 public:
  Run(const RuntimeDirectories& directories, Clock* clock, const SchedulingOptions& options)
      : clock_(clock),
        options_(options),
        sampler_(directories, clock, options.sampler),
        file_(options.bytes_max) {}

  void Find(const std::vector<uint32_t>& left_out) {
    const absl::Status allowed = options_.sampler.probe(options_.sampler.events);
    sampler_.LeaveOut(left_out);
    refused_ = !allowed.ok();
    if (refused_) Refuse(allowed);
  }

  absl::Status Begin(const EvidenceWindow& window) override {
    window_ = window;
    return file_.Create(window.directory, evidence::kSchedulingFileName);
  }

  void Work(const std::stop_token& stop) override {
    if (refused_) return WriteRefusal();
    const int64_t begin_cpu_ns = ThreadCpuNs();
    // Not earlier: one that is only prepared would hold descriptors and memory.
    if (const absl::Status opened = sampler_.Open(); !opened.ok()) {
      Refuse(opened);
      return WriteRefusal();
    }
    sampler_.FindProcesses();
    // Not before somebody starts: the kernel's events cost every thread of the machine.
    Wait(window_.start_raw_ns - kAheadNs - clock_->RawNs(), stop);
    sampler_.Begin();
    const int64_t end_ns = window_.length_ns > 0 && window_.start_raw_ns > 0
                               ? window_.start_raw_ns + window_.length_ns
                               : INT64_MAX;
    next_search_ns_ = clock_->RawNs() + kSearchNs;
    for (int64_t pause_ns = 0; !full_ && !stop.stop_requested() && clock_->RawNs() < end_ns;) {
      pause_ns = Round(pause_ns);
      Wait(std::min(pause_ns, end_ns - clock_->RawNs()), stop);
    }
    sampler_.End();
    std::string last = sampler_.TakeText();
    evidence::AppendCost(ThreadCpuNs() - begin_cpu_ns, &last);
    evidence::AppendEnd(&last);
    Write(last);
    file_.Close();
  }

  void Fail(const absl::Status& status) override {
    Complain(absl::StrCat(kRefused, status.message()));
  }

  std::vector<v1::Complaint> TakeComplaints() override {
    for (const std::string& what : sampler_.TakeComplaints()) {
      Complain(absl::StrCat("The scheduler: ", what));
    }
    return std::move(complaints_);
  }

 private:
  void Refuse(const absl::Status& why) {
    refusal_ = absl::StrCat(kRefused, why.message(), ": ", AdviceFor(why));
    Complain(absl::StrCat(kRefused, why.message()), AdviceFor(why));
  }

  // So that reports say it, too.
  void WriteRefusal() {
    std::string text;
    evidence::AppendSchedulingHead(clock_->MonotonicNs(), &text);
    evidence::AppendNote(refusal_, &text);
    evidence::AppendEnd(&text);
    Write(text);
    file_.Close();
  }

  // How long to wait until the next.
  int64_t Round(int64_t last_pause_ns) {
    const int64_t begin_cpu_ns = ThreadCpuNs();
    const int64_t now_ns = clock_->RawNs();
    int64_t search_cpu_ns = 0;
    if (now_ns >= next_search_ns_) {
      sampler_.Search();
      search_cpu_ns = ThreadCpuNs() - begin_cpu_ns;
      next_search_ns_ = now_ns + std::max(kSearchNs, search_cpu_ns * kSearchShare);
    } else if (now_ns >= next_threads_ns_) {
      sampler_.LookForThreads();
      search_cpu_ns = ThreadCpuNs() - begin_cpu_ns;
      next_threads_ns_ = now_ns + std::max(kThreadsNs, search_cpu_ns * kSearchShare);
    }
    const double fullest = sampler_.Drain();
    Write(sampler_.TakeText());
    return PauseNs(ThreadCpuNs() - begin_cpu_ns - search_cpu_ns, fullest, last_pause_ns);
  }

  void Write(std::string_view text) {
    const auto ended = file_.Write(text);
    full_ |= ended.has_value();
    if (ended.has_value()) Complain(absl::StrCat("The scheduler's record ends early: ", *ended));
  }

  void Complain(std::string what,
                const std::string& fix = "the rest of the recording is not affected") {
    v1::Complaint& complaint = complaints_.emplace_back();
    complaint.set_severity(v1::Complaint::WARNING);
    complaint.set_what(std::move(what));
    complaint.set_fix(fix);
  }

  Clock* const clock_;
  const SchedulingOptions options_;
  SchedulingSampler sampler_;
  EvidenceWindow window_;
  EvidenceFile file_;
  bool refused_ = false;
  bool full_ = false;  // the file
  std::string refusal_;
  int64_t next_threads_ns_ = 0;
  int64_t next_search_ns_ = 0;
  std::vector<v1::Complaint> complaints_;
};

SchedulingRecorder::SchedulingRecorder(RuntimeDirectories directories, Clock* clock, Log* log,
                                       SchedulingOptions options)
    : ThreadedSource("scheduling", log),
      directories_(std::move(directories)),
      clock_(clock),
      options_(std::move(options)) {}

v1::EvidenceOffer SchedulingRecorder::Offer() const {
  v1::EvidenceOffer offer;
  offer.set_option("--scheduling");
  const absl::Status allowed = options_.sampler.probe(options_.sampler.events);
  if (allowed.ok()) {
    offer.set_extent("all threads");
  } else {
    offer.set_problem(std::string(allowed.message()));
    offer.set_fix(AdviceFor(allowed));
  }
  return offer;
}

std::unique_ptr<EvidenceRun> SchedulingRecorder::MakeRun(const std::vector<uint32_t>& left_out) {
  auto run = std::make_unique<Run>(directories_, clock_, options_);
  run->Find(left_out);
  return run;
}

}  // namespace syncline::agent

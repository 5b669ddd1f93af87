// SPDX-License-Identifier: Apache-2.0
#include "agent/code/code_recorder.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/evidence/evidence_file.h"
#include "common/files.h"
#include "common/status.h"
#include "evidence/code_samples.h"
#include "evidence/write.h"

namespace syncline::agent {
namespace {

constexpr int64_t kDrainNs = 100'000'000;  // a ring holds 0.8 s
constexpr int64_t kThreadsNs = 500'000'000;
constexpr int64_t kSearchNs = 2'000'000'000;
constexpr int64_t kSearchShare = 500;  // searches take one part in so many of a processor at most

constexpr char kSampleFix[] =
    "sysctl kernel.perf_event_paranoid=2, or give syncline-agent the capability CAP_PERFMON; in a "
    "container also allow perf_event_open (its seccomp profile)";
constexpr char kSeeAllFix[] =
    "sysctl kernel.perf_event_paranoid=1, or give syncline-agent the capability CAP_PERFMON";

std::string ParanoidText(const std::filesystem::path& proc) {
  auto text = ReadFile(proc / "sys" / "kernel" / "perf_event_paranoid");
  if (!text.ok()) return "";
  return absl::StrCat(" (kernel.perf_event_paranoid is ", absl::StripAsciiWhitespace(*text), ")");
}

// At most half of what the agent may have open, one for each thread and two more for half of them:
// it needs the rest for gates, calls and LTTng.
CodeOptions Completed(CodeOptions options) {
  options.sampler.measure_cost = true;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return options;
  const auto files = static_cast<size_t>(limit.rlim_cur);
  options.sampler.threads_max = std::min(options.sampler.threads_max, files / 4);
  return options;
}

struct Fault {
  std::string what;
  std::string fix = "the rest of the recording is not affected";
};

}  // namespace

// One recording's.
class CodeRecorder::Run : public EvidenceRun {
 public:
  Run(const RuntimeDirectories& directories, Clock* clock, const CodeOptions& options)
      : clock_(clock),
        options_(options),
        sampler_(directories, clock, options.open, options.sampler, options.open_software),
        file_(options.bytes_max) {}

  void Find(const std::vector<uint32_t>& left_out) {
    const absl::Status allowed = sampler_.Probe();
    if (!allowed.ok()) {
      faults_.push_back({absl::StrCat("No code is sampled: the kernel refuses it",
                                      ParanoidText(options_.sampler.proc), ": ", allowed.message()),
                         kSampleFix});
      refused_ = true;
      return;
    }
    sampler_.LeaveOut(left_out);
  }

  absl::Status Begin(const EvidenceWindow& window) override {
    SYNCLINE_RETURN_IF_ERROR(file_.Create(window.directory, evidence::kCodeFileName));
    window_ = window;
    return absl::OkStatus();
  }

  void Work(const std::stop_token& stop) override {
    if (!refused_) Sample(stop);
    std::string last;
    for (const Fault& fault : faults_) {
      if (refused_) evidence::AppendNote(fault.what, &last);
    }
    Write(sampler_.TakeText());
    if (!refused_) NameFrames();
    evidence::AppendEnd(&last);
    Write(last);
    file_.Close();
  }

  void Fail(const absl::Status& status) override {
    faults_.push_back({absl::StrCat("No code is sampled: ", status.message())});
  }

  std::vector<v1::Complaint> TakeComplaints() override {
    for (std::string& what : sampler_.TakeComplaints()) {
      faults_.push_back({absl::StrCat("Code samples: ", what)});
    }
    std::vector<v1::Complaint> complaints;
    for (const Fault& fault : faults_) {
      v1::Complaint& complaint = complaints.emplace_back();
      complaint.set_severity(v1::Complaint::WARNING);
      complaint.set_what(fault.what);
      complaint.set_fix(fault.fix);
    }
    return complaints;
  }

 private:
  void Sample(const std::stop_token& stop) {
    // Not before somebody starts: one that is only prepared would hold descriptors and memory.
    sampler_.Search();
    Wait(window_.start_raw_ns - clock_->RawNs(), stop);
    const int64_t begin_cpu_ns = ThreadCpuNs();
    sampler_.Enable();
    int64_t next_threads_ns = 0;
    int64_t next_search_ns = clock_->RawNs() + kSearchNs;
    const int64_t end_ns = window_.length_ns > 0 && window_.start_raw_ns > 0
                               ? window_.start_raw_ns + window_.length_ns
                               : INT64_MAX;
    while (!stop.stop_requested()) {
      const int64_t now_ns = clock_->RawNs();
      if (now_ns >= end_ns) break;
      if (now_ns >= next_search_ns) {
        const int64_t search_cpu_ns = ThreadCpuNs();
        sampler_.Search();
        next_search_ns =
            now_ns + std::max(kSearchNs, (ThreadCpuNs() - search_cpu_ns) * kSearchShare);
      } else if (now_ns >= next_threads_ns) {
        sampler_.LookForThreads();
        next_threads_ns = now_ns + kThreadsNs;
      }
      sampler_.Drain();
      Write(sampler_.TakeText());
      Wait(std::min(kDrainNs, end_ns - clock_->RawNs()), stop);
    }
    sampler_.Disable();
    std::string cost;
    evidence::AppendCost(ThreadCpuNs() - begin_cpu_ns, &cost);
    Write(sampler_.TakeText());
    Write(cost);
  }

  void NameFrames() {
    const FoundSymbols found = FindSymbols(sampler_.table(), options_.symbols);
    Write(found.text);
    auto kallsyms = ReadFile(options_.sampler.proc / "kallsyms");
    if (kallsyms.ok()) Write(KernelSymbols(sampler_.table(), *kallsyms));
    if (found.in_time) return;
    std::string note;
    evidence::AppendNote(
        "there was no time to find the names of all functions and lines: addresses stand for them",
        &note);
    Write(note);
  }

  void Write(std::string_view text) {
    const auto ended = file_.Write(text);
    if (ended.has_value()) faults_.push_back({absl::StrCat("Code samples end early: ", *ended)});
  }

  Clock* const clock_;
  const CodeOptions options_;
  CodeSampler sampler_;
  EvidenceWindow window_;
  EvidenceFile file_;
  bool refused_ = false;
  std::vector<Fault> faults_;
};

CodeRecorder::CodeRecorder(RuntimeDirectories directories, Clock* clock, Log* log,
                           CodeOptions options)
    : ThreadedSource("code samples", log),
      directories_(std::move(directories)),
      clock_(clock),
      options_(Completed(std::move(options))) {}

v1::EvidenceOffer CodeRecorder::Offer() const {
  v1::EvidenceOffer offer;
  offer.set_option("--samples");
  if (options_.open(0, true).ok()) {
    offer.set_extent("programs and the kernel");
    return offer;
  }
  const absl::Status refused = options_.open(0, false).status();
  if (refused.ok()) offer.set_extent("programs, without what the kernel does for them");
  offer.set_problem(absl::StrCat(refused.ok()
                                     ? "the kernel hides itself"
                                     : absl::StrCat("the kernel refuses it: ", refused.message()),
                                 ParanoidText(options_.sampler.proc)));
  offer.set_fix(refused.ok() ? kSeeAllFix : kSampleFix);
  return offer;
}

std::unique_ptr<EvidenceRun> CodeRecorder::MakeRun(const std::vector<uint32_t>& left_out) {
  auto run = std::make_unique<Run>(directories_, clock_, options_);
  run->Find(left_out);
  return run;
}

}  // namespace syncline::agent

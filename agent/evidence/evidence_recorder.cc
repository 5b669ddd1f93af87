#include "agent/evidence/evidence_recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "evidence/write.h"

namespace syncline::agent {
namespace {

constexpr int64_t kSearchNs = 2'000'000'000;
constexpr int64_t kMeasureNs = 1'000'000'000;  // the rate is looked at so often
constexpr int kGapPeriods = 2;

// Processor time of the calling thread.
int64_t OwnCpuNs() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

SamplerOptions Completed(SamplerOptions options) {
  if (options.own_pid == 0) options.own_pid = ::getpid();
  const long ticks = ::sysconf(_SC_CLK_TCK);
  if (ticks > 0) options.ticks_per_second = ticks;
  return options;
}

}  // namespace

bool SampleRate::Measured(int64_t cpu_ns, int64_t elapsed_ns) {
  // Half of what everything may take is for searches.
  if (cpu_ns * 2 * kShareMin <= elapsed_ns || period_ns_ >= kSlowestNs) return false;
  period_ns_ = std::min(period_ns_ * 2, kSlowestNs);
  return true;
}

int64_t SampleRate::SearchPauseNs(int64_t search_cpu_ns) {
  return std::max(kSearchNs, search_cpu_ns * 2 * kShareMin);
}

EvidenceRecorder::EvidenceRecorder(RuntimeDirectories directories, Clock* clock, Log* log,
                                   EvidenceOptions options)
    : directories_(std::move(directories)),
      clock_(clock),
      log_(log),
      options_{Completed(options.sampler), options.bytes_max} {}

EvidenceRecorder::~EvidenceRecorder() {
  thread_ = {};
  if (fd_ >= 0) ::close(fd_);
}

// Who is busy, only a second search can tell.
void EvidenceRecorder::Find() {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable()) return;
  sampler_ = std::make_unique<Sampler>(directories_, clock_, options_.sampler);
  sampler_->Search();
}

void EvidenceRecorder::Begin(const EvidenceWindow& window) {
  const std::lock_guard lock(mutex_);
  if (recording_id_ == window.recording_id || thread_.joinable()) return;
  recording_id_ = window.recording_id;
  complaints_.clear();
  bytes_ = 0;
  full_ = false;
  rate_ = SampleRate();
  rounds_cpu_ns_ = 0;
  if (sampler_ == nullptr) {
    sampler_ = std::make_unique<Sampler>(directories_, clock_, options_.sampler);
  }
  const std::filesystem::path directory = window.directory / "evidence";
  const std::filesystem::path file = directory / evidence::kFileName;
  absl::Status made = MakeDirectories(directory, 0700);
  if (made.ok()) {
    fd_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd_ < 0) made = ErrnoStatus(errno, absl::StrCat("Cannot make \"", file.string(), "\""));
  }
  if (!made.ok()) {
    log_->Failure("evidence", made);
    complaints_.push_back(
        absl::StrCat("No samples of processor time: ", std::string(made.message())));
    return;
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

void EvidenceRecorder::End() {
  const std::lock_guard lock(mutex_);
  thread_.request_stop();
}

std::vector<v1::Complaint> EvidenceRecorder::Collect() {
  const std::lock_guard lock(mutex_);
  thread_ = {};  // it ends within a round
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  sampler_.reset();
  recording_id_.clear();
  std::vector<v1::Complaint> complaints;
  for (const std::string& what : std::exchange(complaints_, {})) {
    v1::Complaint& complaint = complaints.emplace_back();
    complaint.set_severity(v1::Complaint::WARNING);
    complaint.set_what(what);
    complaint.set_fix(
        "the rest of the recording is not touched by it; `syncline why` names fewer "
        "causes");
  }
  return complaints;
}

void EvidenceRecorder::Search() {
  const int64_t begin_ns = OwnCpuNs();
  sampler_->Search();
  next_search_ns_ = clock_->MonotonicNs() + SampleRate::SearchPauseNs(OwnCpuNs() - begin_ns);
}

void EvidenceRecorder::AdaptRate(int64_t now_ns) {
  const int64_t elapsed_ns = now_ns - measured_since_ns_;
  if (elapsed_ns < kMeasureNs) return;
  const int64_t cpu_ns = std::exchange(rounds_cpu_ns_, 0);
  measured_since_ns_ = now_ns;
  if (!rate_.Measured(cpu_ns, elapsed_ns)) return;
  const std::string reason = "sampling would take more than 1 % of a processor";
  std::string line;
  evidence::Append(evidence::Rate{now_ns, rate_.period_ns(), reason}, &line);
  Write(std::move(line));
  if (complaints_.empty()) {
    complaints_.push_back(absl::StrCat("Processor time is sampled less often, each ",
                                       rate_.period_ns() / 1'000'000, " ms: ", reason));
  }
}

void EvidenceRecorder::Run(const std::stop_token& stop) {
  std::mutex sleeping;
  std::condition_variable_any wake;
  std::string head;
  evidence::AppendHead(&head);
  Write(std::move(head));
  Search();
  int64_t now_ns = clock_->MonotonicNs();
  measured_since_ns_ = now_ns;
  std::string first_rate;
  evidence::Append(evidence::Rate{now_ns, rate_.period_ns(), ""}, &first_rate);
  Write(sampler_->TakeText() + first_rate);
  int64_t before_ns = now_ns;
  while (!stop.stop_requested()) {
    now_ns = clock_->MonotonicNs();
    if (now_ns - before_ns > kGapPeriods * rate_.period_ns()) {
      std::string gap;
      evidence::Append(evidence::Gap{before_ns, now_ns}, &gap);
      Write(std::move(gap));
    }
    const int64_t begin_cpu_ns = OwnCpuNs();
    sampler_->Round();
    Write(sampler_->TakeText());
    rounds_cpu_ns_ += OwnCpuNs() - begin_cpu_ns;
    before_ns = now_ns;
    if (now_ns >= next_search_ns_) {
      Search();
      Write(sampler_->TakeText());
    }
    AdaptRate(now_ns);
    const int64_t wait_ns = now_ns + rate_.period_ns() - clock_->MonotonicNs();
    std::unique_lock lock(sleeping);
    wake.wait_for(lock, stop, std::chrono::nanoseconds(std::max<int64_t>(wait_ns, 1'000'000)),
                  [] { return false; });
  }
  sampler_->Round();  // what grew until the end
  std::string last = sampler_->TakeText();
  evidence::AppendEnd(&last);
  Write(std::move(last));
}

void EvidenceRecorder::Write(std::string text) {
  if (full_) return;
  if (bytes_ + text.size() > options_.bytes_max) {
    full_ = true;
    complaints_.push_back("Samples of processor time end early: their file has reached 256 MiB");
    return;
  }
  for (std::string_view left = text; !left.empty();) {
    const ssize_t written = ::write(fd_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      full_ = true;
      complaints_.push_back(
          absl::StrCat("Samples of processor time end early: they cannot be "
                       "written (",
                       std::strerror(errno), ")"));
      return;
    }
    left.remove_prefix(static_cast<size_t>(written));
    bytes_ += static_cast<uint64_t>(written);
  }
}

}  // namespace syncline::agent

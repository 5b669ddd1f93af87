// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/sampling.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

int64_t ThreadCpuNs() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// The agent needs descriptors for its gates, its calls and LTTng: at most a quarter of what it may
// have open is for threads, which take two each, and an eighth for groups, which take three.
void LimitFiles(SamplerOptions* options) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const auto files = static_cast<size_t>(limit.rlim_cur);
  options->threads_max = std::min(options->threads_max, files / 8);
  options->groups_max = std::min(options->groups_max, files / 24);
}

EvidenceOptions Completed(EvidenceOptions options) {
  if (options.sampler.own_pid == 0) options.sampler.own_pid = ::getpid();
  const long ticks = ::sysconf(_SC_CLK_TCK);
  if (ticks > 0) options.sampler.ticks_per_second = ticks;
  if (!options.thread_cpu_ns) options.thread_cpu_ns = ThreadCpuNs;
  LimitFiles(&options.sampler);
  return options;
}

}  // namespace

bool SampleRate::Measured(int64_t cpu_ns, int64_t elapsed_ns) {
  // Half of what everything may take is for searches.
  const int64_t before_ns = period_ns_;
  const int64_t allowed_ns = elapsed_ns / (2 * kShareMin);
  if (cpu_ns > allowed_ns) {
    period_ns_ = std::min(period_ns_ * 2, kSlowestNs);
  } else if (2 * cpu_ns < allowed_ns * 2 / 3) {
    period_ns_ = std::max(period_ns_ / 2, kUsualNs);
  }
  slowest_ns_ = std::max(slowest_ns_, period_ns_);
  return period_ns_ != before_ns;
}

int64_t SampleRate::SearchPauseNs(int64_t search_cpu_ns) {
  return std::max(kSearchNs, search_cpu_ns * 2 * kShareMin);
}

Sampling::Sampling(RuntimeDirectories directories, Clock* clock, EvidenceOptions options)
    : clock_(clock),
      options_(Completed(std::move(options))),
      sampler_(std::move(directories), clock, options_.sampler) {}

Sampling::~Sampling() {
  if (fd_ >= 0) ::close(fd_);
}

void Sampling::Find() {
  sampler_.Search();
  searched_ = true;
}

absl::Status Sampling::Begin(const std::filesystem::path& directory) {
  if (absl::Status made = MakeDirectories(directory, 0700); !made.ok()) return made;
  const std::filesystem::path file = directory / evidence::kFileName;
  fd_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd_ < 0) return ErrnoStatus(errno, absl::StrCat("Cannot create \"", file.string(), "\""));
  if (!searched_) Find();
  before_ns_ = measured_since_ns_ = clock_->MonotonicNs();
  std::string text;
  evidence::AppendHead(&text);
  evidence::Append(evidence::Rate{before_ns_, rate_.period_ns(), ""}, &text);
  Write(text);
  Sample();
  // next_search_ns_ is 0: who has become busy since Find, the next round looks for.
  return absl::OkStatus();
}

int64_t Sampling::Round() {
  const int64_t now_ns = clock_->MonotonicNs();
  if (now_ns - before_ns_ > kGapPeriods * rate_.period_ns()) {
    std::string gap;
    evidence::Append(evidence::Gap{before_ns_, now_ns}, &gap);
    Write(gap);
  }
  before_ns_ = now_ns;
  Sample();
  if (now_ns >= next_search_ns_) Search();
  AdaptRate(now_ns);
  return now_ns + rate_.period_ns() - clock_->MonotonicNs();
}

void Sampling::Sample() {
  const int64_t begin_cpu_ns = options_.thread_cpu_ns();
  sampler_.Round();
  Write(sampler_.TakeText());
  rounds_cpu_ns_ += options_.thread_cpu_ns() - begin_cpu_ns;
}

void Sampling::Search() {
  const int64_t begin_cpu_ns = options_.thread_cpu_ns();
  sampler_.Search();
  Write(sampler_.TakeText());
  next_search_ns_ =
      clock_->MonotonicNs() + SampleRate::SearchPauseNs(options_.thread_cpu_ns() - begin_cpu_ns);
}

void Sampling::AdaptRate(int64_t now_ns) {
  const int64_t elapsed_ns = now_ns - measured_since_ns_;
  if (elapsed_ns < kMeasureNs) return;
  const int64_t cpu_ns = std::exchange(rounds_cpu_ns_, 0);
  measured_since_ns_ = now_ns;
  if (!rate_.Measured(cpu_ns, elapsed_ns)) return;
  const bool usual = rate_.period_ns() == SampleRate::kUsualNs;
  std::string line;
  evidence::Append(evidence::Rate{now_ns, rate_.period_ns(),
                                  usual ? "" : "more would take over 1 % of a processor"},
                   &line);
  Write(line);
}

void Sampling::End() {
  if (fd_ < 0) return;
  sampler_.Round();  // what grew until the end
  std::string last = sampler_.TakeText();
  evidence::AppendEnd(&last);
  Write(last);
  ::close(std::exchange(fd_, -1));
}

std::vector<std::string> Sampling::TakeComplaints() {
  std::vector<std::string> complaints = std::exchange(complaints_, {});
  if (rate_.slowest_ns() != SampleRate::kUsualNs) {
    complaints.push_back(absl::StrCat("Processor time was sampled less often, every ",
                                      rate_.slowest_ns() / 1'000'000,
                                      " ms at times: more would have taken over 1 % of a "
                                      "processor"));
  }
  for (std::string& what : sampler_.TakeComplaints()) complaints.push_back(std::move(what));
  return complaints;
}

void Sampling::Write(std::string_view text) {
  if (stopped_ || fd_ < 0) return;
  if (bytes_ + text.size() > options_.bytes_max) {
    std::string note;
    evidence::AppendNote("the file has reached its size limit: sampling ends here", &note);
    text = {};
    Stop(absl::StrCat("their file has reached ", options_.bytes_max >> 20, " MiB"));
    if (::write(fd_, note.data(), note.size()) < 0) return;
  }
  while (!text.empty()) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Stop(absl::StrCat("they cannot be written: ", std::strerror(errno)));
    text.remove_prefix(static_cast<size_t>(written));
    bytes_ += static_cast<uint64_t>(written);
  }
}

void Sampling::Stop(const std::string& why) {
  stopped_ = true;
  complaints_.push_back(absl::StrCat("Samples of processor time end early: ", why));
}

}  // namespace syncline::agent

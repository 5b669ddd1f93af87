// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/sampling.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/evidence/page_cost.h"
#include "common/status.h"
#include "evidence/write.h"

namespace syncline::agent {
namespace {

constexpr int64_t kSearchNs = 2'000'000'000;
constexpr int64_t kMeasureNs = 1'000'000'000;  // the rate is looked at so often

// The agent needs descriptors for its gates, its calls and LTTng: at most a quarter of what it may
// have open is for threads, which take two each, and an eighth for groups, which take three. Each
// recorded process takes two more, and each of the busiest others one.
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
  if (!options.page_ns) options.page_ns = MeasurePageNs;
  LimitFiles(&options.sampler);
  return options;
}

}  // namespace

bool SampleRate::Measured(int64_t cpu_ns, int64_t elapsed_ns) {
  // A quarter of what everything may take is for searches.
  const int64_t before_ns = period_ns_;
  const int64_t allowed_ns = elapsed_ns * 3 / (4 * kShareMin);
  if (cpu_ns > allowed_ns) {
    period_ns_ = std::min(period_ns_ * 2, kSlowestNs);
  } else if (2 * cpu_ns < allowed_ns * 2 / 3) {
    period_ns_ = std::max(period_ns_ / 2, kUsualNs);
  }
  slowest_ns_ = std::max(slowest_ns_, period_ns_);
  return period_ns_ != before_ns;
}

int64_t SampleRate::SearchPauseNs(int64_t search_cpu_ns) {
  return std::max(kSearchNs, search_cpu_ns * 4 * kShareMin);
}

Sampling::Sampling(RuntimeDirectories directories, Clock* clock, EvidenceOptions options)
    : clock_(clock),
      options_(Completed(std::move(options))),
      sampler_(std::move(directories), clock, options_.sampler),
      file_(options_.bytes_max) {}

void Sampling::Find() {
  sampler_.Search();
  searched_ = true;
}

absl::Status Sampling::Begin(const std::filesystem::path& recording) {
  SYNCLINE_RETURN_IF_ERROR(file_.Create(recording, evidence::kFileName));
  if (!searched_) Find();
  before_ns_ = measured_since_ns_ = clock_->MonotonicNs();
  due_ns_ = before_ns_ + rate_.period_ns();
  std::string text;
  evidence::AppendHead(&text);
  evidence::Append(evidence::Rate{before_ns_, rate_.period_ns(), ""}, &text);
  if (const int64_t page_ns = options_.page_ns(); page_ns > 0) {
    evidence::AppendPageCost(page_ns, &text);
  }
  Write(text);
  Sample();
  // next_search_ns_ is 0: who has become busy since Find, the next round looks for.
  return absl::OkStatus();
}

int64_t Sampling::Round() {
  const int64_t now_ns = clock_->MonotonicNs();
  if (now_ns > due_ns_ + rate_.period_ns()) {
    std::string gap;
    evidence::Append(evidence::Gap{before_ns_, now_ns}, &gap);
    Write(gap);
  }
  before_ns_ = now_ns;
  Sample();
  if (now_ns >= next_search_ns_) Search();
  AdaptRate(now_ns);
  due_ns_ = now_ns + NextPauseNs();
  return due_ns_ - clock_->MonotonicNs();
}

// From half a period to one and a half: a program whose steps are as long as the period is not
// found at the same place in each of them.
int64_t Sampling::NextPauseNs() {
  const int64_t period_ns = rate_.period_ns();
  return std::uniform_int_distribution(period_ns / 2, period_ns + period_ns / 2)(random_);
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
  if (!file_.is_open()) return;
  sampler_.Round();  // what grew until the end
  std::string last = sampler_.TakeText();
  evidence::AppendEnd(&last);
  Write(last);
  file_.Close();
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
  const auto ended = file_.Write(text);
  if (ended.has_value()) {
    complaints_.push_back(absl::StrCat("Samples of processor time end early: ", *ended));
  }
}

}  // namespace syncline::agent

// SPDX-License-Identifier: Apache-2.0
#include "coordinator/clocks/prober.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "common/files.h"
#include "common/status.h"
#include "coordinator/clocks/sample_log.h"
#include "coordinator/recording/recording.h"

namespace syncline::clocks {
namespace {

constexpr int kExchangesPerBurst = 8;
constexpr int64_t kMillisecondNs = 1'000'000;
constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kQuickPeriodNs = 100 * kMillisecondNs;
constexpr int64_t kSteadyPeriodNs = kSecondNs;
constexpr int64_t kQuickAtFirstNs = 5 * kSecondNs;
// A burst costs the coordinator about 0.5 ms (guess: 8 round trips of 60 us): large fleets are
// probed less often, so that probing takes at most half of one core.
constexpr int64_t kBurstCostNs = kMillisecondNs;
constexpr int64_t kReconnectNs = kSecondNs;
// Of a node: eight minutes at the steady rate, 160 kB.
constexpr ptrdiff_t kInMemoryMax = 4'096;

}  // namespace

struct Prober::News {
  std::mutex mutex;
  std::condition_variable_any changed;
  // The waiter checks under the mutex, so that a change between check and wait is not missed.
  void Tell() {
    const std::lock_guard<std::mutex> lock(mutex);
    changed.notify_all();
  }
};

class Prober::Probe {
 public:
  Probe(ProbeTarget target, size_t fleet_size, host::Clock* clock, News* news)
      : target_(std::move(target)),
        clock_(*clock),
        news_(*news),
        period_min_ns_(static_cast<int64_t>(fleet_size) * kBurstCostNs),
        quick_until_ns_(clock->RawNs() + kQuickAtFirstNs),
        log_(target_.samples_path, recording::kCoordinatorName, target_.node) {
    edge_.local = recording::kCoordinatorName;
    edge_.remote = target_.node;
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }

  void Hurry(int64_t ns) { quick_until_ns_ = clock_.RawNs() + ns; }

  void RequestStop() {
    thread_.request_stop();
    abandoned_ = true;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stream_ != nullptr) stream_->Cancel();
  }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }

  // Nothing better is to be awaited.
  bool Settled(uint64_t samples) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return abandoned_ || !status_.ok() || taken_ >= samples;
  }
  uint64_t SampleCount() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return taken_;
  }
  clocksync::Edge Edge() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return edge_;
  }
  absl::Status Status() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return status_;
  }

 private:
  void Run(const std::stop_token& stop) {
    Note(log_.Append({}));
    while (!stop.stop_requested()) {
      const absl::Status ended = Session(stop);
      if (stop.stop_requested()) return;
      Note(ended);
      clock_.Wait(kReconnectNs, stop);
    }
  }

  // One connection, until it breaks or the probing ends.
  absl::Status Session(const std::stop_token& stop) {
    absl::StatusOr<std::unique_ptr<fleet::ClockStream>> stream = target_.client->OpenClockStream();
    if (!stream.ok()) return stream.status();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stream_ = std::move(*stream);
      if (stop.stop_requested()) stream_->Cancel();
    }
    absl::Status status;
    while (status.ok() && !stop.stop_requested()) {
      status = Burst(stop);
      if (status.ok()) clock_.Wait(PeriodNs(), stop);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    stream_.reset();
    return status;
  }

  absl::Status Burst(const std::stop_token& stop) {
    std::vector<clocksync::ProbeSample> samples;
    absl::Status status;
    for (int i = 0; i < kExchangesPerBurst && !stop.stop_requested(); ++i) {
      const absl::StatusOr<fleet::ClockStream::Exchange> exchange =
          stream_->Probe(++sequence_number_);
      if (!exchange.ok()) {
        status = exchange.status();
        break;
      }
      samples.push_back(
          {.t1_local_ns = exchange->sent_raw_ns,
           .t2_remote_ns = static_cast<int64_t>(exchange->reply.t2_monotonic_raw_ns()),
           .t3_remote_ns = static_cast<int64_t>(exchange->reply.t3_monotonic_raw_ns()),
           .t4_local_ns = exchange->received_raw_ns,
           .source = clocksync::StampSource::kGrpc});
    }
    Note(log_.Append(samples));
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      std::vector<clocksync::ProbeSample>& kept = edge_.samples;
      if (std::ssize(kept) >= kInMemoryMax)
        kept.erase(kept.begin(), kept.begin() + kInMemoryMax / 2);
      kept.insert(kept.end(), samples.begin(), samples.end());
      taken_ += samples.size();
    }
    news_.Tell();
    return status;
  }

  int64_t PeriodNs() {
    const int64_t now_ns = clock_.RawNs();
    const int64_t base =
        std::max(period_min_ns_, now_ns < quick_until_ns_ ? kQuickPeriodNs : kSteadyPeriodNs);
    // Up to a quarter more, by the clock's own low digits: bursts of a fleet do not march in step.
    return base + (now_ns / 7 % 1000) * base / 4000;
  }

  void Note(const absl::Status& status) {
    if (status.ok()) return;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      status_ = status;
    }
    news_.Tell();
  }

  const ProbeTarget target_;
  host::Clock& clock_;
  News& news_;
  const int64_t period_min_ns_;
  std::atomic<int64_t> quick_until_ns_;
  std::atomic<bool> abandoned_{false};
  SampleLog log_;                 // the thread's own
  uint64_t sequence_number_ = 0;  // the thread's own
  mutable std::mutex mutex_;
  std::unique_ptr<fleet::ClockStream>
      stream_;            // replaced under mutex_; Probe() by the thread alone
  clocksync::Edge edge_;  // guarded by mutex_; the newest samples
  uint64_t taken_ = 0;    // guarded by mutex_
  absl::Status status_;   // guarded by mutex_
  std::jthread thread_;   // last: it uses the others
};

Prober::Prober(std::vector<ProbeTarget> targets, host::Clock* clock)
    : news_(std::make_unique<News>()) {
  const size_t count = targets.size();
  probes_.reserve(count);
  for (ProbeTarget& target : targets) {
    probes_.push_back(std::make_unique<Probe>(std::move(target), count, clock, news_.get()));
  }
}

Prober::~Prober() { Stop(); }

void Prober::Await(uint64_t samples, std::chrono::milliseconds patience,
                   const std::stop_token& stop) {
  std::unique_lock<std::mutex> lock(news_->mutex);
  news_->changed.wait_for(lock, stop, patience, [&] {
    return std::all_of(probes_.begin(), probes_.end(),
                       [&](const auto& probe) { return probe->Settled(samples); });
  });
}

void Prober::Hurry(int64_t ns) {
  for (const auto& probe : probes_) probe->Hurry(ns);
}

void Prober::Stop() {
  for (const auto& probe : probes_) probe->RequestStop();
  for (const auto& probe : probes_) probe->Join();
}

void Prober::Abandon(size_t index) {
  probes_[index]->RequestStop();
  probes_[index]->Join();
}

uint64_t Prober::SampleCount(size_t index) const { return probes_[index]->SampleCount(); }
clocksync::Edge Prober::EdgeOf(size_t index) const { return probes_[index]->Edge(); }
absl::Status Prober::StatusOf(size_t index) const { return probes_[index]->Status(); }

}  // namespace syncline::clocks

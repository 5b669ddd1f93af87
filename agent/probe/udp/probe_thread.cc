// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/probe_thread.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/status.h"

namespace syncline::probe {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
// So that a deadline computed in RAW is not missed by long when the clocks disagree.
constexpr int64_t kWaitNsMax = kNsPerSecond;

}  // namespace

absl::StatusOr<std::unique_ptr<ProbeThread>> ProbeThread::Start(const Options& options,
                                                                SampleSink sink) {
  std::unique_ptr<ProbeThread> probe(new ProbeThread());
  probe->clock_ = std::make_unique<SystemProbeClock>();
  SYNCLINE_ASSIGN_OR_RETURN(
      probe->socket_, UdpSocket::Open(options.listen, options.kernel_stamps, probe->clock_.get()));
  SYNCLINE_ASSIGN_OR_RETURN(probe->address_, probe->socket_->LocalAddress());
  probe->wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (probe->wake_ < 0) return ErrnoStatus(errno, "Cannot create an eventfd for clock probes");
  probe->endpoint_ =
      std::make_unique<Endpoint>(probe->clock_.get(), probe->socket_.get(), std::move(sink));
  probe->thread_ = std::jthread([p = probe.get()](const std::stop_token& stop) { p->Loop(stop); });
  return probe;
}

ProbeThread::~ProbeThread() {
  thread_.request_stop();
  Wake();
  thread_ = {};
  if (wake_ >= 0) ::close(wake_);
}

absl::Status ProbeThread::AddPlan(const ProbePlan& plan) {
  absl::Status status;
  {
    const std::lock_guard lock(mutex_);
    status = endpoint_->AddPlan(plan);
  }
  Wake();
  return status;
}

void ProbeThread::RemovePlan(uint64_t plan_id) {
  const std::lock_guard lock(mutex_);
  endpoint_->RemovePlan(plan_id);
}

void ProbeThread::Hurry(uint64_t plan_id, int64_t duration_ns) {
  {
    const std::lock_guard lock(mutex_);
    endpoint_->Hurry(plan_id, duration_ns);
  }
  Wake();
}

std::vector<EdgeStatus> ProbeThread::Status() const {
  const std::lock_guard lock(mutex_);
  return endpoint_->Status();
}

ProbeCounters ProbeThread::counters() const {
  const std::lock_guard lock(mutex_);
  return endpoint_->counters();
}

int64_t ProbeThread::CpuNs() const {
  clockid_t clock;
  timespec time{};
  auto handle = const_cast<std::jthread&>(thread_).native_handle();
  if (::pthread_getcpuclockid(handle, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return int64_t{time.tv_sec} * kNsPerSecond + time.tv_nsec;
}

void ProbeThread::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
}

void ProbeThread::Loop(const std::stop_token& stop) {
  // Timers of ordinary threads are late by 50 us, the spacing of a burst.
  ::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  ::pthread_setname_np(::pthread_self(), "clock-probe");
  while (!stop.stop_requested()) {
    const bool anything = Drain();
    int64_t next = 0;
    int64_t spin_until = 0;
    {
      const std::lock_guard lock(mutex_);
      next = endpoint_->OnTime();
      spin_until = endpoint_->spin_until_raw_ns();
    }
    if (!anything && clock_->RawNs() >= spin_until) Wait(next);
  }
}

bool ProbeThread::Drain() {
  bool anything = false;
  while (const auto stamp = socket_->NextTransmitStamp()) {
    const std::lock_guard lock(mutex_);
    endpoint_->OnTransmitStamp(*stamp);
    anything = true;
  }
  // One packet at a time: its answer must not wait for those behind it.
  if (const auto packet = socket_->Receive()) {
    const std::lock_guard lock(mutex_);
    endpoint_->OnReceive(*packet);
    anything = true;
  }
  return anything;
}

void ProbeThread::Wait(int64_t until_raw_ns) {
  const int64_t wait_ns = std::clamp<int64_t>(until_raw_ns - clock_->RawNs(), 0, kWaitNsMax);
  const timespec timeout{.tv_sec = wait_ns / kNsPerSecond, .tv_nsec = wait_ns % kNsPerSecond};
  pollfd files[] = {{.fd = socket_->fd(), .events = POLLIN}, {.fd = wake_, .events = POLLIN}};
  if (::ppoll(files, 2, &timeout, nullptr) <= 0) return;
  if (files[1].revents != 0) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake_, &count, sizeof count);
  }
}

}  // namespace syncline::probe

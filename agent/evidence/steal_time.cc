// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/steal_time.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace syncline::agent {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kPauseNs = 450'000'000;
constexpr int64_t kPausePerReading = 400;       // times as long as a reading took
constexpr int64_t kPauseMaxNs = 5'000'000'000;  // it may have been interrupted
constexpr size_t kBytesMax = size_t{1} << 18;  // the lines of 2,000 CPUs and more, which come first

}  // namespace

StealTime::StealTime(const std::filesystem::path& proc, int64_t ticks_per_second)
    : ticks_per_second_(ticks_per_second), file_(proc / "stat") {}

bool StealTime::Read(Clock* clock, int64_t* now_ns) {
  if (*now_ns < due_ns_) return false;
  const std::map<uint32_t, CpuTimes> read =
      ParseCpuTimes(file_.Read(&buffer_, kBytesMax), ticks_per_second_);
  at_ns_ = *now_ns;
  until_ns_ = clock->MonotonicNs();
  due_ns_ = at_ns_ + std::clamp(kPausePerReading * (until_ns_ - at_ns_), kPauseNs, kPauseMaxNs);
  *now_ns = clock->MonotonicNs();
  if (read.empty()) return false;
  std::map<uint32_t, Cpu> cpus;
  for (const auto& [cpu, times] : read) cpus.emplace(cpu, Next(cpu, times));
  cpus_ = std::move(cpus);
  return true;
}

StealTime::Cpu StealTime::Next(uint32_t cpu, const CpuTimes& now) const {
  const auto known = cpus_.find(cpu);
  if (known == cpus_.end()) return {now, {}, at_ns_};  // it may have been switched on
  const CpuTimes& before = known->second.now;
  const int64_t busy_ns = now.busy_ns - before.busy_ns;
  const int64_t stolen_ns = now.stolen_ns - before.stolen_ns;
  Cpu next{now, {std::max<int64_t>(0, busy_ns), 0}, known->second.moved_ns};
  // The kernel counts a theft when it is over. It is no longer than the time that has passed, but
  // where the hypervisor's count jumped.
  const int64_t most_ns = until_ns_ - known->second.moved_ns + 2 * kNsPerSecond / ticks_per_second_;
  if (stolen_ns <= most_ns) next.grown.stolen_ns = std::max<int64_t>(0, stolen_ns);
  if (busy_ns != 0 || stolen_ns != 0) next.moved_ns = at_ns_;
  return next;
}

CpuTimes StealTime::GrownOn(const CpuSet& cpus) const {
  CpuTimes grown;
  for (const uint32_t cpu : cpus) {
    const auto known = cpus_.find(cpu);
    if (known == cpus_.end()) continue;  // it is switched off
    grown.busy_ns += known->second.grown.busy_ns;
    grown.stolen_ns += known->second.grown.stolen_ns;
  }
  return grown;
}

}  // namespace syncline::agent

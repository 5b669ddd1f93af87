// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/cpu_clocks.h"

#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace syncline::agent {
namespace {

constexpr int64_t kKhzMax = 100'000'000;

// -1: it is no clock.
int64_t KhzIn(std::string_view text) {
  int64_t khz = 0;
  const bool known = absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &khz);
  return known && khz > 0 && khz <= kKhzMax ? khz : -1;
}

}  // namespace

CpuClocks::CpuClocks(std::filesystem::path cpus) : cpus_(std::move(cpus)) {}

int64_t CpuClocks::KhzOf(int32_t cpu) {
  if (cpu < 0) return -1;
  const auto known = files_.find(cpu);
  if (known != files_.end()) return KhzIn(known->second.Read(&buffer_));
  return KhzIn(files_.emplace(cpu, Open(cpu)).first->second.Read(&buffer_));
}

// What was counted comes first. Of a CPU without any it stays closed.
SampledFile CpuClocks::Open(int32_t cpu) {
  const std::filesystem::path folder = cpus_ / absl::StrCat("cpu", cpu) / "cpufreq";
  SampledFile counted(folder / "cpuinfo_avg_freq");
  if (KhzIn(counted.Read(&buffer_)) > 0) return counted;
  return SampledFile(folder / "scaling_cur_freq");
}

}  // namespace syncline::agent

// SPDX-License-Identifier: Apache-2.0
// How fast CPUs are clocked, as their cpufreq driver has it.
#ifndef SYNCLINE_AGENT_EVIDENCE_CPU_CLOCKS_H_
#define SYNCLINE_AGENT_EVIDENCE_CPU_CLOCKS_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "agent/evidence/sampled_file.h"

namespace syncline::agent {

// Not thread-safe.
class CpuClocks {
 public:
  // `cpus`: /sys/devices/system/cpu.
  explicit CpuClocks(std::filesystem::path cpus);

  // Now, in kHz: what the hardware counted in the last milliseconds, where the kernel asks it (on
  // x86, and wherever there is a cpuinfo_avg_freq), else what the driver asked of it. -1: it is not
  // known.
  int64_t KhzOf(int32_t cpu);

 private:
  SampledFile Open(int32_t cpu);

  const std::filesystem::path cpus_;
  std::map<int32_t, SampledFile> files_;
  std::string buffer_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_EVIDENCE_CPU_CLOCKS_H_

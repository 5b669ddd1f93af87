// SPDX-License-Identifier: Apache-2.0
// How long a hypervisor ran something else while CPUs of the node had something to do.
#ifndef SYNCLINE_AGENT_EVIDENCE_STEAL_TIME_H_
#define SYNCLINE_AGENT_EVIDENCE_STEAL_TIME_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "agent/evidence/proc_text.h"
#include "agent/evidence/sampled_file.h"
#include "agent/host/cpu_list.h"
#include "agent/probe/clock.h"

namespace syncline::agent {

// Not thread-safe.
class StealTime {
 public:
  // `proc`: where /proc is. `ticks_per_second`: of its times.
  StealTime(const std::filesystem::path& proc, int64_t ticks_per_second);

  // Reads anew, if that is due: twice a second, or less often where a reading takes long (of many
  // CPUs and interrupts). `*now_ns`: when the reading before ended. false: not read.
  bool Read(Clock* clock, int64_t* now_ns);
  // The last reading was made between these.
  int64_t at_ns() const { return at_ns_; }
  int64_t until_ns() const { return until_ns_; }
  // What has grown on these CPUs between the reading before and the last one.
  CpuTimes GrownOn(const CpuSet& cpus) const;

 private:
  struct Cpu {
    CpuTimes now;
    CpuTimes grown;        // since the reading before
    int64_t moved_ns = 0;  // the last reading that found other counts than the one before
  };
  Cpu Next(uint32_t cpu, const CpuTimes& now) const;

  const int64_t ticks_per_second_;
  const SampledFile file_;
  std::string buffer_;
  std::map<uint32_t, Cpu> cpus_;  // of the last reading
  int64_t at_ns_ = 0;
  int64_t until_ns_ = 0;
  int64_t due_ns_ = INT64_MIN;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_EVIDENCE_STEAL_TIME_H_

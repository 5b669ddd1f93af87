// SPDX-License-Identifier: Apache-2.0
// The control groups that may limit the memory of recorded processes: how often each was full.
#ifndef SYNCLINE_AGENT_EVIDENCE_MEMORY_GROUPS_H_
#define SYNCLINE_AGENT_EVIDENCE_MEMORY_GROUPS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/evidence/proc_text.h"
#include "agent/evidence/sampled_file.h"
#include "agent/probe/clock.h"

namespace syncline::agent {

// Thread-safety: none. What it writes are lines of evidence, appended to `out`.
class MemoryGroups {
 public:
  explicit MemoryGroups(size_t groups_max) : groups_max_(groups_max) {}

  // `mountinfo`: /proc/self/mountinfo as it is now.
  void SetMounts(std::string_view mountinfo);
  // The groups of a process, its own first, as evidence numbers them. `cgroup`: its
  // /proc/PID/cgroup.
  std::vector<uint32_t> Of(std::string_view cgroup, std::string* out);
  // Reads all; forgets those that are gone. `*now_ns`: when the reading before ended.
  void Read(Clock* clock, int64_t* now_ns, std::string* out);

 private:
  struct Entry {
    uint32_t index = 0;
    int version = 1;
    SampledFile full;    // memory.failcnt, memory.events.local
    SampledFile limit;   // memory.limit_in_bytes, memory.max
    SampledFile slowed;  // memory.high of v2
  };
  std::optional<uint32_t> IndexOf(const SeenGroup& seen, std::string* out);

  const size_t groups_max_;
  std::vector<CgroupMount> mounts_;
  std::map<std::string, Entry> groups_;  // by directory
  std::string buffer_;
  uint32_t next_ = 0;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_EVIDENCE_MEMORY_GROUPS_H_

// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/memory_groups.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "evidence/evidence.h"
#include "evidence/write.h"

namespace syncline::agent {
namespace {

constexpr std::string_view kController = "memory";
constexpr uint32_t kDeclaredMax = 100'000;

// The lower one; -1 is none.
int64_t Lower(int64_t a, int64_t b) { return a < 0 ? b : b < 0 ? a : std::min(a, b); }

}  // namespace

void MemoryGroups::SetMounts(std::string_view mountinfo) {
  mounts_ = ParseMounts(mountinfo, kController);
}

std::vector<uint32_t> MemoryGroups::Of(std::string_view cgroup, std::string* out) {
  std::vector<uint32_t> indices;
  for (const SeenGroup& seen : GroupsOf(ParseCgroups(cgroup, kController), mounts_)) {
    if (const auto index = IndexOf(seen, out); index.has_value()) indices.push_back(*index);
  }
  return indices;
}

// nullopt: it counts nothing (a root, or no controller).
std::optional<uint32_t> MemoryGroups::IndexOf(const SeenGroup& seen, std::string* out) {
  const auto known = groups_.find(seen.directory);
  if (known != groups_.end()) return known->second.index;
  if (groups_.size() >= groups_max_ || next_ >= kDeclaredMax) return std::nullopt;
  const std::filesystem::path directory = seen.directory;
  const bool v1 = seen.version == 1;
  Entry entry;
  entry.version = seen.version;
  entry.full = SampledFile(directory / (v1 ? "memory.failcnt" : "memory.events.local"));
  if (!ParseMemoryFull(entry.version, entry.full.Read(&buffer_)).has_value()) return std::nullopt;
  entry.limit = SampledFile(directory / (v1 ? "memory.limit_in_bytes" : "memory.max"));
  if (!v1) entry.slowed = SampledFile(directory / "memory.high");
  entry.index = next_++;
  evidence::AppendMemoryGroup(evidence::Group{seen.version, seen.path}, out);
  return groups_.emplace(seen.directory, std::move(entry)).first->second.index;
}

void MemoryGroups::Read(Clock* clock, int64_t* now_ns, std::string* out) {
  for (auto it = groups_.begin(); it != groups_.end();) {
    const Entry& entry = it->second;
    const auto full = ParseMemoryFull(entry.version, entry.full.Read(&buffer_));
    const int64_t until_ns = clock->MonotonicNs();
    if (!full.has_value()) {  // it was removed
      it = groups_.erase(it);
      continue;
    }
    evidence::MemorySample sample{entry.index, *now_ns, until_ns, *full};
    sample.limit_bytes = ParseMemoryLimit(entry.limit.Read(&buffer_));
    if (entry.slowed.is_open()) {
      sample.limit_bytes = Lower(sample.limit_bytes, ParseMemoryLimit(entry.slowed.Read(&buffer_)));
    }
    *now_ns = clock->MonotonicNs();
    evidence::Append(sample, out);
    ++it;
  }
}

}  // namespace syncline::agent

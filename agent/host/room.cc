// SPDX-License-Identifier: Apache-2.0
#include "agent/host/room.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/files.h"
#include "common/text.h"

namespace syncline::agent {
namespace {

struct Space {
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;
};

Space SpaceOf(const std::filesystem::path& directory) {
  struct statvfs info;
  if (::statvfs(directory.c_str(), &info) != 0) return {};
  return {.total_bytes = uint64_t{info.f_blocks} * info.f_frsize,
          .free_bytes = uint64_t{info.f_bavail} * info.f_frsize};
}

// The number in a cgroup file; nullopt for "max" and for what cannot be read.
std::optional<uint64_t> CgroupNumber(const std::filesystem::path& file) {
  const auto text = ReadFile(file, 64);
  uint64_t number = 0;
  if (!text.ok() || !absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &number)) {
    return std::nullopt;
  }
  return number;
}

// The value behind `key` in a memory.stat; 0: none.
uint64_t StatNumber(const std::filesystem::path& file, absl::string_view key) {
  const auto text = ReadFile(file, 1 << 16);
  if (!text.ok()) return 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    uint64_t number = 0;
    if (absl::ConsumePrefix(&line, key) && absl::ConsumePrefix(&line, " ") &&
        absl::SimpleAtoi(line, &number)) {
      return number;
    }
  }
  return 0;
}

// How a version of cgroups names its files.
struct MemoryFiles {
  const char* directory;  // of the hierarchy, below the root of all
  const char* limit;
  const char* current;
  const char* reclaimable;  // in memory.stat: cached files that nobody has used for a while
};
constexpr MemoryFiles kVersion1 = {"memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                   "total_inactive_file"};
constexpr MemoryFiles kVersion2 = {"", "memory.max", "memory.current", "inactive_file"};

// nullopt: no limit in this group itself.
std::optional<uint64_t> HeadroomOf(const std::filesystem::path& group, const MemoryFiles& files) {
  const auto limit = CgroupNumber(group / files.limit);
  const auto current = CgroupNumber(group / files.current);
  if (!limit.has_value() || !current.has_value()) return std::nullopt;
  const uint64_t reclaimable = StatNumber(group / "memory.stat", files.reclaimable);
  const uint64_t used = *current - std::min(*current, reclaimable);
  return *limit - std::min(*limit, used);
}

}  // namespace

uint32_t CpuCountOfRange(std::string_view range) {
  uint32_t highest = 0;
  for (absl::string_view part : absl::StrSplit(AbslView(range), absl::ByAnyChar(",-"))) {
    uint32_t cpu = 0;
    if (absl::SimpleAtoi(part, &cpu)) highest = std::max(highest, std::min(cpu, 65535u));
  }
  return highest + 1;
}

uint32_t SystemRoom::PossibleCpus() {
  const auto range = ReadFile("/sys/devices/system/cpu/possible", 4096);
  return range.ok() ? CpuCountOfRange(*range) : 1;
}

uint64_t SystemRoom::ShmFreeBytes() { return SpaceOf("/dev/shm").free_bytes; }
uint64_t SystemRoom::ShmTotalBytes() { return SpaceOf("/dev/shm").total_bytes; }

std::optional<uint64_t> MemoryHeadroomBytes(std::string_view own_cgroups,
                                            const std::filesystem::path& root) {
  std::optional<uint64_t> headroom;
  for (absl::string_view line : absl::StrSplit(AbslView(own_cgroups), '\n')) {
    // "4:memory:/job" (the controllers are a list), or "0::/job".
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(parts[1], ',');
    const bool version_1 =
        std::find(controllers.begin(), controllers.end(), "memory") != controllers.end();
    if (!version_1 && parts[0] != "0") continue;
    const MemoryFiles& files = version_1 ? kVersion1 : kVersion2;
    // Limits of all ancestors count; inside a container the root shows the container's own.
    std::filesystem::path group = root / files.directory;
    const auto look = [&] {
      const auto left = HeadroomOf(group, files);
      if (left.has_value()) headroom = std::min(headroom.value_or(*left), *left);
    };
    look();
    for (absl::string_view part : absl::StrSplit(parts[2], '/', absl::SkipEmpty())) {
      group /= std::string(part);
      look();
    }
  }
  return headroom;
}

std::optional<uint64_t> SystemRoom::CgroupHeadroomBytes() {
  const auto text = ReadFile("/proc/self/cgroup", 1 << 16);
  return text.ok() ? MemoryHeadroomBytes(*text, "/sys/fs/cgroup") : std::nullopt;
}

uint64_t SystemRoom::DiskFreeBytes(const std::filesystem::path& directory) {
  return SpaceOf(directory).free_bytes;
}

}  // namespace syncline::agent

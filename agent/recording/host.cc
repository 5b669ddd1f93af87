// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/host.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <string>

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

// "0::/path" of /proc/self/cgroup: the unified hierarchy's path.
std::string OwnCgroup() {
  const auto text = ReadFile("/proc/self/cgroup", 1 << 16);
  if (!text.ok()) return "";
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    if (absl::ConsumePrefix(&line, "0::")) return std::string(line);
  }
  return "";
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

uint32_t SystemHost::PossibleCpus() {
  const auto range = ReadFile("/sys/devices/system/cpu/possible", 4096);
  return range.ok() ? CpuCountOfRange(*range) : 1;
}

uint64_t SystemHost::ShmFreeBytes() { return SpaceOf("/dev/shm").free_bytes; }
uint64_t SystemHost::ShmTotalBytes() { return SpaceOf("/dev/shm").total_bytes; }

std::optional<uint64_t> SystemHost::CgroupHeadroomBytes() {
  // Limits of all ancestors count; inside a container the root shows the container's own.
  std::filesystem::path path = "/sys/fs/cgroup";
  std::optional<uint64_t> headroom;
  const auto look = [&headroom](const std::filesystem::path& group) {
    const auto limit = CgroupNumber(group / "memory.max");
    const auto current = CgroupNumber(group / "memory.current");
    if (!limit.has_value() || !current.has_value()) return;
    const uint64_t left = *limit > *current ? *limit - *current : 0;
    headroom = std::min(headroom.value_or(left), left);
  };
  look(path);
  for (absl::string_view part : absl::StrSplit(OwnCgroup(), '/', absl::SkipEmpty())) {
    path /= std::string(part);
    look(path);
  }
  return headroom;
}

uint64_t SystemHost::DiskFreeBytes(const std::filesystem::path& directory) {
  return SpaceOf(directory).free_bytes;
}

}  // namespace syncline::agent

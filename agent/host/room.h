// SPDX-License-Identifier: Apache-2.0
// How much room the machine has for buffers and files. The seam for tests.
#ifndef SYNCLINE_AGENT_HOST_ROOM_H_
#define SYNCLINE_AGENT_HOST_ROOM_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace syncline::agent {

class Room {
 public:
  virtual ~Room() = default;
  virtual uint32_t PossibleCpus() = 0;
  virtual uint64_t ShmFreeBytes() = 0;
  virtual uint64_t ShmTotalBytes() = 0;
  // What the cgroup that the agent lives in may still take; nullopt: no limit.
  virtual std::optional<uint64_t> CgroupHeadroomBytes() = 0;
  virtual uint64_t DiskFreeBytes(const std::filesystem::path& directory) = 0;
};

class SystemRoom : public Room {
 public:
  uint32_t PossibleCpus() override;
  uint64_t ShmFreeBytes() override;
  uint64_t ShmTotalBytes() override;
  std::optional<uint64_t> CgroupHeadroomBytes() override;
  uint64_t DiskFreeBytes(const std::filesystem::path& directory) override;
};

// What the memory cgroups named in `own_cgroups` (the text of /proc/PID/cgroup) and their ancestors
// still allow, by the hierarchies of both versions below `root`. Cached files that the kernel would
// drop first count as free: a group that only reads files is always full of them. nullopt: no
// limit.
std::optional<uint64_t> MemoryHeadroomBytes(std::string_view own_cgroups,
                                            const std::filesystem::path& root);

// "0-3,8" -> 9: the number of the highest CPU plus one, which is what LTTng allocates for. At
// least 1.
uint32_t CpuCountOfRange(std::string_view range);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_HOST_ROOM_H_

// SPDX-License-Identifier: Apache-2.0
// The processes of this machine as /proc shows them to the agent: what is needed to find the
// process behind a control block, and to see which ones have none. `proc` is a parameter for tests.
#ifndef SYNCLINE_AGENT_HOST_PROCESS_TABLE_H_
#define SYNCLINE_AGENT_HOST_PROCESS_TABLE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace syncline::agent {

struct ProcessEntry {
  int32_t pid = 0;             // as the agent sees it
  int32_t parent_pid = 0;      // so, too; 0: none, or outside of what the agent sees
  int32_t own_pid = 0;         // in its innermost namespace
  uint64_t pid_namespace = 0;  // 0: not allowed to see
  uint64_t start_ticks = 0;
  uint32_t uid = 0;
  char state = '?';  // R, S, D, T, t, Z, ...
  uint32_t threads = 0;
  std::string name;  // comm
  // As waitpid's, of one that has ended; nullopt: not told. 0 is told as well to whom it may not be
  // told.
  std::optional<int> exit_status;

  bool stopped() const { return state == 'T' || state == 't'; }
  // Its parent has not asked yet. (Or only its first thread has ended, and others go on.)
  bool ended() const { return (state == 'Z' || state == 'X') && threads <= 1; }
};

// Processes that end while we look are left out. An error, never a part of them, when they cannot
// all be looked at (ResourceExhausted: no descriptor is left): who is not there has ended.
absl::StatusOr<std::vector<ProcessEntry>> ListProcesses(
    const std::filesystem::path& proc = "/proc");

// One of them; nullopt when it is gone.
std::optional<ProcessEntry> ReadProcess(const std::filesystem::path& proc, int32_t pid);

// A whole file of /proc; empty: it is gone, or may not be read.
std::string ProcFile(const std::filesystem::path& path);
// The name of a process or thread, by its folder in /proc; empty: gone.
std::string CommIn(const std::filesystem::path& folder);

// Its threads, as the agent sees them, in order; none of a process that is gone.
std::vector<int32_t> ListThreads(const std::filesystem::path& proc, int32_t pid);

// Which training library a process has mapped, for people ("PyTorch", "TensorFlow"); empty: none,
// or not allowed to see.
std::string FrameworkOf(const std::filesystem::path& proc, int32_t pid);

// Whether the process has a file of this name mapped; nullopt: not allowed to see, or gone.
std::optional<bool> HasMapped(const std::filesystem::path& proc, int32_t pid,
                              std::string_view file_name);

// Whether it has a file open whose path contains this text; nullopt: not allowed to see, or gone.
std::optional<bool> HasOpen(const std::filesystem::path& proc, int32_t pid, std::string_view text);

// How long ago it began, by the seconds since boot of /proc/uptime; nullopt: not known.
std::optional<double> AgeSeconds(const std::filesystem::path& proc, const ProcessEntry& entry);

// How many files and sockets it may still open; nullopt: not allowed to see, or gone.
std::optional<uint64_t> DescriptorsLeft(const std::filesystem::path& proc, int32_t pid);

// The value of an environment variable the process was started with; nullopt: unset or not allowed
// to see.
std::optional<std::string> EnvironmentOf(const std::filesystem::path& proc, int32_t pid,
                                         std::string_view name);

// The inode of the pid namespace of /proc/self; 0: unknown.
uint64_t OwnPidNamespace(const std::filesystem::path& proc = "/proc");

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_HOST_PROCESS_TABLE_H_

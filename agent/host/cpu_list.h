// SPDX-License-Identifier: Apache-2.0
// Lists of CPUs as the kernel writes them ("0-1,4"), and of threads as OpenMP takes them.
#ifndef SYNCLINE_AGENT_HOST_CPU_LIST_H_
#define SYNCLINE_AGENT_HOST_CPU_LIST_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace syncline::agent {

using CpuSet = std::set<uint32_t>;

// nullopt: it is not one.
std::optional<CpuSet> ParseCpuList(std::string_view text);

// As the kernel writes it: "0-1,4".
std::string CpuListOf(const CpuSet& cpus);

// On which CPUs a thread may run, as the kernel lists them in its /proc/PID/task/TID/status;
// nullopt: that does not say it.
std::optional<std::string> AllowedCpuList(std::string_view status);

// The same of the first thread of a process; nullopt: not allowed to see, or gone.
std::optional<CpuSet> CpusAllowed(const std::filesystem::path& proc, int32_t pid);

// How many threads a value of OMP_NUM_THREADS asks for: "8,2" is 8, and 2 inside of each. 0: it
// asks for no number.
uint32_t ThreadsAskedBy(std::string_view setting);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_HOST_CPU_LIST_H_

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

// On which CPUs the first thread of a process may run, as the kernel lists them; nullopt: not
// allowed to see, or gone.
std::optional<std::string> AllowedCpuList(const std::filesystem::path& proc, int32_t pid);

// The same as a set; nullopt: not allowed to see, or gone.
std::optional<CpuSet> CpusAllowed(const std::filesystem::path& proc, int32_t pid);

// How many threads a value of OMP_NUM_THREADS asks for: "8,2" is 8, and 2 inside of each. 0: it
// asks for no number.
uint32_t ThreadsAskedBy(std::string_view setting);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_HOST_CPU_LIST_H_

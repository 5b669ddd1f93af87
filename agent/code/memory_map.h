// SPDX-License-Identifier: Apache-2.0
// Where a process has code (/proc/PID/maps). Pure.
//
// Thread-safety: plain values.
#ifndef SYNCLINE_AGENT_CODE_MEMORY_MAP_H_
#define SYNCLINE_AGENT_CODE_MEMORY_MAP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace syncline::agent {

struct MappedCode {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t file_offset = 0;  // of `begin`
  // The file as the process sees it; a name in brackets for what is none: "[vdso]",
  // evidence::kGeneratedModule.
  std::string module;

  bool is_file() const { return module.starts_with('/'); }
};

// What can be executed, by address.
std::vector<MappedCode> ParseMaps(std::string_view text);
// nullptr: there is no code.
const MappedCode* FindCode(const std::vector<MappedCode>& code, uint64_t address);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CODE_MEMORY_MAP_H_

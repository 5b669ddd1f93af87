// SPDX-License-Identifier: Apache-2.0
// What the addresses of an ELF file are called: functions by its symbols, source lines by its debug
// information (elfutils). Both may lie in a file of their own, by build id, below
// /usr/lib/debug. Nothing is asked of the network.
//
// The files are a user's: whoever opens one should be that user, and be able to lose the process
// (symbol_child.h). Not thread-safe.
#ifndef SYNCLINE_AGENT_CODE_ELF_FILE_H_
#define SYNCLINE_AGENT_CODE_ELF_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace syncline::agent {

struct SourceLine {
  std::string file;
  int32_t line = 0;
};

class ElfFile {
 public:
  // `root`: in which the debug file is looked for.
  static absl::StatusOr<std::unique_ptr<ElfFile>> Open(const std::string& root,
                                                       const std::string& path);
  virtual ~ElfFile() = default;

  // Of each place in the file: the symbol whose code covers it, for people; empty: none.
  virtual std::vector<std::string> Functions(std::span<const uint64_t> offsets) = 0;
  // Calls back for each offset of which the line is known, by its index.
  virtual void Lines(std::span<const uint64_t> offsets,
                     const std::function<void(size_t index, const SourceLine& line)>& found) = 0;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CODE_ELF_FILE_H_

// SPDX-License-Identifier: Apache-2.0
// Modules, frames and stacks of all samples of a recording, each written once, and what is needed
// to find out later what they are called.
//
// Not thread-safe.
#ifndef SYNCLINE_AGENT_CODE_CODE_TABLE_H_
#define SYNCLINE_AGENT_CODE_CODE_TABLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agent/code/memory_map.h"

namespace syncline::agent {

// Where the files of a process are, for whoever runs as its user.
struct CodeOwner {
  int32_t pid = 0;      // as the agent sees it
  int32_t own_pid = 0;  // as the process sees it
  uint32_t uid = 0;
  std::string root;     // empty: they are where the agent sees them; else "/proc/PID/root"
  uint64_t mounts = 0;  // the namespace, which tells files of one path apart
};

class CodeTable {
 public:
  // More than a job has; beyond that a sample is counted as lost.
  static constexpr size_t kFramesMax = 1 << 20;
  static constexpr size_t kStacksMax = 1 << 20;

  struct Module {
    std::string path;
    CodeOwner owner;                                    // of the first process that has it
    std::vector<std::pair<uint64_t, uint32_t>> frames;  // offset and number
    uint64_t samples = 0;                               // whose innermost frame is there
  };

  // Numbers; UINT32_MAX: the table is full. New ones are appended to `text`.
  uint32_t Frame(const CodeOwner& owner, const MappedCode& code, uint64_t address,
                 std::string* text);
  uint32_t KernelFrame(uint64_t address, std::string* text);
  uint32_t UnknownFrame(uint64_t address, std::string* text);
  uint32_t Stack(const std::vector<uint32_t>& frames, std::string* text);

  const std::vector<Module>& modules() const { return modules_; }

 private:
  uint32_t ModuleOf(const CodeOwner& owner, const std::string& path, std::string* text);
  uint32_t FrameAt(uint32_t module, uint64_t offset, std::string* text);

  std::vector<Module> modules_;
  std::map<std::pair<uint64_t, std::string>, uint32_t> module_ids_;  // by mounts, or pid
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> frame_ids_;      // by module and offset
  std::vector<uint32_t> module_of_frame_;
  std::map<std::vector<uint32_t>, uint32_t> stack_ids_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CODE_CODE_TABLE_H_

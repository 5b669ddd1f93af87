// SPDX-License-Identifier: Apache-2.0
// Which of the machine's processes are recorded: those that live and have a control block.
//
// Thread-safe: no state.
#ifndef SYNCLINE_AGENT_EVIDENCE_RECORDED_PROCESSES_H_
#define SYNCLINE_AGENT_EVIDENCE_RECORDED_PROCESSES_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "agent/host/process_table.h"
#include "control_block/block_file.h"

namespace syncline::agent {

// Pointers into what it was made from.
using AliveProcesses = std::map<control_block::BlockId, const ProcessEntry*>;

struct FoundProcess {
  const ProcessEntry* entry = nullptr;
  uint32_t uid = 0;
  std::filesystem::path runtime;  // where its block is
};

AliveProcesses AliveById(const std::vector<ProcessEntry>& all);

// `directories`: as RuntimeDirectories gives them. A user's block counts only for a process of that
// user's: it is easily named like another one's. A directory that cannot be read has none.
std::map<control_block::BlockId, FoundProcess> RecordedAmong(
    const AliveProcesses& alive,
    const std::vector<std::pair<uint32_t, std::filesystem::path>>& directories,
    const std::set<uint32_t>& users_left_out = {});

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_EVIDENCE_RECORDED_PROCESSES_H_

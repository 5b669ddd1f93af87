// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/recorded_processes.h"

#include "control_block/live_block.h"

namespace syncline::agent {

AliveProcesses AliveById(const std::vector<ProcessEntry>& all) {
  AliveProcesses alive;
  for (const ProcessEntry& entry : all) {
    if (!entry.ended()) alive[{entry.pid_namespace, entry.own_pid, entry.start_ticks}] = &entry;
  }
  return alive;
}

std::map<control_block::BlockId, FoundProcess> RecordedAmong(
    const AliveProcesses& alive,
    const std::vector<std::pair<uint32_t, std::filesystem::path>>& directories,
    const std::set<uint32_t>& users_left_out) {
  std::map<control_block::BlockId, FoundProcess> recorded;
  for (const auto& [uid, runtime] : directories) {
    if (users_left_out.contains(uid)) continue;
    const auto blocks = control_block::ListBlocks(runtime, uid);
    if (!blocks.ok()) continue;
    for (const control_block::BlockId& id : *blocks) {
      const auto found = alive.find(id);
      if (found == alive.end() || found->second->uid != uid) continue;
      recorded[id] = {found->second, uid, runtime};
    }
  }
  return recorded;
}

}  // namespace syncline::agent

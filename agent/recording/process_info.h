// SPDX-License-Identifier: Apache-2.0
// What control blocks say of processes, in the messages for the coordinator.
#ifndef SYNCLINE_AGENT_RECORDING_PROCESS_INFO_H_
#define SYNCLINE_AGENT_RECORDING_PROCESS_INFO_H_

#include <cstdint>
#include <vector>

#include "agent/host/process_table.h"
#include "control_block/block_file.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

// How a process with a control block in the directory of `uid` is described to the coordinator.
// `entry`: what /proc says of it, or null when it is not visible.
v1::ProcessInfo DescribeProcess(const control_block::Block& block, uint32_t uid,
                                const ProcessEntry* entry);

// The control block of a process that is described.
control_block::BlockId BlockIdOf(const v1::ProcessInfo& process);

// The entry of /proc that a block belongs to; null when there is none.
const ProcessEntry* FindProcess(const std::vector<ProcessEntry>& processes,
                                const control_block::BlockId& id);

// Whether a block in the directory of `uid` is in the name of somebody else's process. A control
// block is easily named so. Root's own are believed: it may have made them before it became another
// user.
bool IsForeign(uint32_t uid, const ProcessEntry* entry);

// What the process answered to the gate, and what that cost it.
void SetAnswer(const control_block::Block& block, v1::ProcessCoverage* coverage);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_PROCESS_INFO_H_

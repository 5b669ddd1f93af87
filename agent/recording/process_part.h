// SPDX-License-Identifier: Apache-2.0
// Tells launchers, ranks, loader workers and other children of a job apart (common/process_part.h).
// All inherit a rank's number with its environment, and would pass for ranks.
//
//   launcher       by its words: torchrun, mpirun, `python -m torch.distributed.run`, ...; or
//                  PyTorch names its first thread "pt_elastic"
//   loader worker  PyTorch names its first thread "pt_data_worker"
//   child          an ancestor has the same rank in the same job, and no launcher is between them;
//                  or it is gone, and began when such a rank of a job with a name was there
//   rank           all others that have a rank
#ifndef SYNCLINE_AGENT_RECORDING_PROCESS_PART_H_
#define SYNCLINE_AGENT_RECORDING_PROCESS_PART_H_

#include <span>
#include <string>
#include <string_view>

#include "agent/host/process_table.h"
#include "control_block/block_file.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

// Launcher or loader worker, by the name of its first thread; empty: neither, or an older PyTorch.
std::string PartByThread(std::string_view first_thread);

// What the process itself shows: launcher or loader worker; empty: neither. `entry`: null when it
// is not visible; the block still has the threads' names.
std::string OwnPart(const control_block::Block& block, const ProcessEntry* entry);

// Fills in rank and child, by parentage, where no part is known.
void NameRanksAndChildren(std::span<const ProcessEntry> entries, std::span<v1::ProcessInfo> infos);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_PROCESS_PART_H_

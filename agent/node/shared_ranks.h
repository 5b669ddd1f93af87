// SPDX-License-Identifier: Apache-2.0
// Notices `syncline run --rank N` in front of something that starts several processes, where the
// command line did not show it: every one of them has rank N.
//
// Processes that a program starts for itself (data loaders) inherit its rank rightly. Two that
// share a planted rank are said to be different ones when their launcher gave them different ranks,
// or when neither descends from another of them.
#ifndef SYNCLINE_AGENT_NODE_SHARED_RANKS_H_
#define SYNCLINE_AGENT_NODE_SHARED_RANKS_H_

#include <filesystem>
#include <span>
#include <vector>

#include "agent/host/process_table.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

// A warning for each rank that was planted in several processes of one job. `infos` are those with
// a control block, `entries` all that there are.
std::vector<v1::Complaint> ComplainOfSharedRanks(const std::filesystem::path& proc,
                                                 std::span<const v1::ProcessInfo> infos,
                                                 std::span<const ProcessEntry> entries);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_NODE_SHARED_RANKS_H_

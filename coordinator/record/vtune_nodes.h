// SPDX-License-Identifier: Apache-2.0
// Which nodes have VTune, where a recording is to have it beside it. Pure.
#ifndef SYNCLINE_COORDINATOR_RECORD_VTUNE_NODES_H_
#define SYNCLINE_COORDINATOR_RECORD_VTUNE_NODES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/record/fleet_state.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::record {

// Why VTune cannot be used on the node; empty: it can.
std::string WhyNoVtune(const v1::DescribeResponse& description);

// FailedPrecondition that names the nodes: none of those that take part has it.
absl::Status CheckVtune(const std::vector<NodeProgress>& nodes);

}  // namespace syncline::record

#endif  // SYNCLINE_COORDINATOR_RECORD_VTUNE_NODES_H_

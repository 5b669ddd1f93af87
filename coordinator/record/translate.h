// SPDX-License-Identifier: Apache-2.0
// From the agents' answers to recording.json. Pure.
#ifndef SYNCLINE_COORDINATOR_RECORD_TRANSLATE_H_
#define SYNCLINE_COORDINATOR_RECORD_TRANSLATE_H_

#include <string>
#include <vector>

#include "coordinator/recording/recording.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::record {

using Complaints = std::vector<recording::ComplaintRecord>;

// Each returns those of the agent's complaints that are new.
Complaints Apply(const v1::PrepareResponse& response, recording::NodeRecord* node);
Complaints Apply(const v1::StartResponse& response, recording::NodeRecord* node);
Complaints Apply(const v1::StopResponse& response, recording::NodeRecord* node);
recording::ComplaintRecord FromComplaint(const v1::Complaint& complaint);

// Another protocol than ours is a blocker, another version of the same protocol a warning.
void AddVersionComplaint(const std::string& own_version, v1::DescribeResponse* description);

// Some of the processes by pid and command, the others by their number; empty: there are none.
std::string NameSome(const std::vector<const recording::ProcessRecord*>& processes);

// What of the node's recording is lost, in words; empty when nothing is. Shown, and the reason of
// exit code 3.
std::string DescribeLoss(const recording::NodeRecord& node);

}  // namespace syncline::record

#endif  // SYNCLINE_COORDINATOR_RECORD_TRANSLATE_H_

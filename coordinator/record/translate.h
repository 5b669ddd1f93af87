// From the agents' answers to recording.json. Pure.
#ifndef SYNCLINE_COORDINATOR_RECORD_TRANSLATE_H_
#define SYNCLINE_COORDINATOR_RECORD_TRANSLATE_H_

#include <string>

#include "coordinator/recording/recording.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::record {

void Apply(const v1::PrepareResponse& response, recording::NodeRecord* node);
void Apply(const v1::StartResponse& response, recording::NodeRecord* node);
void Apply(const v1::StopResponse& response, recording::NodeRecord* node);
recording::ComplaintRecord FromComplaint(const v1::Complaint& complaint);

// Another protocol than ours is a blocker, another version of the same protocol a warning.
void AddVersionComplaint(const std::string& own_version, v1::DescribeResponse* description);

// Whether the process was switched on, and said so, at some instant of the window.
bool CoversWindow(const recording::NodeRecord& node, const recording::ProcessRecord& process);

// What of the node's recording is lost, in words; empty when nothing is. Shown, and the reason of
// exit code 3.
std::string DescribeLoss(const recording::NodeRecord& node);

}  // namespace syncline::record

#endif  // SYNCLINE_COORDINATOR_RECORD_TRANSLATE_H_

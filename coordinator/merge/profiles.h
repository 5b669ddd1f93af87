// SPDX-License-Identifier: Apache-2.0
// Profiles of a node, as a recording holds them: TensorFlow's in nodes/<node>/xspace/profiles.json
// and the XSpaces beside it, PyTorch's in nodes/<node>/kineto/profiles.json and Kineto's JSON
// there.
#ifndef SYNCLINE_COORDINATOR_MERGE_PROFILES_H_
#define SYNCLINE_COORDINATOR_MERGE_PROFILES_H_

#include <memory>
#include <string>
#include <vector>

#include "common/event_cursor.h"
#include "common/time.h"
#include "coordinator/recording/recording.h"
#include "timeline/node_input.h"

namespace syncline::merge {

struct OpenedProfiles {
  std::vector<std::unique_ptr<TraceReader>> readers;
  std::vector<timeline::ProfileInput> profiles;  // point into `readers`
  std::vector<std::string> complaints;
  bool incomplete = false;
};

// What is damaged or gone becomes losses and complaints. A job whose profiler was busy, or that has
// none, is named, and is not incomplete for that.
OpenedProfiles ReadProfiles(const recording::Layout& layout, const std::string& node);

// Tensors between nodes as facts that a clock model must agree with: the begin of a send is before
// its receive. Nodes are numbered as in the recording.
std::vector<CausalPair> CausalPairsOf(const recording::Layout& layout,
                                      const recording::Recording& recording);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_PROFILES_H_

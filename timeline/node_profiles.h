// SPDX-License-Identifier: Apache-2.0
// A node's profiles by TensorFlow and Kineto: lanes below their processes, and holes where there
// are none. They come after the node's events, which make the tracks of the processes.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_NODE_PROFILES_H_
#define SYNCLINE_TIMELINE_NODE_PROFILES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "timeline/loss_ledger.h"
#include "timeline/node_context.h"
#include "timeline/node_input.h"
#include "timeline/node_tables.h"
#include "timeline/partitions.h"
#include "timeline/profile_collectives.h"
#include "timeline/profile_lanes.h"
#include "timeline/tensors.h"
#include "timeline/track_table.h"

namespace syncline::timeline {

class NodeProfiles {
 public:
  // What they are added to, and what their events are matched by. All of it outlives this.
  struct Parts {
    const NodeTables& tables;
    TrackTable* tracks = nullptr;
    LossLedger* ledger = nullptr;
    TensorMatcher* tensors = nullptr;
    ProfileCollectives* collectives = nullptr;
  };
  struct Results {
    std::vector<ProfileResult> profiles;
    std::vector<Partition> partitions;
    std::vector<ProcessDevices> devices;
  };

  NodeProfiles(const NodeContext& context, const Parts& parts) : context_(context), parts_(parts) {}

  // Once.
  absl::StatusOr<Results> Push();

 private:
  std::string JobOf(const ProcessKey& process) const;
  absl::Status Add(const ProfileInput& profile, ProfileLanes* lanes, ProfileResult result);
  TrackId TrackOf(const ProfileInput& profile, std::string* name);
  void Lose(const ProfileInput& profile, Loss loss);
  // Of one process, whose results are those from `first` on.
  void DropCutSteps(size_t first, ProcessDevices* devices) const;
  void PushHoles(size_t first, TrackId group);

  const NodeContext& context_;
  const Parts parts_;
  Results results_;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_NODE_PROFILES_H_

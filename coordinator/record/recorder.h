// SPDX-License-Identifier: Apache-2.0
// Makes one recording with a fleet: the life of a recording in the design, from discovery to
// release.
//
//   describe -> probe clocks -> prepare (all or none) -> start at T -> watch -> stop at T+D ->
//   fetch -> models.json, recording.json -> release
//
// Before T a failure of one node ends it for all (rolled back), unless nodes may be missing. From T
// on nothing is given up because another node failed: whatever can be had is kept, and what cannot
// is a state of that node in recording.json. recording.json is on the disk before T, so that a
// coordinator that is killed leaves something that `fetch RUN` can complete.
//
// T is chosen in the reference node's MONOTONIC_RAW and sent to each node in its own, by the clock
// model of the probes so far; the coordinator's wall clock plays no part.
//
// Ctrl-C before T: rolled back. While recording: all stop at one near instant and everything is
// kept. After that: the data is left on the nodes.
#ifndef SYNCLINE_COORDINATOR_RECORD_RECORDER_H_
#define SYNCLINE_COORDINATOR_RECORD_RECORDER_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clocksync/builder.h"
#include "coordinator/clocks/peer_probing.h"
#include "coordinator/clocks/prober.h"
#include "coordinator/fleet/agent_client.h"
#include "coordinator/host/clock.h"
#include "coordinator/record/fleet_state.h"
#include "coordinator/record/interrupts.h"
#include "coordinator/record/monitor.h"
#include "coordinator/record/observer.h"
#include "coordinator/recording/recording.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::record {

struct RecordOptions {
  std::string recording_id;
  std::filesystem::path directory;
  int64_t window_ns = 0;  // 0: until interrupted
  bool allow_missing = false;
  int64_t lease_ms = 60'000;  // how long a node goes on without hearing from the coordinator
  recording::CreatedBy created_by;
  // Passed on to every agent; recording_id, holder and lease are filled in.
  v1::PrepareRequest prepare;
};

// What there is after a recording, complete or not.
struct Recorded {
  recording::Recording recording;
  clocksync::BuildResult clocks;
  std::set<std::string> gone_from;  // nodes that do not have it any more: nothing to fetch there
};

class Recorder {
 public:
  // All outlive the recorder; nodes are in the order of the hosts file.
  Recorder(const std::vector<fleet::Member>* members, RecordOptions options, host::Clock* clock,
           Interrupts* interrupts, Observer* observer);
  ~Recorder();

  // An error means that nothing was recorded and nothing is left, here or on the nodes (or says
  // what is).
  absl::StatusOr<Recorded> Run();

 private:
  absl::Status MakeDirectory();
  void DescribeAll();
  void ProbeClocks();
  // Where VTune is asked for: at least one node must have it; the others say that they have not.
  absl::Status CheckTools();
  void PrepareAll();
  absl::Status StartAll();
  // recording.json as it is before the end is known.
  absl::Status WriteBeginning();
  void Watch();
  void StopAll();
  void RollBack();
  void Remove();

  // Marks nodes that failed as missing; an error unless the recording goes on without them.
  absl::Status Settle(std::string_view phase);
  size_t TakingPart() const;
  std::vector<clocksync::Edge> Edges() const;

  const std::vector<fleet::Member>& members_;
  RecordOptions options_;
  host::Clock& clock_;
  Interrupts& interrupts_;
  Reporter reporter_;
  recording::Layout layout_;
  recording::Recording recording_;
  std::vector<NodeProgress> nodes_;
  std::unique_ptr<clocks::Prober> prober_;
  std::unique_ptr<clocks::PeerProbing> peers_;
  std::unique_ptr<Monitor> monitor_;
  size_t reference_ = 0;
  int64_t start_raw_ns_ = 0;  // T in the coordinator's clock
  bool made_directory_ = false;
};

}  // namespace syncline::record

#endif  // SYNCLINE_COORDINATOR_RECORD_RECORDER_H_

// SPDX-License-Identifier: Apache-2.0
// Samples in, model out. Pure: no I/O, no clock reads, no threads.
#ifndef SYNCLINE_CLOCKSYNC_BUILDER_H_
#define SYNCLINE_CLOCKSYNC_BUILDER_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clocksync/audit.h"
#include "clocksync/bounded_map.h"
#include "clocksync/clock_model.h"
#include "clocksync/corridor.h"
#include "clocksync/events.h"
#include "clocksync/samples.h"
#include "common/time.h"

namespace syncline::clocksync {

struct BuildOptions {
  std::string reference;  // node name; its RAW clock gives the timeline its rate
  // Timeline zero: an instant of the reference's RAW clock, ns. Fixed by record at T.
  int64_t zero_reference_raw_ns = 0;
  int64_t rate_ppb_max = 200'000;  // rho: bound of |d offset / dt| between two RAW clocks
  // w: bound of the change of that rate, ppb per second (10: a room that warms by 3 degrees a
  // minute).
  int64_t wander_ppb_per_s = 10;
  // What is compared are the nodes' wall clocks, the only ones that are known of them: REALTIME
  // takes RAW's place. They are slewed, so their rate against each other may change at any time
  // within rate_ppb_max, and wander_ppb_per_s counts for nothing.
  bool wall_clocks = false;
  // Also fill what EdgeQuality says it does then: for reports.
  bool audit = false;
};

struct BuildInput {
  std::vector<std::string> nodes;  // in the order of ClockId::node
  std::vector<HostClocks> hosts;   // of those nodes, and of "coordinator" when it probes
  std::vector<Edge> edges;
  std::vector<CausalPair> causal;  // from the traces; times in any known clock
};

// How good an edge is, for `syncline clocks`.
struct EdgeQuality {
  std::string local;
  std::string remote;
  StampSource source = StampSource::kGrpc;  // of most samples
  uint64_t samples = 0;
  std::array<uint64_t, kStampSources> samples_by_source{};
  int64_t offset_ns = 0;  // estimate in the middle of the samples; remote - local
  int64_t drift_ppb = 0;
  int64_t bound_median_ns = 0;
  int64_t bound_worst_ns = 0;
  int64_t round_trip_min_ns = 0;
  int64_t begin_local_ns = 0;  // of the first usable sample, by the local clock
  int64_t end_local_ns = -1;   // of the last; before the first: there is none
  // Filled by BuildOptions::audit.
  EdgeAudit audit;
  Constraints constraints;    // what the samples say: local RAW -> remote RAW
  BoundedMap corridor;        // what follows of it
  int64_t zero_local_ns = 0;  // what the local clock reads at timeline zero, by estimate
};

struct BuildResult {
  ClockModel model;
  std::vector<EdgeQuality> edges;
  std::vector<ClockEvent> events;
};

// InvalidArgument when the input contradicts itself in form (unknown names, no nodes). Clocks that
// contradict the assumptions are not an error: they are ClockEvents and widen or split the model.
absl::StatusOr<BuildResult> BuildModel(const BuildInput& input, const BuildOptions& options);

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_BUILDER_H_

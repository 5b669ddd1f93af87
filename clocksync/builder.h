// Samples in, model out. Pure: no I/O, no clock reads, no threads.
#ifndef SYNCLINE_CLOCKSYNC_BUILDER_H_
#define SYNCLINE_CLOCKSYNC_BUILDER_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clocksync/clock_model.h"
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
};

struct BuildInput {
  std::vector<std::string> nodes;  // in the order of ClockId::node
  std::vector<HostClocks> hosts;   // of those nodes, and of "coordinator" when it probes
  std::vector<Edge> edges;
  std::vector<CausalPair> causal;  // from the traces; times in any known clock
};

// Something that happened to the clocks and that the reader of a report must know.
struct ClockEvent {
  enum class Kind : uint8_t { kInfeasible, kStep, kSlew, kSuspend, kGap, kNoSamples };
  Kind kind = Kind::kGap;
  std::string node;      // or "a--b" for an edge
  int64_t begin_ns = 0;  // in the node's RAW clock
  int64_t end_ns = 0;
  std::string text;
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

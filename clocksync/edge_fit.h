// SPDX-License-Identifier: Apache-2.0
// One edge: its usable samples as constraints, what is told of it.
#ifndef SYNCLINE_CLOCKSYNC_EDGE_FIT_H_
#define SYNCLINE_CLOCKSYNC_EDGE_FIT_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "clocksync/builder.h"
#include "clocksync/corridor.h"
#include "clocksync/samples.h"

namespace syncline::clocksync {

inline constexpr int64_t kStampMax = int64_t{1} << 59;  // 18 years of uptime: more is no RAW clock
inline constexpr int64_t kWallMax = int64_t{1} << 61;   // the year 2043; differences of two fit

struct EdgeFit {
  Constraints constraints;  // local -> remote
  Corridor corridor;
  size_t samples = 0;
  size_t unusable = 0;    // nothing in it, or from before the clock went back
  size_t impossible = 0;  // its own times contradict each other
  int64_t round_trip_min_ns = kUnknownHi;
  std::array<uint64_t, kStampSources> samples_by_source{};
  // In the files of the two nodes, used or not.
  uint64_t samples_of_local = 0;
  uint64_t samples_of_remote = 0;
};

// The constraints of the samples that can be used, and what was left out. No corridor yet.
EdgeFit CollectEdge(const Edge& edge);
// The same two nodes, the remote one having asked: what it learned is as true read the other way
// round.
void AddAskedByRemote(const Edge& reverse, EdgeFit* fit);

EdgeQuality QualityOf(const Edge& edge, const EdgeFit& fit);

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_EDGE_FIT_H_

// SPDX-License-Identifier: Apache-2.0
// Lanes of the whole fleet that were found beside the events and are drawn with them: the critical
// path.
//
// Thread-safety: plain values; one thread.
#ifndef SYNCLINE_TIMELINE_FLEET_LANES_H_
#define SYNCLINE_TIMELINE_FLEET_LANES_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "timeline/thread_spans.h"

namespace syncline::timeline {

class Emitter;

struct FleetSpan {
  Moment begin;
  Moment end;
  std::string name;                                      // "rank 1"
  std::string category;                                  // "critical path"
  std::vector<std::pair<std::string, int64_t>> numbers;  // arguments: "compute, ns"
};

struct FleetLane {
  std::string group;             // "critical path"
  std::string name;              // "own work and collectives"
  std::vector<FleetSpan> spans;  // by begin, none within another
};

// A track on top for each lane, with its spans. Where one begins before the last one ended, by an
// error of clocks, it is drawn from there on; it is left out if nothing of it remains.
void PushFleetLanes(std::span<const FleetLane> lanes, Emitter* emitter);

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_FLEET_LANES_H_

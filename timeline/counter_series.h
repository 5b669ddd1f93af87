// SPDX-License-Identifier: Apache-2.0
// Counters of a node that come beside its traces, as samples of the kernel's: whole series, known
// before the events are walked. They lie on the timeline like the counters that programs report.
//
// Thread-safety: plain values; one thread.
#ifndef SYNCLINE_TIMELINE_COUNTER_SERIES_H_
#define SYNCLINE_TIMELINE_COUNTER_SERIES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/identity.h"
#include "timeline/series_place.h"

namespace syncline::timeline {

class Emitter;

struct CounterPoint {
  int64_t clock_ns = 0;  // of the node's trace clock
  double value = 0;      // from here to the next point
};

struct CounterSeries {
  // Of this process, whose key.node the builder fills in. nullopt, or one that has no track: of the
  // node.
  std::optional<ProcessKey> process;
  std::string name;                  // "run queue · python (tid 4711)"
  std::string unit;                  // "ms/s"
  std::vector<CounterPoint> points;  // by time
};

// A track for each series, with its points. Those without points are left out.
void PushCounterSeries(std::span<const CounterSeries> series, const SeriesPlace& place,
                       Emitter* emitter);

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_COUNTER_SERIES_H_

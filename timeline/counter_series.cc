// SPDX-License-Identifier: Apache-2.0
#include "timeline/counter_series.h"

#include <utility>

#include "timeline/emitter.h"
#include "timeline/placement.h"

namespace syncline::timeline {

void PushCounterSeries(std::span<const CounterSeries> series, const CounterPlace& place,
                       Emitter* emitter) {
  for (const CounterSeries& one : series) {
    if (one.points.empty()) continue;
    Track track;
    track.kind = TrackKind::kCounter;
    track.parent = place.node_track;
    track.name = one.name;
    track.unit = one.unit;
    track.node = place.node;
    if (one.process.has_value()) {
      ProcessKey key = *one.process;
      key.node = place.keys_without_node ? 0 : place.node;
      if (const auto found = place.processes->find(key); found != place.processes->end()) {
        track.parent = found->second;
        track.process = key;
      }
    }
    const TrackId id = emitter->AddTrack(std::move(track));
    for (const CounterPoint& point : one.points) {
      emitter->Push(CounterValue{id, place.placement->At(point.clock_ns), point.value});
    }
  }
}

}  // namespace syncline::timeline

// SPDX-License-Identifier: Apache-2.0
#include "timeline/counter_series.h"

#include <utility>

#include "timeline/emitter.h"
#include "timeline/placement.h"

namespace syncline::timeline {

void PushCounterSeries(std::span<const CounterSeries> series, const SeriesPlace& place,
                       Emitter* emitter) {
  for (const CounterSeries& one : series) {
    if (one.points.empty()) continue;
    Track track;
    track.kind = TrackKind::kCounter;
    track.name = one.name;
    track.unit = one.unit;
    place.Put(one.process, &track);
    const TrackId id = emitter->AddTrack(std::move(track));
    for (const CounterPoint& point : one.points) {
      emitter->Push(CounterValue{id, place.placement->At(point.clock_ns), point.value});
    }
  }
}

}  // namespace syncline::timeline

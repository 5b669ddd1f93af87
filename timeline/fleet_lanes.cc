// SPDX-License-Identifier: Apache-2.0
#include "timeline/fleet_lanes.h"

#include "timeline/emitter.h"

namespace syncline::timeline {

void PushFleetLanes(std::span<const FleetLane> lanes, Emitter* emitter) {
  for (const FleetLane& lane : lanes) {
    Track top;
    top.kind = TrackKind::kFleet;
    top.name = lane.group;
    Track row;
    row.kind = TrackKind::kAsync;
    row.parent = emitter->AddTrack(std::move(top));
    row.name = lane.name;
    const TrackId track = emitter->AddTrack(std::move(row));
    Moment until{{}, {kUnknownLo}};
    for (const FleetSpan& one : lane.spans) {
      Span span;
      span.track = track;
      const Moment& begin = one.begin.timeline < until.timeline ? until : one.begin;
      if (one.end.timeline <= begin.timeline) continue;
      span.name = emitter->Text(one.name);
      span.category = emitter->Text(one.category);
      span.begin = begin.timeline;
      span.node_begin = begin.node;
      span.end = one.end.timeline;
      span.node_end = one.end.node;
      for (const auto& [key, value] : one.numbers) {
        Argument argument;
        argument.key = emitter->Text(key);
        argument.i = value;
        span.arguments.push_back(argument);
      }
      emitter->LateSpan(std::move(span));
      until = one.end;
    }
  }
}

}  // namespace syncline::timeline

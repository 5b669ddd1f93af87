// SPDX-License-Identifier: Apache-2.0
#include "timeline/device_lanes.h"

#include "timeline/emitter.h"

namespace syncline::timeline {

void PushDeviceLanes(const DeviceLanesOf& lanes_of, uint32_t node, const NodeInput& input,
                     const NodeResult& found, Emitter* emitter) {
  const auto clock = [&](TimelineTime time) -> NodeTime {
    return {input.placement->clock(), input.placement->ClockNs(time)};
  };
  for (const ProcessDevices& process : found.devices) {
    for (const DeviceLane& lane : lanes_of(process)) {
      Track row;
      row.kind = TrackKind::kAsync;
      row.parent = process.track;
      row.name = lane.name;
      row.node = node;
      row.process = process.key;
      const TrackId track = emitter->AddTrack(std::move(row));
      for (const DeviceStepSpan& step : lane.spans) {
        Span span;
        span.track = track;
        span.name = emitter->Text(step.name);
        span.category = emitter->Text(kDeviceStepCategory);
        span.begin = step.at.begin;
        span.node_begin = clock(span.begin);
        span.end = step.at.end;
        span.node_end = clock(span.end);
        for (const auto& [key, value] : step.numbers) {
          Argument argument;
          argument.key = emitter->Text(key);
          argument.i = value;
          span.arguments.push_back(argument);
        }
        emitter->LateSpan(std::move(span));
      }
    }
  }
}

}  // namespace syncline::timeline

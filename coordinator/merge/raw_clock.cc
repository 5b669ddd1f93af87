// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/raw_clock.h"

namespace syncline::merge {

std::function<int64_t(TimelineTime)> RawClockOf(const OpenedInputs& inputs, size_t node) {
  timeline::Placement* const placement = inputs.nodes[node].placement;
  const ClockId trace_clock = placement->clock();
  const ClockId raw{trace_clock.node, ClockKind::kRaw};
  const clocksync::ClockModel* model = inputs.model.get();
  if (model == nullptr || !model->Knows(raw) || !model->Knows(trace_clock)) return nullptr;
  return [model, placement, trace_clock, raw](TimelineTime time) {
    const NodeTime here{trace_clock, placement->ClockNs(time)};
    return model->Unlocate(raw, model->Locate(here).est).ns;
  };
}

}  // namespace syncline::merge

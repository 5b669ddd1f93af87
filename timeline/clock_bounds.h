// SPDX-License-Identifier: Apache-2.0
// How well a node's clock is known, along its timeline. Pure.
#ifndef SYNCLINE_TIMELINE_CLOCK_BOUNDS_H_
#define SYNCLINE_TIMELINE_CLOCK_BOUNDS_H_

#include <optional>

#include "common/time.h"
#include "timeline/node_context.h"
#include "timeline/sink.h"

namespace syncline::timeline {

// The bounds of the node's placement, some hundred points of them, over the window or, without one,
// where events were `seen`. Where a likely placement is known, its bounds are a counter below
// `node_track`.
void PushClockBounds(const NodeContext& context, TrackId node_track,
                     const std::optional<ClockInterval>& seen);

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_CLOCK_BOUNDS_H_

// SPDX-License-Identifier: Apache-2.0
#include "timeline/clock_bounds.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

namespace syncline::timeline {
namespace {

constexpr int64_t kBoundStepNs = 100'000'000;  // between two points of the clock bound's counter
constexpr int64_t kBoundPointsMax = 600;       // per node; a guess at what a viewer shows well

TrackId AddLikelyBoundTrack(const NodeContext& context, TrackId node_track) {
  Track track;
  track.parent = node_track;
  track.kind = TrackKind::kCounter;
  track.name = absl::StrCat("likely clock bound, if ", context.node.assumption);
  track.node = context.index;
  track.unit = "ns";
  return context.emitter->AddTrack(std::move(track));
}

}  // namespace

void PushClockBounds(const NodeContext& context, TrackId node_track,
                     const std::optional<ClockInterval>& seen) {
  const std::optional<ClockInterval> where =
      context.options.window.has_value() ? context.Window() : seen;
  if (!where.has_value()) return;
  const int64_t length_ns = std::max<int64_t>(0, where->end_ns - where->begin_ns);
  const int64_t step_ns = std::max(kBoundStepNs, length_ns / kBoundPointsMax + 1);
  std::optional<TrackId> likely;
  for (int64_t offset_ns = 0; offset_ns <= length_ns; offset_ns += step_ns) {
    const int64_t clock_ns = where->begin_ns + offset_ns;
    const TimelineTime time = context.At(clock_ns).timeline;
    const std::optional<int64_t> bound_ns = context.node.placement->BoundNs(clock_ns);
    context.emitter->Push(ClockBound{context.index, time, bound_ns});
    if (context.node.likely == nullptr || !bound_ns.has_value()) continue;
    const std::optional<int64_t> likely_ns = context.node.likely->BoundNs(clock_ns);
    if (!likely_ns.has_value()) continue;
    if (!likely.has_value()) likely = AddLikelyBoundTrack(context, node_track);
    context.emitter->Push(CounterValue{*likely, time, static_cast<double>(*likely_ns)});
  }
}

}  // namespace syncline::timeline

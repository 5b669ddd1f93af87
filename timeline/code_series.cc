// SPDX-License-Identifier: Apache-2.0
#include "timeline/code_series.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "timeline/emitter.h"
#include "timeline/placement.h"

namespace syncline::timeline {
namespace {

std::vector<CodeFrame> Intern(const std::vector<NamedFrame>& frames, Emitter* emitter) {
  std::vector<CodeFrame> known;
  known.reserve(frames.size());
  for (const NamedFrame& frame : frames) {
    known.push_back({.function = emitter->Text(frame.function),
                     .library = emitter->Text(frame.library),
                     .file = emitter->Text(frame.file),
                     .line = frame.line});
  }
  return known;
}

}  // namespace

void PushSampledCode(const SampledCode& code, const SeriesPlace& place, Emitter* emitter) {
  const std::vector<CodeFrame> frames = Intern(code.frames, emitter);
  std::map<ProcessKey, TrackId> groups;
  CodeSample sample;
  sample.period_ns = code.period_ns;
  for (const SampledThread& thread : code.threads) {
    if (thread.points.empty()) continue;
    Track lane;
    place.Put(thread.process, &lane);
    const auto [group, added] = groups.try_emplace(thread.process, kNoTrack);
    if (added) {
      Track top = lane;
      top.kind = TrackKind::kGroup;
      top.name = lane.parent == place.node_track
                     ? absl::StrCat("sampled code · pid ", thread.process.pid)
                     : "sampled code";
      group->second = emitter->AddTrack(std::move(top));
    }
    lane.parent = group->second;
    lane.kind = TrackKind::kLane;
    lane.tid = thread.tid;
    lane.name = absl::StrCat(thread.name, " ", thread.tid);
    sample.track = emitter->AddTrack(std::move(lane));
    for (const SampledPoint& point : thread.points) {
      sample.time = place.placement->At(point.clock_ns);
      sample.node_time = {place.placement->clock(), point.clock_ns};
      const SampledStack& stack = code.stacks[point.stack];
      sample.self = stack.self;
      sample.stack.clear();
      for (const uint32_t frame : stack.frames) sample.stack.push_back(frames[frame]);
      emitter->Push(sample);
    }
  }
}

}  // namespace syncline::timeline

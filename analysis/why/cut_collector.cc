// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/cut_collector.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace syncline::analysis::why {
namespace {

constexpr std::string_view kOperators = "TensorFlow operators";
constexpr std::string_view kExecutor = "TensorFlow executor";
constexpr std::string_view kStep = "RunGraph";
constexpr std::string_view kDone = "ExecutorDoneCallback";
constexpr std::string_view kPropagate = "ExecutorPropagateOutputs";

CutKind KindOf(std::string_view category, std::string_view name) {
  if (category == kOperators) return CutKind::kOperator;
  if (name == kStep) return CutKind::kStep;
  if (name == "ExecutorState::ScheduleReady") return CutKind::kReady;
  if (name == "ExecutorState::ProcessAsync::Start") return CutKind::kAsked;
  if (name == "ExecutorState::ProcessAsync::Done") return CutKind::kDone;
  return CutKind::kOther;
}

}  // namespace

void CutCollector::OnText(timeline::TextId id, std::string_view text) {
  if (texts_.size() <= id) {
    texts_.resize(id + 1);
    receives_.resize(id + 1);
  }
  texts_[id] = text;
}

void CutCollector::OnTrack(const timeline::Track& track) {
  if (track.kind == timeline::TrackKind::kLane) lanes_[track.id].process = track.process;
}

timeline::TextId CutCollector::TextOf(const timeline::Span& span, std::string_view key) const {
  for (const timeline::Argument& argument : span.arguments) {
    if (argument.kind == timeline::Argument::Kind::kText && texts_[argument.key] == key) {
      return argument.text;
    }
  }
  return timeline::kNoText;
}

void CutCollector::OnSpanEnd(const timeline::Span& span) {
  const auto found = lanes_.find(span.track);
  if (found == lanes_.end()) return;
  const std::string_view category = texts_[span.category];
  const std::string_view name = texts_[span.name];
  // Marks of the program's own are around work, and no work.
  if (category != kOperators && category != kExecutor && name != kStep) return;
  // How an executor passes on what an operator gave takes no time to speak of.
  if (name == kPropagate && span.depth > 0) return;
  Lane& lane = found->second;
  CutSpan kept;
  kept.begin_ns = span.begin.ns;
  kept.end_ns = span.end.ns;
  kept.recorded_ns = span.node_begin.ns;
  kept.name = span.name;
  kept.kind = KindOf(category, name);
  kept.depth = span.depth;
  if (kept.kind == CutKind::kAsked || kept.kind == CutKind::kDone) {
    kept.name = TextOf(span, "name");
  } else if (kept.kind == CutKind::kOperator) {
    const std::string_view type = texts_[TextOf(span, "type")];
    if (type == "_Recv" || type == "_HostRecv") receives_[span.name] = true;
  }
  lane.spans.push_back(kept);
  if (kept.kind != CutKind::kStep && name != kDone) return;
  for (const timeline::Argument& argument : span.arguments) {
    if (texts_[argument.key] != "step id") continue;
    if (argument.kind == timeline::Argument::Kind::kText) continue;
    auto& times = name == kDone ? lane.done : lane.begun;
    // Several executors of one step end one after the other; the last one counts.
    int64_t& when = times.try_emplace(argument.i, kept.begin_ns).first->second;
    if (name == kDone) when = std::max(when, kept.begin_ns);
  }
}

CutCollected CutCollector::Take() {
  CutCollected collected;
  collected.names = std::move(texts_);
  collected.receives = std::move(receives_);
  for (auto& [track, lane] : lanes_) {
    if (lane.spans.empty()) continue;
    CutPartition& partition = collected.partitions[lane.process];
    for (const auto& [id, begin_ns] : lane.begun) partition.steps[id].begin_ns = begin_ns;
  }
  for (auto& [track, lane] : lanes_) {
    if (lane.spans.empty()) continue;
    CutPartition& partition = collected.partitions[lane.process];
    for (const auto& [id, end_ns] : lane.done) {
      const auto step = partition.steps.find(id);
      if (step == partition.steps.end() || step->second.end_ns.value_or(INT64_MIN) > end_ns) {
        continue;
      }
      step->second.end_ns = end_ns;
      step->second.end_lane = partition.lanes.size();
    }
    std::sort(lane.spans.begin(), lane.spans.end(), [](const CutSpan& a, const CutSpan& b) {
      if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
      return a.depth != b.depth ? a.depth < b.depth : a.end_ns > b.end_ns;
    });
    partition.lanes.push_back(std::move(lane.spans));
  }
  return collected;
}

}  // namespace syncline::analysis::why

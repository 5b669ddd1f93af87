// SPDX-License-Identifier: Apache-2.0
#include "timeline/async_spans.h"

#include <algorithm>
#include <utility>

namespace syncline::timeline {

AsyncSpans::AsyncSpans(Emitter* emitter, TrackId parent, Track prototype)
    : emitter_(emitter), parent_(parent), prototype_(std::move(prototype)) {}

size_t AsyncSpans::TakeLane(const std::string& group_name, TimelineTime begin) {
  std::vector<Lane>& lanes = lanes_[group_name];
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (!lanes[i].open && lanes[i].last_end <= begin) return i;
  }
  Track track = prototype_;
  track.kind = TrackKind::kAsync;
  track.parent = parent_;
  track.name = group_name;
  lanes.push_back({emitter_->AddTrack(std::move(track))});
  return lanes.size() - 1;
}

Span* AsyncSpans::Begin(const Key& key, const Label& label, const Moment& moment) {
  Open open;
  open.group_name = label.group_name;
  open.lane = TakeLane(label.group_name, moment.timeline);
  Lane& lane = lanes_[label.group_name][open.lane];
  lane.open = true;
  open.span.track = lane.track;
  open.span.name = label.name;
  open.span.category = label.category;
  open.span.begin = moment.timeline;
  open.span.node_begin = moment.node;
  emitter_->SpanBegin(open.span);
  std::vector<Open>& stack = open_[key];
  stack.push_back(std::move(open));
  return &stack.back().span;
}

bool AsyncSpans::End(const Key& key, const Label& label, const Moment& moment) {
  const auto found = open_.find(key);
  if (found == open_.end()) {
    if (!covered_) return false;
    Span span;
    span.clipped_begin = true;
    span.name = label.name;
    span.category = label.category;
    span.begin = std::min(coverage_begin_.timeline, moment.timeline);
    span.node_begin = coverage_begin_.node;
    span.end = moment.timeline;
    span.node_end = moment.node;
    const size_t index = TakeLane(label.group_name, span.begin);
    Lane& lane = lanes_[label.group_name][index];
    lane.last_end = span.end;
    span.track = lane.track;
    emitter_->LateSpan(std::move(span));
    return true;
  }
  Open open = std::move(found->second.back());
  found->second.pop_back();
  if (found->second.empty()) open_.erase(found);
  Lane& lane = lanes_[open.group_name][open.lane];
  lane.open = false;
  open.span.end = std::max(open.span.begin, moment.timeline);
  open.span.node_end = moment.node;
  lane.last_end = open.span.end;
  emitter_->SpanEnd(open.span);
  return true;
}

void AsyncSpans::Whole(const Label& label, const Moment& begin, const Moment& end,
                       std::vector<Argument> arguments) {
  Span span;
  span.name = label.name;
  span.category = label.category;
  span.begin = begin.timeline;
  span.node_begin = begin.node;
  span.end = std::max(begin.timeline, end.timeline);
  span.node_end = end.node;
  span.arguments = std::move(arguments);
  const size_t index = TakeLane(label.group_name, span.begin);
  Lane& lane = lanes_[label.group_name][index];
  lane.last_end = span.end;
  span.track = lane.track;
  emitter_->LateSpan(std::move(span));
}

Span* AsyncSpans::FindOpen(IttId id) {
  for (auto& [key, stack] : open_) {
    if (key.id == id) return &stack.back().span;
  }
  return nullptr;
}

void AsyncSpans::CoverageEnds(const Moment& moment) {
  for (auto& [key, stack] : open_) {
    for (Open& open : stack) {
      Lane& lane = lanes_[open.group_name][open.lane];
      lane.open = false;
      open.span.end = std::max(open.span.begin, moment.timeline);
      open.span.node_end = moment.node;
      open.span.clipped_end = true;
      lane.last_end = open.span.end;
      emitter_->SpanEnd(open.span);
    }
  }
  open_.clear();
  covered_ = false;
}

}  // namespace syncline::timeline

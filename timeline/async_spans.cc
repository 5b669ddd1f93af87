// SPDX-License-Identifier: Apache-2.0
#include "timeline/async_spans.h"

#include <algorithm>
#include <utility>

namespace syncline::timeline {

AsyncSpans::AsyncSpans(Emitter* emitter, TrackId parent, Track prototype)
    : emitter_(emitter), parent_(parent), prototype_(std::move(prototype)) {}

AsyncSpans::Lane AsyncSpans::TakeLane(std::string_view group_name, TimelineTime begin) {
  auto group = lanes_.find(group_name);
  if (group == lanes_.end()) group = lanes_.emplace(group_name, Lanes()).first;
  Lanes& lanes = group->second;
  const size_t number = lanes.used.Find(begin);
  if (number == lanes.tracks.size()) {
    Track track = prototype_;
    track.kind = TrackKind::kAsync;
    track.parent = parent_;
    track.name = group_name;
    lanes.tracks.push_back(emitter_->AddTrack(std::move(track)));
    lanes.used.Add();
  }
  lanes.used.Set(number, FirstFit::kInUse);
  return {&lanes, number};
}

Span* AsyncSpans::Begin(const Key& key, const Label& label, const Moment& moment) {
  std::vector<Open>& stack = open_[key];
  Open& open = stack.emplace_back();
  open.lane = TakeLane(label.group_name, moment.timeline);
  open.span.track = open.lane.track();
  open.span.name = label.name;
  open.span.category = label.category;
  open.span.begin = moment.timeline;
  open.span.node_begin = moment.node;
  emitter_->SpanBegin(open.span);
  return &open.span;
}

void AsyncSpans::PushWhole(Span span, std::string_view group_name) {
  const Lane lane = TakeLane(group_name, span.begin);
  lane.UsedUntil(span.end);
  span.track = lane.track();
  emitter_->LateSpan(std::move(span));
}

bool AsyncSpans::End(const Key& key, const Label& label, const Moment& moment) {
  const auto found = open_.find(key);
  if (found == open_.end()) {
    if (!covered_) return false;
    const bool before = coverage_begin_.timeline < moment.timeline;
    const Moment& begin = before ? coverage_begin_ : moment;
    Span span;
    span.clipped_begin = true;
    span.name = label.name;
    span.category = label.category;
    span.begin = begin.timeline;
    span.node_begin = begin.node;
    span.end = moment.timeline;
    span.node_end = moment.node;
    span.suspect = IsSuspect(span);
    PushWhole(std::move(span), label.group_name);
    return true;
  }
  Open open = std::move(found->second.back());
  found->second.pop_back();
  if (found->second.empty()) open_.erase(found);
  open.span.end = std::max(open.span.begin, moment.timeline);
  open.span.node_end = moment.node;
  open.span.suspect = IsSuspect(open.span);
  open.lane.UsedUntil(open.span.end);
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
  PushWhole(std::move(span), label.group_name);
}

Span* AsyncSpans::FindOpen(IttId id) {
  const auto first = open_.lower_bound({0, 0, id});
  return first != open_.end() && first->first.id == id ? &first->second.back().span : nullptr;
}

bool AsyncSpans::IsOpenBeside(const Key& key, TrackId track, TimelineTime begin) const {
  const auto found = open_.find(key);
  if (found == open_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [&](const Open& open) {
    return open.span.track != track || open.span.begin != begin;
  });
}

void AsyncSpans::Lost(const Moment& until) {
  lost_until_ns_ = std::max(lost_until_ns_, until.node.ns);
  if (covered_ && coverage_begin_.timeline < until.timeline) coverage_begin_ = until;
}

void AsyncSpans::CoverageEnds(const Moment& moment) {
  std::vector<std::pair<const Key, std::vector<Open>>*> ended;
  for (auto& entry : open_) ended.push_back(&entry);
  std::sort(ended.begin(), ended.end(),
            [](const auto* a, const auto* b) { return a->first < b->first; });
  for (auto* entry : ended) {
    for (Open& open : entry->second) {
      open.span.end = std::max(open.span.begin, moment.timeline);
      open.span.node_end = moment.node;
      open.span.clipped_end = true;
      open.span.suspect = IsSuspect(open.span);
      open.lane.UsedUntil(open.span.end);
      emitter_->SpanEnd(open.span);
    }
  }
  open_.clear();
  covered_ = false;
}

}  // namespace syncline::timeline

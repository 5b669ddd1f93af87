// SPDX-License-Identifier: Apache-2.0
#include "timeline/emitter.h"

#include <utility>

namespace syncline::timeline {

TextId Emitter::Text(std::string_view text) {
  if (text.empty()) return kNoText;
  const auto found = texts_.find(text);
  if (found != texts_.end()) return found->second;
  const auto id = static_cast<TextId>(texts_by_id_.size() + 1);
  texts_by_id_.push_back(&texts_.emplace(std::string(text), id).first->first);
  for (TimelineSink* sink : sinks_) sink->OnText(id, text);
  return id;
}

std::string_view Emitter::TextOf(TextId id) const {
  return id == kNoText ? std::string_view() : std::string_view(*texts_by_id_[id - 1]);
}

TrackId Emitter::AddTrack(Track track) {
  track.id = next_track_++;
  if (track.kind == TrackKind::kNode) node_tracks_[track.node] = track.id;
  for (TimelineSink* sink : sinks_) sink->OnTrack(track);
  return track.id;
}

TrackId Emitter::NodeTrack(uint32_t node) const {
  const auto found = node_tracks_.find(node);
  return found == node_tracks_.end() ? kNoTrack : found->second;
}

void Emitter::SpanBegin(const Span& span) {
  for (TimelineSink* sink : sinks_) sink->OnSpanBegin(span);
}

void Emitter::SpanEnd(const Span& span) {
  for (TimelineSink* sink : sinks_) sink->OnSpanEnd(span);
}

void Emitter::LateSpan(Span span) {
  span.late = true;
  SpanBegin(span);
  SpanEnd(span);
}

void Emitter::Push(const Instant& instant) {
  for (TimelineSink* sink : sinks_) sink->OnInstant(instant);
}

void Emitter::Push(const CounterValue& value) {
  for (TimelineSink* sink : sinks_) sink->OnCounter(value);
}

void Emitter::Push(const CodeSample& sample) {
  for (TimelineSink* sink : sinks_) sink->OnCodeSample(sample);
}

void Emitter::Push(const ThreadState& state) {
  for (TimelineSink* sink : sinks_) sink->OnThreadState(state);
}

void Emitter::Push(const Flow& flow) {
  for (TimelineSink* sink : sinks_) sink->OnFlow(flow);
}

void Emitter::Push(const Hole& hole) {
  for (TimelineSink* sink : sinks_) sink->OnHole(hole);
}

void Emitter::Push(const ClockBound& bound) {
  for (TimelineSink* sink : sinks_) sink->OnClockBound(bound);
}

void Emitter::Push(const ClockEvent& event) {
  for (TimelineSink* sink : sinks_) sink->OnClockEvent(event);
}

absl::Status Emitter::Finish() {
  absl::Status first;
  for (TimelineSink* sink : sinks_) {
    const absl::Status status = sink->Finish();
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace syncline::timeline

// SPDX-License-Identifier: Apache-2.0
#include "timeline/window_sink.h"

#include <algorithm>
#include <utility>

namespace syncline::timeline {

WindowSink::WindowSink(Interval range, std::vector<TimelineSink*> sinks)
    : range_(range), length_ns_(1), sinks_(std::move(sinks)) {
  const auto count = static_cast<int64_t>(sinks_.size());
  length_ns_ = std::max<int64_t>(1, (range_.end.ns - range_.begin.ns + count - 1) / count);
}

size_t WindowSink::WindowOf(TimelineTime time) const {
  if (time <= range_.begin) return 0;
  const auto window = static_cast<size_t>((time.ns - range_.begin.ns) / length_ns_);
  return std::min(window, sinks_.size() - 1);
}

TimelineTime WindowSink::BeginOf(size_t window) const {
  return {range_.begin.ns + static_cast<int64_t>(window) * length_ns_};
}

WindowSink::OnTrackNow& WindowSink::At(TrackId track) {
  if (tracks_.size() <= track) tracks_.resize(track + 1);
  return tracks_[track];
}

void WindowSink::OnText(TextId id, std::string_view text) {
  for (TimelineSink* sink : sinks_) sink->OnText(id, text);
}

void WindowSink::OnTrack(const Track& track) {
  for (TimelineSink* sink : sinks_) sink->OnTrack(track);
}

void WindowSink::MoveTo(size_t window, OnTrackNow* now) {
  while (now->window < window) {
    ++now->window;
    for (Span& span : now->begun) {
      span.begin = BeginOf(now->window);
      span.clipped_begin = true;
      sinks_[now->window]->OnSpanBegin(span);
    }
  }
}

void WindowSink::PushLate(const Span& span) {
  const size_t first = WindowOf(span.begin);
  const size_t last = std::max(first, WindowOf(span.end));
  for (size_t window = first; window <= last; ++window) {
    Span part = span;
    if (window > first) {
      part.begin = BeginOf(window);
      part.clipped_begin = true;
    }
    if (window < last) {
      part.end = BeginOf(window + 1);
      part.clipped_end = true;
    }
    part.self_ns = std::min(part.self_ns, part.end.ns - part.begin.ns);
    sinks_[window]->OnSpanBegin(part);
    sinks_[window]->OnSpanEnd(part);
  }
}

void WindowSink::OnSpanBegin(const Span& span) {
  if (span.late) return;  // whole in OnSpanEnd, which follows at once
  OnTrackNow& now = At(span.track);
  MoveTo(WindowOf(span.begin), &now);
  now.open.push_back({span.begin, span.clipped_begin, now.window});
  now.begun.push_back(span);
  sinks_[now.window]->OnSpanBegin(span);
}

void WindowSink::OnSpanEnd(const Span& span) {
  if (span.late) return PushLate(span);
  OnTrackNow& now = At(span.track);
  if (now.open.empty()) return;
  // What ends with a window is whole in it.
  const size_t window = WindowOf(span.end);
  MoveTo(window > now.window && span.end == BeginOf(window) ? window - 1 : window, &now);
  const Open open = now.open.back();
  now.open.pop_back();
  now.begun.pop_back();
  for (size_t at = open.first; at <= now.window; ++at) {
    Span part = span;
    part.begin = at == open.first ? open.begin : BeginOf(at);
    part.clipped_begin = at > open.first || open.clipped_begin;
    part.end = at < now.window ? std::min(span.end, BeginOf(at + 1)) : span.end;
    part.end = std::max(part.begin, part.end);
    part.clipped_end = part.end != span.end || span.clipped_end;
    part.self_ns = std::min(part.self_ns, part.end.ns - part.begin.ns);
    sinks_[at]->OnSpanEnd(part);
  }
}

void WindowSink::OnInstant(const Instant& instant) {
  sinks_[WindowOf(instant.time)]->OnInstant(instant);
}

void WindowSink::OnCounter(const CounterValue& value) {
  OnTrackNow& now = At(value.track);
  const size_t window = WindowOf(value.time);
  for (; now.window < window; ++now.window) {
    if (!now.value.has_value()) continue;
    sinks_[now.window + 1]->OnCounter({value.track, BeginOf(now.window + 1), *now.value});
  }
  now.value = value.value;
  sinks_[window]->OnCounter(value);
}

void WindowSink::OnCodeSample(const CodeSample& sample) {
  sinks_[WindowOf(sample.time)]->OnCodeSample(sample);
}

void WindowSink::OnFlow(const Flow& flow) {
  const size_t window = WindowOf(flow.sent);
  if (window == WindowOf(flow.received)) sinks_[window]->OnFlow(flow);
}

template <class Stretch, class Push>
void WindowSink::Divide(const Stretch& whole, const Push& push) {
  const size_t first = WindowOf(whole.begin);
  const size_t last = std::max(first, WindowOf(whole.end));
  for (size_t window = first; window <= last; ++window) {
    Stretch part = whole;
    if (window > first) part.begin = BeginOf(window);
    if (window < last) part.end = BeginOf(window + 1);
    if (window == first || part.begin < part.end) push(sinks_[window], part);
  }
}

void WindowSink::OnThreadState(const ThreadState& state) {
  Divide(state, [&state](TimelineSink* sink, ThreadState part) {
    part.clipped_begin |= part.begin != state.begin;
    part.clipped_end |= part.end != state.end;
    sink->OnThreadState(part);
  });
}

void WindowSink::OnHole(const Hole& hole) {
  Divide(hole, [](TimelineSink* sink, const Hole& part) { sink->OnHole(part); });
}

void WindowSink::OnClockEvent(const ClockEvent& event) {
  Divide(event, [](TimelineSink* sink, const ClockEvent& part) { sink->OnClockEvent(part); });
}

void WindowSink::OnClockBound(const ClockBound& bound) {
  sinks_[WindowOf(bound.time)]->OnClockBound(bound);
}

absl::Status WindowSink::Finish() {
  absl::Status first;
  for (TimelineSink* sink : sinks_) {
    const absl::Status status = sink->Finish();
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace syncline::timeline

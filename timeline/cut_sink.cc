// SPDX-License-Identifier: Apache-2.0
#include "timeline/cut_sink.h"

#include <algorithm>
#include <utility>

namespace syncline::timeline {

void CutSink::Announce(OnTrackNow* now) {
  size_t level = now->open.size() - now->waiting.size();
  for (Span& span : now->waiting) {
    Open& open = now->open[level++];
    if (span.begin < range_.begin) {
      span.begin = open.begin = range_.begin;
      span.clipped_begin = open.clipped_begin = true;
    }
    next_->OnSpanBegin(span);
  }
  now->waiting.clear();
}

void CutSink::OnSpanBegin(const Span& span) {
  OnTrackNow& now = At(span.track);
  const bool inside = range_.Contains(span.begin);
  if (inside && !now.waiting.empty()) Announce(&now);
  now.open.push_back({span.begin, span.clipped_begin});
  if (inside) {
    next_->OnSpanBegin(span);
  } else {
    now.waiting.push_back(span);
  }
}

int64_t CutSink::Within(TimelineTime begin, TimelineTime end) const {
  return std::max<int64_t>(0, std::min(end, range_.end).ns - std::max(begin, range_.begin).ns);
}

void CutSink::OnSpanEnd(const Span& span) {
  OnTrackNow& now = At(span.track);
  if (now.open.empty()) return;
  const int64_t within_ns = Within(span.begin, span.end);
  if (now.open.size() > 1) now.open[now.open.size() - 2].children_ns += within_ns;
  if (!now.waiting.empty() && span.begin < range_.begin && span.end > range_.begin) Announce(&now);
  const Open open = now.open.back();
  now.open.pop_back();
  if (!now.waiting.empty()) {
    now.waiting.pop_back();
    return;
  }
  const bool whole = open.begin == span.begin && open.clipped_begin <= span.clipped_begin &&
                     span.begin <= span.end && span.end <= range_.end &&
                     within_ns == span.end.ns - span.begin.ns;
  if (whole) [[likely]] {
    next_->OnSpanEnd(span);
  } else {
    PassClipped(span, open, within_ns);
  }
}

void CutSink::PassClipped(const Span& span, const Open& open, int64_t within_ns) {
  Span cut = span;
  cut.begin = open.begin;
  cut.clipped_begin = span.clipped_begin || open.clipped_begin;
  if (span.end > range_.end) {
    cut.end = range_.end;
    cut.clipped_end = true;
  }
  // One that was found to have ended unseen may have ended before the range.
  cut.end = std::max(cut.end, cut.begin);
  if (within_ns < span.end.ns - span.begin.ns) {
    cut.self_ns = std::max<int64_t>(0, within_ns - open.children_ns);
  }
  next_->OnSpanEnd(cut);
}

void CutSink::OnInstant(const Instant& instant) {
  if (range_.Contains(instant.time)) next_->OnInstant(instant);
}

void CutSink::OnCounter(const CounterValue& value) {
  std::optional<double>& before = At(value.track).before;
  if (value.time < range_.begin) {
    before = value.value;
    return;
  }
  if (before.has_value()) {
    next_->OnCounter({value.track, range_.begin, *before});
    before.reset();
  }
  if (range_.Contains(value.time)) next_->OnCounter(value);
}

void CutSink::OnCodeSample(const CodeSample& sample) {
  if (range_.Contains(sample.time)) next_->OnCodeSample(sample);
}

void CutSink::OnThreadState(const ThreadState& state) {
  if (state.begin >= range_.begin && state.end <= range_.end) return next_->OnThreadState(state);
  if (state.end <= range_.begin || state.begin >= range_.end) return;
  ThreadState cut = state;
  cut.clipped_begin |= state.begin < range_.begin;
  cut.clipped_end |= state.end > range_.end;
  cut.begin = std::max(state.begin, range_.begin);
  cut.end = std::min(state.end, range_.end);
  next_->OnThreadState(cut);
}

void CutSink::OnFlow(const Flow& flow) {
  if (range_.Contains(flow.sent) && range_.Contains(flow.received)) next_->OnFlow(flow);
}

void CutSink::OnHole(const Hole& hole) {
  if (hole.end <= range_.begin || hole.begin >= range_.end) return;
  Hole cut = hole;
  cut.begin = std::max(hole.begin, range_.begin);
  cut.end = std::min(hole.end, range_.end);
  next_->OnHole(cut);
}

void CutSink::OnClockBound(const ClockBound& bound) {
  if (range_.Contains(bound.time)) next_->OnClockBound(bound);
}

void CutSink::OnClockEvent(const ClockEvent& event) {
  if (event.end < range_.begin || event.begin >= range_.end) return;
  ClockEvent cut = event;
  cut.begin = std::max(event.begin, range_.begin);
  cut.end = std::min(event.end, range_.end);
  next_->OnClockEvent(cut);
}

absl::Status CutSink::Finish() {
  for (TrackId track = 0; track < tracks_.size(); ++track) {
    const std::optional<double> before = std::exchange(tracks_[track].before, std::nullopt);
    if (before.has_value()) next_->OnCounter({track, range_.begin, *before});
  }
  return next_->Finish();
}

}  // namespace syncline::timeline

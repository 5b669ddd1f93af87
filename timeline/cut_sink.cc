// SPDX-License-Identifier: Apache-2.0
#include "timeline/cut_sink.h"

#include <algorithm>

namespace syncline::timeline {

void CutSink::Announce(std::vector<Open>* stack) {
  // What is announced lies below what is not.
  size_t first = stack->size();
  while (first > 0 && !(*stack)[first - 1].announced) --first;
  for (size_t i = first; i < stack->size(); ++i) {
    Open& open = (*stack)[i];
    open.announced = true;
    if (open.span.begin < range_.begin) {
      open.span.begin = range_.begin;
      open.span.clipped_begin = true;
    }
    next_->OnSpanBegin(open.span);
  }
}

void CutSink::OnSpanBegin(const Span& span) {
  std::vector<Open>& stack = open_[span.track];
  stack.push_back({span, false});
  if (range_.Contains(span.begin)) Announce(&stack);
}

int64_t CutSink::Within(TimelineTime begin, TimelineTime end) const {
  return std::max<int64_t>(0, std::min(end, range_.end).ns - std::max(begin, range_.begin).ns);
}

void CutSink::OnSpanEnd(const Span& span) {
  std::vector<Open>& stack = open_[span.track];
  if (stack.empty()) return;
  const int64_t within_ns = Within(span.begin, span.end);
  if (stack.size() > 1) stack[stack.size() - 2].children_ns += within_ns;
  if (!stack.back().announced && span.begin < range_.begin && span.end > range_.begin) {
    Announce(&stack);
  }
  const Open open = stack.back();
  stack.pop_back();
  if (!open.announced) return;
  Span cut = span;
  cut.begin = open.span.begin;
  cut.clipped_begin = span.clipped_begin || open.span.clipped_begin;
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
  if (value.time < range_.begin) {
    before_[value.track] = value.value;
    return;
  }
  const auto before = before_.find(value.track);
  if (before != before_.end()) {
    next_->OnCounter({value.track, range_.begin, before->second});
    before_.erase(before);
  }
  if (range_.Contains(value.time)) next_->OnCounter(value);
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
  for (const auto& [track, value] : before_) next_->OnCounter({track, range_.begin, value});
  before_.clear();
  return next_->Finish();
}

}  // namespace syncline::timeline

// SPDX-License-Identifier: Apache-2.0
// A timeline for looking at as a whole: spans that last long enough to be seen, a counter's values
// as far as they are apart enough, and all that is said of nodes and losses. Instants and arrows
// are left out.
//
// A span is passed on when it has ended, and therefore as a late one (sink.h).
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_OVERVIEW_SINK_H_
#define SYNCLINE_TIMELINE_OVERVIEW_SINK_H_

#include <cstdint>
#include <unordered_map>

#include "timeline/sink.h"

namespace syncline::timeline {

class OverviewSink final : public TimelineSink {
 public:
  // `next` outlives this.
  OverviewSink(int64_t shortest_ns, TimelineSink* next) : shortest_ns_(shortest_ns), next_(next) {}

  void OnText(TextId id, std::string_view text) override { next_->OnText(id, text); }
  void OnTrack(const Track& track) override { next_->OnTrack(track); }
  void OnSpanBegin(const Span&) override {}
  void OnSpanEnd(const Span& span) override {
    if (span.end.ns - span.begin.ns < shortest_ns_) return;
    Span shown = span;
    shown.late = true;
    next_->OnSpanBegin(shown);
    next_->OnSpanEnd(shown);
  }
  void OnInstant(const Instant&) override {}
  void OnCounter(const CounterValue& value) override {
    const auto [last, first] = shown_.try_emplace(value.track, value.time);
    if (!first && value.time.ns - last->second.ns < shortest_ns_) return;
    last->second = value.time;
    next_->OnCounter(value);
  }
  void OnFlow(const Flow&) override {}
  void OnHole(const Hole& hole) override { next_->OnHole(hole); }
  void OnClockBound(const ClockBound& bound) override { next_->OnClockBound(bound); }
  void OnClockEvent(const ClockEvent& event) override { next_->OnClockEvent(event); }
  absl::Status Finish() override { return next_->Finish(); }

 private:
  int64_t shortest_ns_;
  TimelineSink* next_;
  std::unordered_map<TrackId, TimelineTime> shown_;  // when each counter's last value was
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_OVERVIEW_SINK_H_

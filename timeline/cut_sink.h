// SPDX-License-Identifier: Apache-2.0
// A timeline cut to [from, to): what overlaps it is clipped and flagged, the rest is dropped. A
// span that was open at `from` is passed on when the first thing inside it, or its end, is. What is
// read for it may be less than everything (look_back.h), what is pushed (BuildOptions::shown), too.
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_CUT_SINK_H_
#define SYNCLINE_TIMELINE_CUT_SINK_H_

#include <map>
#include <vector>

#include "timeline/builder.h"
#include "timeline/sink.h"

namespace syncline::timeline {

class CutSink final : public TimelineSink {
 public:
  // `next` outlives this.
  CutSink(Interval range, TimelineSink* next) : range_(range), next_(next) {}

  void OnText(TextId id, std::string_view text) override { next_->OnText(id, text); }
  void OnTrack(const Track& track) override { next_->OnTrack(track); }
  void OnSpanBegin(const Span& span) override;
  void OnSpanEnd(const Span& span) override;
  void OnInstant(const Instant& instant) override;
  void OnCounter(const CounterValue& value) override;
  void OnFlow(const Flow& flow) override;
  void OnHole(const Hole& hole) override;
  void OnClockBound(const ClockBound& bound) override;
  void OnClockEvent(const ClockEvent& event) override;
  absl::Status Finish() override;

 private:
  struct Open {
    Span span;
    bool announced = false;
    int64_t children_ns = 0;  // of what lies in the range
  };

  // How much of [begin, end) lies in the range.
  int64_t Within(TimelineTime begin, TimelineTime end) const;
  void Announce(std::vector<Open>* stack);

  Interval range_;
  TimelineSink* next_;
  std::map<TrackId, std::vector<Open>> open_;
  std::map<TrackId, double> before_;  // the value that a counter had when the interval began
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_CUT_SINK_H_

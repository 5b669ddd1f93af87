// SPDX-License-Identifier: Apache-2.0
// A timeline cut to [from, to): what overlaps it is clipped and flagged, the rest is dropped. A
// span that was open at `from` is passed on when the first thing inside it, or its end, is. What is
// read for it may be less than everything (look_back.h), what is pushed (BuildOptions::shown), too.
//
// What lies wholly in the range is passed on as it is, not copied: mostly that is nearly all.
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_CUT_SINK_H_
#define SYNCLINE_TIMELINE_CUT_SINK_H_

#include <cstdint>
#include <optional>
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
  void OnCodeSample(const CodeSample& sample) override;
  void OnThreadState(const ThreadState& state) override;
  void OnFlow(const Flow& flow) override;
  void OnHole(const Hole& hole) override;
  void OnClockBound(const ClockBound& bound) override;
  void OnClockEvent(const ClockEvent& event) override;
  absl::Status Finish() override;

 private:
  struct Open {
    TimelineTime begin;  // as it was passed on, or will be
    bool clipped_begin = false;
    int64_t children_ns = 0;  // of what lies in the range
  };
  struct OnTrackNow {
    std::vector<Open> open;
    std::vector<Span> waiting;     // the innermost of `open`, as far as they were not passed on
    std::optional<double> before;  // the value that a counter had when the interval began
  };

  OnTrackNow& At(TrackId track) {
    if (tracks_.size() <= track) tracks_.resize(size_t{track} + 1);
    return tracks_[track];
  }
  // How much of [begin, end) lies in the range.
  int64_t Within(TimelineTime begin, TimelineTime end) const;
  // Passes on what waits.
  void Announce(OnTrackNow* now);
  void PassClipped(const Span& span, const Open& open, int64_t within_ns);

  Interval range_;
  TimelineSink* next_;
  std::vector<OnTrackNow> tracks_;  // by id
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_CUT_SINK_H_

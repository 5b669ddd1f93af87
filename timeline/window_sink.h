// SPDX-License-Identifier: Apache-2.0
// A timeline cut into windows of equal length, each for a sink of its own: what lies in a window is
// in its sink, what crosses the edge between two is in both, clipped there and flagged. Tracks and
// texts are in all.
//
// A track is in one window at a time: when something later comes, its open spans are begun again
// behind the edge, outermost first. In the windows before they end when their end is known: it may
// turn out to lie before what came meanwhile (clipped_end), and nothing is drawn longer than it
// was. Late spans (sink.h) may lie in windows that the track has left. A counter's value is
// repeated at the first edge behind it. An arrow with its ends in two windows is dropped.
//
// Memory: open spans, and the windows' sinks. Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_WINDOW_SINK_H_
#define SYNCLINE_TIMELINE_WINDOW_SINK_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "timeline/builder.h"
#include "timeline/sink.h"

namespace syncline::timeline {

class WindowSink final : public TimelineSink {
 public:
  // `sinks`, at least one, share `range` equally, and outlive this. What lies before it is in the
  // first one, what lies behind it in the last one.
  WindowSink(Interval range, std::vector<TimelineSink*> sinks);

  void OnText(TextId id, std::string_view text) override;
  void OnTrack(const Track& track) override;
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

  // Of a window; the first one begins, and the last one ends, with the range.
  TimelineTime BeginOf(size_t window) const;

 private:
  struct Open {
    TimelineTime begin;
    bool clipped_begin = false;
    size_t first = 0;  // the window in which it begins
  };
  struct OnTrackNow {
    size_t window = 0;
    std::vector<Open> open;
    std::vector<Span> begun;      // beside `open`: as it is begun again
    std::optional<double> value;  // of a counter, in `window`
  };

  size_t WindowOf(TimelineTime time) const;
  // Pushes each window's part of something that has a begin and an end.
  template <class Stretch, class Push>
  void Divide(const Stretch& whole, const Push& push);
  OnTrackNow& At(TrackId track);
  // Begins what is open again behind the edges up to `window`.
  void MoveTo(size_t window, OnTrackNow* now);
  void PushLate(const Span& span);

  Interval range_;
  int64_t length_ns_;  // of a window
  std::vector<TimelineSink*> sinks_;
  std::vector<OnTrackNow> tracks_;  // by id
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_WINDOW_SINK_H_

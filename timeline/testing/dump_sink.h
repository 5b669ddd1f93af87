// SPDX-License-Identifier: Apache-2.0
// A timeline as text, one line per thing, for tests. Checks the order contract of sink.h as it
// goes.
#ifndef SYNCLINE_TIMELINE_TESTING_DUMP_SINK_H_
#define SYNCLINE_TIMELINE_TESTING_DUMP_SINK_H_

#include <map>
#include <string>
#include <vector>

#include "timeline/sink.h"

namespace syncline::timeline::testing {

class DumpSink final : public TimelineSink {
 public:
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

  const std::string& text() const { return text_; }
  // Breaches of the contract; empty is good.
  const std::vector<std::string>& breaches() const { return breaches_; }

 private:
  std::string TrackPath(TrackId id) const;
  std::string Text(TextId id) const;
  // Of a span that was just closed, with those that were closed inside of it.
  void CheckNesting(const Span& span);
  std::string Arguments(const std::vector<Argument>& arguments) const;
  void Line(std::string line);
  void Breach(std::string what) { breaches_.push_back(std::move(what)); }

  std::map<TextId, std::string> texts_{{kNoText, ""}};
  std::map<TrackId, Track> tracks_;
  std::map<TrackId, std::vector<Span>> open_;
  std::map<TrackId, std::vector<std::vector<Span>>> closed_;  // by level, inside of what is open
  std::map<TrackId, TimelineTime> last_;
  std::string text_;
  std::vector<std::string> breaches_;
  bool finished_ = false;
};

}  // namespace syncline::timeline::testing

#endif  // SYNCLINE_TIMELINE_TESTING_DUMP_SINK_H_

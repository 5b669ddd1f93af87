// SPDX-License-Identifier: Apache-2.0
// Between the builder and its sinks: interns texts, numbers tracks, hands everything to every sink.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_EMITTER_H_
#define SYNCLINE_TIMELINE_EMITTER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "timeline/sink.h"

namespace syncline::timeline {

class Emitter {
 public:
  explicit Emitter(std::vector<TimelineSink*> sinks) : sinks_(std::move(sinks)) {}

  // The id of `text`, announced to the sinks when it is new. The empty string is kNoText.
  TextId Text(std::string_view text);
  // Of an id that this gave.
  std::string_view TextOf(TextId id) const;
  // Numbers the track and announces it; `track.id` is ignored.
  TrackId AddTrack(Track track);
  // Of an arrow inside one process; those between processes are numbered by the builder, below.
  uint64_t NewFlowId() { return next_flow_++; }
  // Of a node; kNoTrack: it was not added.
  TrackId NodeTrack(uint32_t node) const;

  void SpanBegin(const Span& span);
  void SpanEnd(const Span& span);
  // Begin and end of a span that is pushed late.
  void LateSpan(Span span);
  void Push(const Instant& instant);
  void Push(const CounterValue& value);
  void Push(const CodeSample& sample);
  void Push(const ThreadState& state);
  void Push(const Flow& flow);
  void Push(const Hole& hole);
  void Push(const ClockBound& bound);
  void Push(const ClockEvent& event);
  absl::Status Finish();

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  std::vector<TimelineSink*> sinks_;
  std::unordered_map<std::string, TextId, Hash, std::equal_to<>> texts_;
  std::vector<const std::string*> texts_by_id_;  // from 1 on: keys of texts_
  TrackId next_track_ = 0;
  uint64_t next_flow_ = uint64_t{1} << 32;
  std::unordered_map<uint32_t, TrackId> node_tracks_;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_EMITTER_H_

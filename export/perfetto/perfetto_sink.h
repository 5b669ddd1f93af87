// SPDX-License-Identifier: Apache-2.0
// The timeline as a Perfetto trace: opens in ui.perfetto.dev and in trace_processor.
//
// How it is laid out:
//   - Where the tracks stand, and why: track_tree.h. What times are: file_clock.h.
//   - Each track is a packet sequence of its own, with its own interned names and its own
//     incremental clock: most packets are some 15 bytes. What is pushed late (sink.h) gives its
//     time in full; trace_processor sorts.
//   - A late span of a thread is written up to 16 ns early, outer ones earlier: trace_processor
//     nests by time and, for equal times, by order in the file.
//   - Holes are slices of the category "hole" on tracks of their own; the clock bound is a counter
//     of the node. A span's arguments are attached to its end, where they are complete.
//   - A sample of code is an instant of the category "sample", called by the function that ran,
//     with its stack as the event's callstack, which older readers leave out.
//   - States of a thread are slices of the category "scheduling"; where it slept there is none.
//   - T, timeline time 0, is an instant of the category "timeline".
//
// The same calls give the same bytes. Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_PERFETTO_PERFETTO_SINK_H_
#define SYNCLINE_EXPORT_PERFETTO_PERFETTO_SINK_H_

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "export/perfetto/file_clock.h"
#include "export/perfetto/packet_buffer.h"
#include "export/perfetto/proto_writer.h"
#include "export/perfetto/stack_table.h"
#include "export/perfetto/track_tree.h"
#include "timeline/sink.h"

namespace syncline::perfetto {

struct Options {
  int64_t epoch_unix_ns = 0;  // timeline zero as Unix time, for the viewer's clock; 0: unknown
  bool mark_zero = true;      // whether T is among what is shown
};

class PerfettoSink final : public timeline::TimelineSink {
 public:
  // `out` outlives the sink; binary. Errors of writing surface in Finish().
  PerfettoSink(std::ostream* out, const Options& options);

  void OnText(timeline::TextId id, std::string_view text) override;
  void OnTrack(const timeline::Track& track) override;
  void OnSpanBegin(const timeline::Span& span) override;
  void OnSpanEnd(const timeline::Span& span) override;
  void OnInstant(const timeline::Instant& instant) override;
  void OnCounter(const timeline::CounterValue& value) override;
  void OnCodeSample(const timeline::CodeSample& sample) override;
  void OnThreadState(const timeline::ThreadState& state) override;
  void OnFlow(const timeline::Flow& flow) override;
  void OnHole(const timeline::Hole& hole) override;
  void OnClockBound(const timeline::ClockBound& bound) override;
  void OnClockEvent(const timeline::ClockEvent& event) override;
  absl::Status Finish() override;

 private:
  struct Sequence {
    uint64_t uuid = 0;
    uint64_t last_ns = 0;
    bool started = false;
    SequenceBytes bytes;
    SeenTexts names;
    SeenTexts categories;
    SeenTexts keys;
  };
  // Intervals that may overlap need tracks beside each other: slices of one may only nest.
  struct Lane {
    uint64_t uuid = 0;
    int64_t end_ns = 0;
  };
  struct LanesOf {
    TrackTree::Extra track;
    std::vector<Lane> lanes;
  };
  enum class EventType : uint64_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

  Sequence& SequenceOf(uint64_t uuid) {
    if (sequences_.size() <= uuid) [[unlikely]]
      sequences_.resize(uuid + 1);
    return sequences_[uuid];
  }
  // Whether the span's texts are interned on it.
  static bool Knows(const Sequence& sequence, const timeline::Span& span) {
    return (span.name == timeline::kNoText || sequence.names.Has(span.name)) &&
           (span.category == timeline::kNoText || sequence.categories.Has(span.category));
  }
  // Writes a packet with `event` (a TrackEvent) and the names it needs.
  void WriteEvent(Sequence* sequence, uint64_t time_ns, const ProtoWriter& event);
  void WritePacket(const ProtoWriter& packet);
  void StartSequence(Sequence* sequence, uint64_t time_ns);
  void MarkZero();
  // `begin`: what it is, with all that is to be said of it.
  void WriteInterval(LanesOf* lanes, TimelineTime begin, TimelineTime end,
                     const ProtoWriter& begin_event);

  // Fields of the TrackEvent, interning on the way (into interned_).
  void PutName(Sequence* sequence, timeline::TextId name, ProtoWriter* event);
  void PutCategory(Sequence* sequence, timeline::TextId category, ProtoWriter* event);
  void PutArguments(Sequence* sequence, const std::vector<timeline::Argument>& arguments,
                    ProtoWriter* event);
  static void PutText(std::string_view key, std::string_view value, ProtoWriter* event);
  void PutValue(const timeline::Argument& argument, ProtoWriter* annotation) const;

  std::ostream* out_;
  FileClock clock_;  // before what writes packets: its own is the first
  PacketBuffer packets_;
  TrackTree tracks_;
  Options options_;
  std::vector<std::string> texts_{""};
  std::vector<Sequence> sequences_;                // by uuid
  std::map<uint64_t, StackTable> stacks_;          // by uuid of the track they are on
  std::map<uint64_t, LanesOf> hole_lanes_;         // by uuid of the track they speak of
  std::map<uint32_t, LanesOf> clock_event_lanes_;  // by node
  std::map<uint32_t, uint64_t> bound_tracks_;      // by node
  ProtoWriter interned_;
};

}  // namespace syncline::perfetto

#endif  // SYNCLINE_EXPORT_PERFETTO_PERFETTO_SINK_H_

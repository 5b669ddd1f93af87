// SPDX-License-Identifier: Apache-2.0
#include "export/perfetto/perfetto_sink.h"

#include <algorithm>
#include <utility>

#include "export/perfetto/fields.h"

namespace syncline::perfetto {
namespace {

using timeline::TrackKind;

constexpr int64_t kLateNudgeNs = 16;

}  // namespace

PerfettoSink::PerfettoSink(std::ostream* out, const Options& options)
    : out_(out),
      clock_(out, options.epoch_unix_ns),
      packets_(out),
      tracks_(&packets_),
      options_(options) {}

void PerfettoSink::WritePacket(const ProtoWriter& packet) { packets_.Packet(packet.bytes()); }

void PerfettoSink::StartSequence(Sequence* sequence, uint64_t time_ns) {
  sequence->uuid = static_cast<uint64_t>(sequence - sequences_.data());
  sequence->bytes = SequenceBytes(sequence->uuid);
  ProtoWriter local;
  local.Varint(snapshot::kClockId, snapshot::kSequenceLocal);
  local.Varint(snapshot::kTimestamp, time_ns);
  local.Varint(snapshot::kIsIncremental, 1);
  ProtoWriter timeline;
  timeline.Varint(snapshot::kClockId, snapshot::kTimeline);
  timeline.Varint(snapshot::kTimestamp, time_ns);
  ProtoWriter clocks;
  clocks.Message(snapshot::kClock, local);
  clocks.Message(snapshot::kClock, timeline);
  ProtoWriter event_defaults;
  event_defaults.Varint(defaults::kTrackUuid, sequence->uuid);
  ProtoWriter packet_defaults;
  packet_defaults.Varint(defaults::kTimestampClockId, snapshot::kSequenceLocal);
  packet_defaults.Message(defaults::kTrackEventDefaults, event_defaults);
  ProtoWriter first;
  first.Varint(packet::kSequenceId, sequence->uuid);
  first.Varint(packet::kSequenceFlags, packet::kStateCleared);
  first.Varint(packet::kFirstOnSequence, 1);
  first.Message(packet::kDefaults, packet_defaults);
  first.Message(packet::kClockSnapshot, clocks);
  WritePacket(first);
  sequence->last_ns = time_ns;
  sequence->started = true;
}

void PerfettoSink::WriteEvent(Sequence* sequence, uint64_t time_ns, const ProtoWriter& event) {
  if (!sequence->started) StartSequence(sequence, time_ns);
  ProtoWriter out;
  if (time_ns >= sequence->last_ns) {
    out.Varint(packet::kTimestamp, time_ns - sequence->last_ns);
    sequence->last_ns = time_ns;
  } else {
    out.Varint(packet::kTimestamp, time_ns);
    out.Varint(packet::kTimestampClockId, snapshot::kTimeline);
  }
  out.Varint(packet::kSequenceId, sequence->uuid);
  out.Varint(packet::kSequenceFlags, packet::kNeedsState);
  if (!interned_.empty()) {
    out.Message(packet::kInternedData, interned_);
    interned_.Clear();
  }
  out.Message(packet::kTrackEvent, event);
  WritePacket(out);
}

void PerfettoSink::OnText(timeline::TextId id, std::string_view text) {
  if (texts_.size() <= id) texts_.resize(id + 1);
  texts_[id] = text;
}

void PerfettoSink::OnTrack(const timeline::Track& track) { tracks_.Add(track); }

void PerfettoSink::PutText(std::string_view key, std::string_view value, ProtoWriter* event) {
  ProtoWriter annotation;
  annotation.Bytes(annotation::kName, key);
  annotation.Bytes(annotation::kText, value);
  event->Message(event::kAnnotation, annotation);
}

void PerfettoSink::PutName(Sequence* sequence, timeline::TextId name, ProtoWriter* event) {
  if (name == timeline::kNoText) return;
  if (sequence->names.Add(name)) {
    ProtoWriter entry;
    entry.Varint(interned::kIid, name);
    entry.Bytes(interned::kText, texts_[name]);
    interned_.Message(interned::kName, entry);
  }
  event->Varint(event::kNameIid, name);
}

void PerfettoSink::PutCategory(Sequence* sequence, timeline::TextId category, ProtoWriter* event) {
  if (category == timeline::kNoText) return;
  if (sequence->categories.Add(category)) {
    ProtoWriter entry;
    entry.Varint(interned::kIid, category);
    entry.Bytes(interned::kText, texts_[category]);
    interned_.Message(interned::kCategory, entry);
  }
  event->Varint(event::kCategoryIid, category);
}

void PerfettoSink::PutValue(const timeline::Argument& argument, ProtoWriter* annotation) const {
  switch (argument.kind) {
    case timeline::Argument::Kind::kInt:
      annotation->Varint(annotation::kInt, static_cast<uint64_t>(argument.i));
      break;
    case timeline::Argument::Kind::kUint:
      annotation->Varint(annotation::kUint, argument.u);
      break;
    case timeline::Argument::Kind::kReal:
      annotation->Double(annotation::kDouble, argument.d);
      break;
    case timeline::Argument::Kind::kText:
      annotation->Bytes(annotation::kText, texts_[argument.text]);
      break;
  }
}

void PerfettoSink::PutArguments(Sequence* sequence,
                                const std::vector<timeline::Argument>& arguments,
                                ProtoWriter* event) {
  for (size_t i = 0; i < arguments.size();) {
    const timeline::TextId key = arguments[i].key;
    size_t end = i + 1;  // a key that repeats is an array
    while (end < arguments.size() && arguments[end].key == key) ++end;
    ProtoWriter annotation;
    if (key == timeline::kNoText) {
      annotation.Bytes(annotation::kName, "metadata");
    } else {
      if (sequence->keys.Add(key)) {
        ProtoWriter entry;
        entry.Varint(interned::kIid, key);
        entry.Bytes(interned::kText, texts_[key]);
        interned_.Message(interned::kAnnotationName, entry);
      }
      annotation.Varint(annotation::kNameIid, key);
    }
    if (end == i + 1) {
      PutValue(arguments[i], &annotation);
    } else {
      for (; i < end; ++i) {
        ProtoWriter element;
        PutValue(arguments[i], &element);
        annotation.Message(annotation::kArray, element);
      }
    }
    event->Message(event::kAnnotation, annotation);
    i = end;
  }
}

void PerfettoSink::OnSpanBegin(const timeline::Span& span) {
  const KnownTrack& track = tracks_[span.track];
  Sequence& sequence = SequenceOf(track.uuid);
  TimelineTime begin = span.begin;
  if (span.late && track.kind == TrackKind::kThread) {
    begin.ns -= kLateNudgeNs - std::min<int64_t>(span.depth, kLateNudgeNs - 1);
  }
  const uint64_t time_ns = clock_.At(begin);
  const bool plain =
      sequence.started && time_ns >= sequence.last_ns && span.arrow == 0 && Knows(sequence, span);
  if (plain) [[likely]] {
    packets_.SpanBegin(sequence.bytes, time_ns - sequence.last_ns, span.name, span.category);
    sequence.last_ns = time_ns;
    return;
  }
  ProtoWriter event;
  event.Varint(event::kType, static_cast<uint64_t>(EventType::kBegin));
  PutName(&sequence, span.name, &event);
  PutCategory(&sequence, span.category, &event);
  // Of a part behind a cut the begin is not where the arrow ends.
  if (span.arrow != 0 && !span.clipped_begin) event.Fixed64(event::kFlowId, span.arrow);
  WriteEvent(&sequence, time_ns, event);
}

void PerfettoSink::OnSpanEnd(const timeline::Span& span) {
  Sequence& sequence = SequenceOf(tracks_[span.track].uuid);
  const uint64_t time_ns = clock_.At(span.end);
  const bool plain = span.arguments.empty() && !span.clipped_begin && !span.clipped_end &&
                     !span.suspect && sequence.started && time_ns >= sequence.last_ns;
  if (plain) [[likely]] {
    packets_.SpanEnd(sequence.bytes, time_ns - sequence.last_ns);
    sequence.last_ns = time_ns;
    return;
  }
  ProtoWriter event;
  event.Varint(event::kType, static_cast<uint64_t>(EventType::kEnd));
  PutArguments(&sequence, span.arguments, &event);
  if (span.clipped_begin) PutText("clipped begin", "its begin was not recorded", &event);
  if (span.clipped_end) PutText("clipped end", "its end was not recorded", &event);
  if (span.suspect) PutText("suspect", "events were lost while it was open", &event);
  WriteEvent(&sequence, time_ns, event);
}

void PerfettoSink::OnInstant(const timeline::Instant& instant) {
  Sequence& sequence = SequenceOf(tracks_[instant.track].uuid);
  ProtoWriter event;
  event.Varint(event::kType, static_cast<uint64_t>(EventType::kInstant));
  PutName(&sequence, instant.name, &event);
  PutCategory(&sequence, instant.category, &event);
  PutArguments(&sequence, instant.arguments, &event);
  WriteEvent(&sequence, clock_.At(instant.time), event);
}

void PerfettoSink::OnCounter(const timeline::CounterValue& value) {
  ProtoWriter event;
  event.Varint(event::kType, static_cast<uint64_t>(EventType::kCounter));
  event.Double(event::kDoubleCounter, value.value);
  WriteEvent(&SequenceOf(tracks_[value.track].uuid), clock_.At(value.time), event);
}

void PerfettoSink::OnCodeSample(const timeline::CodeSample& sample) {
  const uint64_t uuid = tracks_[sample.track].uuid;
  Sequence& sequence = SequenceOf(uuid);
  ProtoWriter event;
  event.Varint(event::kType, static_cast<uint64_t>(EventType::kInstant));
  PutName(&sequence, sample.stack[sample.self].function, &event);
  event.Bytes(event::kCategory, "sample");
  event.Varint(event::kCallstackIid, stacks_[uuid].Intern(sample.stack, texts_, &interned_));
  WriteEvent(&sequence, clock_.At(sample.time), event);
}

void PerfettoSink::OnThreadState(const timeline::ThreadState& state) {
  if (state.state == timeline::ThreadState::State::kAsleep) return;
  OnSpanBegin(state);
  OnSpanEnd(state);
}

void PerfettoSink::OnFlow(const timeline::Flow& flow) {
  if (flow.between_begins) return;  // the begins of the spans have it
  // An instant on either side: the spans themselves may be written already.
  const auto end = [&](timeline::TrackId track, TimelineTime time) {
    Sequence& sequence = SequenceOf(tracks_[track].uuid);
    ProtoWriter event;
    event.Varint(event::kType, static_cast<uint64_t>(EventType::kInstant));
    PutName(&sequence, flow.name, &event);
    event.Fixed64(event::kFlowId, flow.id);
    WriteEvent(&sequence, clock_.At(time), event);
  };
  end(flow.from, flow.sent);
  end(flow.to, flow.received);
}

void PerfettoSink::WriteInterval(LanesOf* lanes, TimelineTime begin, TimelineTime end,
                                 const ProtoWriter& begin_event) {
  const uint64_t begin_ns = clock_.At(begin);
  const uint64_t end_ns = std::max(begin_ns, clock_.At(end));
  auto lane = std::find_if(lanes->lanes.begin(), lanes->lanes.end(), [&](const Lane& one) {
    return one.end_ns <= static_cast<int64_t>(begin_ns);
  });
  if (lane == lanes->lanes.end()) {
    lane = lanes->lanes.insert(lane, {tracks_.Add(lanes->track), 0});
  }
  lane->end_ns = static_cast<int64_t>(end_ns);
  Sequence& sequence = SequenceOf(lane->uuid);
  WriteEvent(&sequence, begin_ns, begin_event);
  ProtoWriter end_event;
  end_event.Varint(event::kType, static_cast<uint64_t>(EventType::kEnd));
  WriteEvent(&sequence, end_ns, end_event);
}

void PerfettoSink::OnHole(const timeline::Hole& hole) {
  const KnownTrack& track = tracks_[hole.track];
  LanesOf& lanes = hole_lanes_[track.uuid];
  const bool of_a_part = track.kind == TrackKind::kThread || track.kind == TrackKind::kGroup;
  lanes.track = {.parent_uuid = track.process_uuid,
                 .place = Place::kMissing,
                 .name = of_a_part ? "not recorded · " + track.name : "not recorded",
                 .description = "What the recording does not have, and why."};
  ProtoWriter begin;
  begin.Varint(event::kType, static_cast<uint64_t>(EventType::kBegin));
  begin.Bytes(event::kName, LossReasonName(hole.loss.reason));
  begin.Bytes(event::kCategory, "hole");
  if (hole.loss.count.has_value()) {
    ProtoWriter count;
    count.Bytes(annotation::kName, "count");
    count.Varint(annotation::kUint, *hole.loss.count);
    begin.Message(event::kAnnotation, count);
  }
  if (!hole.loss.source.empty()) PutText("source", hole.loss.source, &begin);
  if (!hole.loss.detail.empty()) PutText("detail", hole.loss.detail, &begin);
  WriteInterval(&lanes, hole.begin, hole.end, begin);
}

void PerfettoSink::OnClockEvent(const timeline::ClockEvent& event) {
  LanesOf& lanes = clock_event_lanes_[event.node];
  lanes.track = {.parent_uuid = tracks_.NodeUuid(event.node),
                 .place = Place::kMissing,
                 .name = "clock events",
                 .description = "What happened to this node's clock. The bound allows for it."};
  ProtoWriter begin;
  begin.Varint(event::kType, static_cast<uint64_t>(EventType::kBegin));
  begin.Bytes(event::kName, event.name);
  begin.Bytes(event::kCategory, "clock");
  PutText("what", event.text, &begin);
  WriteInterval(&lanes, event.begin, event.end, begin);
}

void PerfettoSink::OnClockBound(const timeline::ClockBound& bound) {
  if (!bound.bound_ns.has_value()) return;
  uint64_t& uuid = bound_tracks_[bound.node];
  if (uuid == 0) {
    ProtoWriter counter;
    counter.Bytes(descriptor::kCounterUnitName, "ns");
    uuid = tracks_.Add({.parent_uuid = tracks_.NodeUuid(bound.node),
                        .place = Place::kCounters,
                        .name = "clock bound",
                        .description = "Events of this node are at most so far from where they "
                                       "are drawn.",
                        .counter = &counter});
  }
  ProtoWriter event;
  event.Varint(event::kType, static_cast<uint64_t>(EventType::kCounter));
  event.Double(event::kDoubleCounter, static_cast<double>(*bound.bound_ns));
  WriteEvent(&SequenceOf(uuid), clock_.At(bound.time), event);
}

// On "all nodes", where it is seen at first sight, and below, since a track without others below it
// would stand elsewhere.
void PerfettoSink::MarkZero() {
  for (const uint64_t uuid :
       {TrackTree::kAllNodes, tracks_.Add({.parent_uuid = TrackTree::kAllNodes,
                              .place = Place::kThreads,
                              .name = "T, timeline time 0"})}) {
    ProtoWriter event;
    event.Varint(event::kType, static_cast<uint64_t>(EventType::kInstant));
    event.Bytes(event::kName, "T");
    event.Bytes(event::kCategory, "timeline");
    WriteEvent(&SequenceOf(uuid), clock_.At(TimelineTime{0}), event);
  }
}

absl::Status PerfettoSink::Finish() {
  if (options_.mark_zero) MarkZero();
  tracks_.Finish();
  packets_.Flush();
  clock_.Finish();
  out_->flush();
  if (!out_->good()) return absl::ResourceExhaustedError("cannot write the Perfetto trace");
  return absl::OkStatus();
}

}  // namespace syncline::perfetto

// SPDX-License-Identifier: Apache-2.0
#include "export/perfetto/perfetto_sink.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace syncline::perfetto {
namespace {

using timeline::TrackKind;

// Field numbers of Perfetto's protos (protos/perfetto/trace/...), which never change.
namespace trace {
constexpr uint32_t kPacket = 1;
}
namespace packet {
constexpr uint32_t kClockSnapshot = 6;
constexpr uint32_t kTimestamp = 8;
constexpr uint32_t kSequenceId = 10;
constexpr uint32_t kTrackEvent = 11;
constexpr uint32_t kInternedData = 12;
constexpr uint32_t kSequenceFlags = 13;
constexpr uint32_t kTimestampClockId = 58;
constexpr uint32_t kDefaults = 59;
constexpr uint32_t kTrackDescriptor = 60;
constexpr uint32_t kFirstOnSequence = 87;
constexpr uint64_t kStateCleared = 1;
constexpr uint64_t kNeedsState = 2;
}  // namespace packet
namespace defaults {
constexpr uint32_t kTrackEventDefaults = 11;
constexpr uint32_t kTrackUuid = 11;
constexpr uint32_t kTimestampClockId = 58;
}  // namespace defaults
namespace snapshot {
constexpr uint32_t kClock = 1;
constexpr uint32_t kClockId = 1;
constexpr uint32_t kTimestamp = 2;
constexpr uint32_t kIsIncremental = 3;
constexpr uint64_t kRealtime = 1;
constexpr uint64_t kBoottime = 6;
constexpr uint64_t kSequenceLocal = 64;
}  // namespace snapshot
namespace descriptor {
constexpr uint32_t kUuid = 1;
constexpr uint32_t kName = 2;
constexpr uint32_t kProcess = 3;
constexpr uint32_t kThread = 4;
constexpr uint32_t kParent = 5;
constexpr uint32_t kCounter = 8;
constexpr uint32_t kProcessPid = 1;
constexpr uint32_t kProcessCommand = 2;
constexpr uint32_t kProcessName = 6;
constexpr uint32_t kThreadPid = 1;
constexpr uint32_t kThreadTid = 2;
constexpr uint32_t kThreadName = 5;
constexpr uint32_t kCounterUnitName = 6;
}  // namespace descriptor
namespace event {
constexpr uint32_t kCategoryIid = 3;
constexpr uint32_t kAnnotation = 4;
constexpr uint32_t kType = 9;
constexpr uint32_t kNameIid = 10;
constexpr uint32_t kCategory = 22;
constexpr uint32_t kName = 23;
constexpr uint32_t kDoubleCounter = 44;
constexpr uint32_t kFlowId = 47;
}  // namespace event
namespace interned {
constexpr uint32_t kCategory = 1;
constexpr uint32_t kName = 2;
constexpr uint32_t kAnnotationName = 3;
constexpr uint32_t kIid = 1;
constexpr uint32_t kText = 2;
}  // namespace interned
namespace annotation {
constexpr uint32_t kNameIid = 1;
constexpr uint32_t kUint = 3;
constexpr uint32_t kInt = 4;
constexpr uint32_t kDouble = 5;
constexpr uint32_t kText = 6;
constexpr uint32_t kName = 10;
constexpr uint32_t kArray = 12;
}  // namespace annotation

constexpr int64_t kLateNudgeNs = 16;

}  // namespace

PerfettoSink::PerfettoSink(std::ostream* out, const Options& options)
    : out_(out), packets_(out), options_(options) {
  if (options.epoch_unix_ns <= 0) return;
  ProtoWriter boottime;
  boottime.Varint(snapshot::kClockId, snapshot::kBoottime);
  boottime.Varint(snapshot::kTimestamp, static_cast<uint64_t>(kOriginNs));
  ProtoWriter realtime;
  realtime.Varint(snapshot::kClockId, snapshot::kRealtime);
  realtime.Varint(snapshot::kTimestamp, static_cast<uint64_t>(options.epoch_unix_ns));
  ProtoWriter clocks;
  clocks.Message(snapshot::kClock, boottime);
  clocks.Message(snapshot::kClock, realtime);
  ProtoWriter first;
  first.Message(packet::kClockSnapshot, clocks);
  WritePacket(first);
}

void PerfettoSink::WritePacket(const ProtoWriter& packet) { packets_.Packet(packet.bytes()); }

void PerfettoSink::StartSequence(Sequence* sequence, uint64_t time_ns) {
  sequence->uuid = static_cast<uint64_t>(sequence - sequences_.data());
  sequence->bytes = SequenceBytes(sequence->uuid);
  ProtoWriter local;
  local.Varint(snapshot::kClockId, snapshot::kSequenceLocal);
  local.Varint(snapshot::kTimestamp, time_ns);
  local.Varint(snapshot::kIsIncremental, 1);
  ProtoWriter boottime;
  boottime.Varint(snapshot::kClockId, snapshot::kBoottime);
  boottime.Varint(snapshot::kTimestamp, time_ns);
  ProtoWriter clocks;
  clocks.Message(snapshot::kClock, local);
  clocks.Message(snapshot::kClock, boottime);
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
    out.Varint(packet::kTimestampClockId, snapshot::kBoottime);
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

void PerfettoSink::WriteProcess(const timeline::Track& track, KnownTrack* known) {
  known->pid = next_pid_++;
  known->process_uuid = known->uuid;
  ProtoWriter process;
  process.Varint(descriptor::kProcessPid, known->pid);
  for (const auto& [key, value] : track.facts) {
    if (key == "command line") process.Bytes(descriptor::kProcessCommand, value);
  }
  process.Bytes(descriptor::kProcessName, track.name);
  ProtoWriter out;
  out.Varint(descriptor::kUuid, known->uuid);
  out.Message(descriptor::kProcess, process);
  ProtoWriter packet;
  packet.Varint(packet::kSequenceId, known->uuid);
  packet.Message(packet::kTrackDescriptor, out);
  WritePacket(packet);
}

void PerfettoSink::WriteChildTrack(const timeline::Track& track, KnownTrack* known) {
  const KnownTrack& parent = tracks_[track.parent];
  known->process_uuid = parent.process_uuid;
  known->pid = parent.pid;
  ProtoWriter out;
  out.Varint(descriptor::kUuid, known->uuid);
  out.Varint(descriptor::kParent, parent.uuid);
  if (track.kind == TrackKind::kThread) {
    ProtoWriter thread;
    thread.Varint(descriptor::kThreadPid, parent.pid);
    thread.Varint(descriptor::kThreadTid, next_pid_++);
    thread.Bytes(descriptor::kThreadName, track.name);
    out.Message(descriptor::kThread, thread);
  } else {
    out.Bytes(descriptor::kName, track.name);
  }
  if (track.kind == TrackKind::kCounter) {
    ProtoWriter counter;
    if (!track.unit.empty()) counter.Bytes(descriptor::kCounterUnitName, track.unit);
    out.Message(descriptor::kCounter, counter);
  }
  ProtoWriter packet;
  packet.Varint(packet::kSequenceId, known->uuid);
  packet.Message(packet::kTrackDescriptor, out);
  WritePacket(packet);
}

void PerfettoSink::OnTrack(const timeline::Track& track) {
  KnownTrack known;
  known.kind = track.kind;
  known.uuid = next_uuid_++;
  known.name = track.name;
  if (track.kind == TrackKind::kNode) {
    timeline::Track named = track;
    named.name = "node " + track.name;
    WriteProcess(named, &known);
    node_uuids_[track.node] = known.uuid;
  } else if (track.kind == TrackKind::kProcess || track.kind == TrackKind::kFleet) {
    WriteProcess(track, &known);
  } else {
    WriteChildTrack(track, &known);
  }
  WriteFacts(track, known);
  if (tracks_.size() <= track.id) tracks_.resize(track.id + 1);
  tracks_[track.id] = std::move(known);
}

void PerfettoSink::PutText(std::string_view key, std::string_view value, ProtoWriter* event) {
  ProtoWriter annotation;
  annotation.Bytes(annotation::kName, key);
  annotation.Bytes(annotation::kText, value);
  event->Message(event::kAnnotation, annotation);
}

// On the node's or process's own track: a thread's track holds what the thread did and nothing
// else.
void PerfettoSink::WriteFacts(const timeline::Track& track, const KnownTrack& known) {
  const bool is_thread = track.kind == TrackKind::kThread && track.tid != 0;
  if (track.facts.empty() && !is_thread) return;
  ProtoWriter event;
  event.Varint(event::kType, static_cast<uint64_t>(EventType::kInstant));
  event.Bytes(event::kName, is_thread ? "thread " + track.name : "facts");
  event.Bytes(event::kCategory, "facts");
  for (const auto& [key, value] : track.facts) PutText(key, value, &event);
  if (is_thread) PutText("tid", absl::StrCat(track.tid), &event);
  WriteEvent(&SequenceOf(known.process_uuid), FileTime(options_.facts_time), event);
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
  const uint64_t time_ns = FileTime(begin);
  const bool plain = sequence.started && time_ns >= sequence.last_ns && Knows(sequence, span);
  if (plain) [[likely]] {
    packets_.SpanBegin(sequence.bytes, time_ns - sequence.last_ns, span.name, span.category);
    sequence.last_ns = time_ns;
    return;
  }
  ProtoWriter event;
  event.Varint(event::kType, static_cast<uint64_t>(EventType::kBegin));
  PutName(&sequence, span.name, &event);
  PutCategory(&sequence, span.category, &event);
  WriteEvent(&sequence, time_ns, event);
}

void PerfettoSink::OnSpanEnd(const timeline::Span& span) {
  Sequence& sequence = SequenceOf(tracks_[span.track].uuid);
  const uint64_t time_ns = FileTime(span.end);
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
  WriteEvent(&sequence, FileTime(instant.time), event);
}

void PerfettoSink::OnCounter(const timeline::CounterValue& value) {
  ProtoWriter event;
  event.Varint(event::kType, static_cast<uint64_t>(EventType::kCounter));
  event.Double(event::kDoubleCounter, value.value);
  WriteEvent(&SequenceOf(tracks_[value.track].uuid), FileTime(value.time), event);
}

void PerfettoSink::OnFlow(const timeline::Flow& flow) {
  // An instant on either side: the spans themselves may be written already.
  const auto end = [&](timeline::TrackId track, TimelineTime time) {
    Sequence& sequence = SequenceOf(tracks_[track].uuid);
    ProtoWriter event;
    event.Varint(event::kType, static_cast<uint64_t>(EventType::kInstant));
    PutName(&sequence, flow.name, &event);
    event.Fixed64(event::kFlowId, flow.id);
    WriteEvent(&sequence, FileTime(time), event);
  };
  end(flow.from, flow.sent);
  end(flow.to, flow.received);
}

uint64_t PerfettoSink::WriteNamedTrack(uint64_t parent_uuid, std::string_view name,
                                       const ProtoWriter* counter) {
  const uint64_t uuid = next_uuid_++;
  ProtoWriter out;
  out.Varint(descriptor::kUuid, uuid);
  out.Varint(descriptor::kParent, parent_uuid);
  out.Bytes(descriptor::kName, name);
  if (counter != nullptr) out.Message(descriptor::kCounter, *counter);
  ProtoWriter packet;
  packet.Varint(packet::kSequenceId, uuid);
  packet.Message(packet::kTrackDescriptor, out);
  WritePacket(packet);
  return uuid;
}

void PerfettoSink::WriteInterval(LanesOf* lanes, TimelineTime begin, TimelineTime end,
                                 const ProtoWriter& begin_event) {
  const uint64_t begin_ns = FileTime(begin);
  const uint64_t end_ns = std::max(begin_ns, FileTime(end));
  auto lane = std::find_if(lanes->lanes.begin(), lanes->lanes.end(), [&](const Lane& one) {
    return one.end_ns <= static_cast<int64_t>(begin_ns);
  });
  if (lane == lanes->lanes.end()) {
    lane = lanes->lanes.insert(lane, {WriteNamedTrack(lanes->parent_uuid, lanes->name), 0});
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
  lanes.parent_uuid = track.process_uuid;
  lanes.name = of_a_part ? "holes · " + track.name : "holes";
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
  lanes.parent_uuid = node_uuids_[event.node];
  lanes.name = "clock events";
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
    uuid = WriteNamedTrack(node_uuids_[bound.node], "clock bound", &counter);
  }
  ProtoWriter event;
  event.Varint(event::kType, static_cast<uint64_t>(EventType::kCounter));
  event.Double(event::kDoubleCounter, static_cast<double>(*bound.bound_ns));
  WriteEvent(&SequenceOf(uuid), FileTime(bound.time), event);
}

absl::Status PerfettoSink::Finish() {
  packets_.Flush();
  out_->flush();
  if (!out_->good()) return absl::ResourceExhaustedError("cannot write the Perfetto trace");
  return absl::OkStatus();
}

}  // namespace syncline::perfetto

// SPDX-License-Identifier: Apache-2.0
// What the observers of devices share: a call of a thread that asks a device for something, as it
// was made, and what is drawn of what the device did. Thread-safety: plain values.
#ifndef SYNCLINE_TIMELINE_DEVICE_CALL_H_
#define SYNCLINE_TIMELINE_DEVICE_CALL_H_

#include <cstdint>
#include <string>
#include <utility>

#include "timeline/node_context.h"
#include "timeline/node_tables.h"
#include "timeline/sink.h"
#include "timeline/track_table.h"

namespace syncline::timeline {

struct DeviceCall {
  TimelineTime at;
  TrackId track = kNoTrack;  // of the thread
  std::string task;          // "": none was open, or its begin was not seen
  bool outside = false;      // of every task, for certain
  bool answered = false;     // what the device did for it is known
};

inline DeviceCall DeviceCallOf(const NodeEvent& event, const Emitter& emitter, TrackTable* tracks) {
  const ThreadSpans& spans = *tracks->ThreadAt(event.thread).spans;
  const Span* const task = spans.Innermost();
  DeviceCall call;
  call.at = event.at.timeline;
  call.track = spans.track();
  call.outside = spans.IsOutside();
  call.task = task == nullptr ? "" : std::string(emitter.TextOf(task->name));
  return call;
}

inline Argument Number(TextId key, uint64_t value) {
  Argument argument;
  argument.key = key;
  argument.kind = Argument::Kind::kUint;
  argument.u = value;
  return argument;
}

inline Argument Words(TextId key, TextId value) {
  Argument argument;
  argument.key = key;
  argument.kind = Argument::Kind::kText;
  argument.text = value;
  return argument;
}

// Of the process with this number.
inline TrackId AddDeviceTrack(const NodeContext& context, const NodeTables& tables,
                              uint32_t process, TrackId parent, TrackKind kind, std::string name) {
  Track track;
  track.parent = parent;
  track.kind = kind;
  track.name = std::move(name);
  track.node = context.index;
  track.process = tables.processes()[process].key;
  return context.emitter->AddTrack(std::move(track));
}

// An arrow from the call to what the device did.
inline void PushLaunch(const DeviceCall& call, TrackId lane, TimelineTime begin, Emitter* emitter) {
  Flow flow;
  flow.id = emitter->NewFlowId();
  flow.from = call.track;
  flow.to = lane;
  flow.sent = call.at;
  flow.received = begin;
  flow.name = emitter->Text("launch");
  emitter->Push(flow);
}

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_DEVICE_CALL_H_

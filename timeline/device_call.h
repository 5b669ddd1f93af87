// SPDX-License-Identifier: Apache-2.0
// A call of a thread that asks a device for something, as it was made. Thread-safety: plain values.
#ifndef SYNCLINE_TIMELINE_DEVICE_CALL_H_
#define SYNCLINE_TIMELINE_DEVICE_CALL_H_

#include <string>

#include "timeline/node_context.h"
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

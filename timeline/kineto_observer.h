// SPDX-License-Identifier: Apache-2.0
// What events of Kineto's profiles and of XSpaces mean beyond their spans: the work of devices, and
// an arrow from the call that launched it to each kernel, copy and fill. Categories are Kineto's,
// which the reader of XSpaces uses too.
//
// Memory: one entry per call that launched something, and those of device_work.h. Thread-safety:
// one thread.
#ifndef SYNCLINE_TIMELINE_KINETO_OBSERVER_H_
#define SYNCLINE_TIMELINE_KINETO_OBSERVER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/event_cursor.h"
#include "timeline/device_work.h"
#include "timeline/emitter.h"
#include "timeline/wall_placement.h"

namespace syncline::timeline {

class KinetoObserver {
 public:
  // Both outlive this.
  KinetoObserver(WallPlacement* placement, Emitter* emitter)
      : placement_(placement), emitter_(emitter) {}

  struct Event {
    std::string_view category, name;
    std::string_view device;  // "": of a thread
    std::span<const FieldValue> values;
    TimelineTime begin;
    TimelineTime end;
  };
  // All of a profile by their begins: the calls come before what they launched.
  void OnEvent(const Event& event);
  // A step that the program marks, or that the profile has of a device.
  void OnStep(const Event& event, int64_t number);
  // The same event, where its span is going to be shown; SpanFacts::arrow of that.
  uint64_t OnShown(const Event& event, TrackId track);

  // Once, after the last event.
  ProcessDevices TakeDevices() { return work_.Take(); }

 private:
  struct Call {
    TrackId track = kNoTrack;
    uint64_t arrow = 0;
  };

  void Describe(std::span<const FieldValue> values, DeviceWorkBuilder::Event* seen);

  WallPlacement* placement_;
  Emitter* emitter_;
  DeviceWorkBuilder work_;
  std::unordered_map<std::string, Call> calls_;  // by correlation id and begin
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_KINETO_OBSERVER_H_

// SPDX-License-Identifier: Apache-2.0
// What the devices of one process did, by its profile: kernels, copies and fills, each with the
// instant at which the program launched it, and the program's steps.
//
// A kernel is a collective's where the profile names the collective, or else where the kernel is
// one of NCCL's, RCCL's or oneCCL's. Steps are those that PyTorch's profiler was told of
// (ProfilerStep#); without any, what lies between the ends of two steps of the optimizer, by the
// optimizer that comes first.
//
// Memory: one entry per kernel, copy and fill, and every different text once. Thread-safety: one
// thread.
#ifndef SYNCLINE_TIMELINE_DEVICE_WORK_H_
#define SYNCLINE_TIMELINE_DEVICE_WORK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/time.h"
#include "timeline/sink.h"

namespace syncline::timeline {

struct DeviceWork {
  enum class Kind : uint8_t { kCompute, kCollective, kCopy };
  uint32_t device = 0;  // index into ProcessDevices::devices
  Kind kind = Kind::kCompute;
  TimelineTime begin;
  TimelineTime end;
  std::optional<TimelineTime> launched;  // nullopt: no launch in the profile
  uint32_t name = 0;                     // these two index ProcessDevices::texts
  uint32_t operator_name = 0;            // "" where it was launched outside of any operator
};

struct ProgramStep {
  std::string name;
  TimelineTime begin;
  TimelineTime end;
};

struct ProcessDevices {
  TrackId track = kNoTrack;  // the process's
  std::string process;       // its name
  std::vector<std::string> devices;
  std::vector<std::string> texts;
  std::vector<DeviceWork> work;    // by begin
  std::vector<ProgramStep> steps;  // by begin; none overlaps the next
  // From the first begin of an operator to the last end; nullopt: the profile has none. It may have
  // launches outside of that, because it may begin or end with operators at another time.
  std::optional<Interval> operators;
  bool steps_by_optimizer = false;
};

class DeviceWorkBuilder {
 public:
  struct Event {
    std::string_view category, name;
    std::string_view device;         // "": the event is a thread's
    std::string_view collective;     // as the profile names it; "" where it does not
    std::string_view operator_name;  // of what a device did
    TimelineTime begin;
    TimelineTime end;
    std::optional<TimelineTime> launched;
  };
  void OnEvent(const Event& event);

  // Once, after the last event. Nothing where no device did anything.
  ProcessDevices Take();

 private:
  uint32_t Text(std::string_view text);
  uint32_t Device(std::string_view name);

  ProcessDevices made_;
  std::map<std::string, uint32_t, std::less<>> texts_;
  std::vector<ProgramStep> profiler_steps_;
  std::vector<ProgramStep> optimizer_steps_;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_DEVICE_WORK_H_

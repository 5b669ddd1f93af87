// SPDX-License-Identifier: Apache-2.0
// What the devices of one process did, by its profile: kernels, copies and fills, each with the
// instant at which the program launched it, and the program's steps.
//
// A kernel is a collective's where the profile names the collective, or else where the kernel is
// one of NCCL's, RCCL's or oneCCL's. Steps are those that PyTorch's profiler was told of
// (ProfilerStep#); without any, what lies between the ends of two steps of the optimizer, by the
// optimizer that comes first. Of XSpaces they are those that the profiler shows of the device
// itself (TPUs); without any, those that the program marks ("train", step_num 3), of several names
// the one that it marks most.
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
  uint32_t name = 0;                     // these three index ProcessDevices::texts
  uint32_t operator_name = 0;            // "" where it was launched outside of any operator
  uint32_t size = 0;                     // "[16, 1, 1] x [128, 1, 1]": grid and block; "": unknown
  // A collective's kernel that sends to one rank, or receives from one, or may do so: its kernel is
  // NCCL's for that, and the profile does not name the collective.
  bool peer_to_peer = false;
  // Without an operator: it may be of one that began before it was recorded.
  bool operator_unknown = false;
  // StepsBy::kDevice and kTable: index into ProcessDevices::steps; nullopt: it is of none.
  std::optional<size_t> step;
};

struct ProgramStep {
  std::string name;
  TimelineTime begin;
  TimelineTime end;
};

// What says where a step begins and ends. Work belongs to the step in which it was launched. Of the
// device's own steps it belongs to that in which it begins, of a table of spans to that which its
// row says. kTask: the program's own tasks, where no profile but a tracer recorded the device.
enum class StepsBy : uint8_t { kProfiler, kOptimizer, kMark, kDevice, kTable, kTask };

struct ProcessDevices {
  TrackId track = kNoTrack;  // the process's
  ProcessKey key;
  std::string process;  // its name
  std::vector<std::string> devices;
  std::vector<std::string> texts;
  std::vector<DeviceWork> work;  // by begin
  // By begin. None overlaps the next; of StepsBy::kDevice and kTable steps may.
  std::vector<ProgramStep> steps;
  // From the first begin of an operator to the last end; nullopt: the profile has none. It may have
  // launches outside of that, because it may begin or end with operators at another time.
  std::optional<Interval> operators;
  StepsBy steps_by = StepsBy::kProfiler;
  // kTask: calls that asked for something of which nothing was recorded: it was not over when the
  // recording ended, or was lost.
  uint64_t unfinished = 0;
  // What the program itself did; by begin, apart from each other.
  std::vector<Interval> loading;           // it waited for the next batch of a DataLoader
  std::vector<Interval> host_collectives;  // a collective ran on the host (Gloo's)
  std::vector<Interval> sends;             // it sent to, or received from, a single rank
  // A call waited for the device: one that synchronizes; of any other what is beyond 50 µs, because
  // launches wait where the queue is full.
  std::vector<Interval> blocked;
};

class DeviceWorkBuilder {
 public:
  struct Event {
    std::string_view category, name;
    std::string_view device;         // "": the event is a thread's
    std::string_view collective;     // as the profile names it; "" where it does not
    bool is_collective = false;      // the profile says so without naming it
    std::string_view operator_name;  // of what a device did
    std::string_view grid, block;    // of a kernel; "": the profile does not say
    bool operator_unknown = false;   // DeviceWork's
    std::optional<int64_t> step;     // as a table says it
    TimelineTime begin;
    TimelineTime end;
    std::optional<TimelineTime> launched;
  };
  void OnEvent(const Event& event);

  struct Mark {
    std::string_view name;  // "train"
    int64_t number = 0;
    std::string_view device;  // "": the program's
    TimelineTime begin;
    TimelineTime end;
  };
  void OnMark(const Mark& mark);

  // Once, after the last event. Nothing where no device did anything.
  ProcessDevices Take();

 private:
  uint32_t Text(std::string_view text);
  uint32_t Device(std::string_view name);
  // By its name alone: an index into made_.texts.
  bool IsCollectiveKernel(uint32_t name);
  void OnThreadEvent(const Event& event);
  std::vector<ProgramStep> MarkedSteps();
  void ChooseSteps();
  void TakeDeviceSteps();
  void TakeTableSteps();

  ProcessDevices made_;
  std::map<std::string, uint32_t, std::less<>> texts_;
  std::vector<std::optional<bool>> collective_kernels_;  // by text; nullopt: nobody has asked
  std::vector<ProgramStep> profiler_steps_;
  std::vector<ProgramStep> optimizer_steps_;
  std::map<uint32_t, std::vector<ProgramStep>> device_steps_;
  std::vector<std::optional<int64_t>> table_steps_;  // beside work, where a table has any
  std::map<std::string, std::vector<ProgramStep>, std::less<>> marked_steps_;  // by name
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_DEVICE_WORK_H_

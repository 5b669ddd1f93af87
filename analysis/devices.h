// SPDX-License-Identifier: Apache-2.0
// What a device did in each step of the program that uses it.
//
// A step's work is what the program launched in the step; where the profile has the device's own
// steps, what began in them. On the device the step lasts from the
// begin of the first such work to the begin of the first of the next step that has any; the last
// one, also before a pause of the profile, to the end of its work. Every instant of it counts once,
// whatever its queues did then:
//
//   computing               a kernel ran that is no collective's
//   exposed communication   a collective's kernel ran, and none that computes
//   exposed copies          it copied or filled memory, and nothing else ran
//   idle                    nothing of the process ran; others are not in its profile
//
// so that the four add up to the step. Of an idle interval, what comes before the launch of the
// work that ends it waited for the launch; what comes after it was launched, and had not started
// (it waited for other work, or for the device). Which of the two is not known where the profile
// holds no launch of that work.
//
// Without steps, all work of the device is one step without a name. Pure. Thread-safe: no state.
#ifndef SYNCLINE_ANALYSIS_DEVICES_H_
#define SYNCLINE_ANALYSIS_DEVICES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/time.h"
#include "timeline/device_work.h"
#include "timeline/sink.h"

namespace syncline::analysis {

// Times in ns.
struct DeviceUse {
  int64_t computing_ns = 0;
  int64_t communication_ns = 0;  // exposed
  int64_t copies_ns = 0;         // exposed
  int64_t unlaunched_ns = 0;     // idle: waited for a launch
  int64_t loading_ns = 0;        // of that: the program waited for a batch of a DataLoader
  int64_t unstarted_ns = 0;      // idle: launched, and not started
  int64_t unknown_ns = 0;        // idle: the launch is not in the profile

  int64_t idle_ns() const { return unlaunched_ns + unstarted_ns + unknown_ns; }
};

struct DeviceStep {
  std::string name;  // "ProfilerStep#3"
  TimelineTime begin;
  TimelineTime end;
  uint64_t work = 0;          // launched in it
  uint64_t collectives = 0;   // of that: kernels of collectives
  bool peer_to_peer = false;  // it sends to single ranks: some of these may, or the program says so
  bool last = false;          // no step follows it: its end is that of its work
  timeline::Interval program;  // the step of the program; where there are steps
  // Of the program's step: without waiting for the device; waiting for a DataLoader; and in
  // collectives on the host.
  int64_t program_ns = 0;
  int64_t program_loading_ns = 0;
  int64_t program_collectives_ns = 0;
  DeviceUse use;

  int64_t duration_ns() const { return end.ns - begin.ns; }
};

struct DeviceOperator {
  std::string name;  // "": launched outside of any operator, or it is not known where
  uint64_t count = 0;
  int64_t total_ns = 0;        // kernels, copies and fills added up, also where they overlap
  std::string longest_kernel;  // of those, which took most in all
};

struct DeviceReport {
  std::string process;  // name of its track
  std::string device;   // "GPU 0"
  std::vector<DeviceStep> steps;
  bool has_steps = false;  // false: `steps` is one, all that the device did
  timeline::StepsBy steps_by = timeline::StepsBy::kProfiler;
  std::vector<DeviceOperator> operators;  // by total, largest first
  uint64_t work = 0;
  uint64_t without_launch = 0;     // in the profile
  uint64_t outside_operators = 0;  // launched, but outside of any operator
  // Launched before the profile's first operator or after its last.
  uint64_t without_operators = 0;
  uint64_t outside_steps = 0;  // launched, but in no step that the profile has
  // ProcessDevices::unfinished, of all devices of the process; on the first of them.
  uint64_t unfinished = 0;
};

// One for each device of the process. Steps that are not wholly in `window` are left out, and so is
// what begins outside of it from the counts and operators.
std::vector<DeviceReport> DevicesOf(const timeline::ProcessDevices& process,
                                    const std::optional<timeline::Interval>& window);

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_DEVICES_H_

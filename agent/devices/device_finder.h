// SPDX-License-Identifier: Apache-2.0
// Which devices of NVIDIA's or AMD's are here, for who asks what this node has.
//
// Thread-safe.
#ifndef SYNCLINE_AGENT_DEVICES_DEVICE_FINDER_H_
#define SYNCLINE_AGENT_DEVICES_DEVICE_FINDER_H_

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "agent/devices/device_recorder.h"
#include "agent/devices/hung_child.h"
#include "agent/probe/clock.h"
#include "agent/session/spawn.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

class DeviceFinder {
 public:
  // Neither runner nor clock is owned. `options.command`: describes the devices.
  DeviceFinder(ProcessRunner* runner, Clock* clock, DeviceOptions options)
      : runner_(runner), clock_(clock), options_(std::move(options)), hung_(options_.proc) {}

  // nullopt: there is no device of theirs. It takes up to 3 s. An answer holds for ten
  // minutes; a problem, and that there was no answer in time, for ten seconds.
  std::optional<v1::NodeTool> Find();

 private:
  struct Answer {
    std::optional<v1::NodeTool> tool;
    bool in_time = true;
  };

  Answer Ask() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ProcessRunner* const runner_;
  Clock* const clock_;
  const DeviceOptions options_;
  std::mutex mutex_;
  HungChild hung_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::NodeTool> found_ ABSL_GUARDED_BY(mutex_);
  int64_t found_until_ns_ ABSL_GUARDED_BY(mutex_) = INT64_MIN;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_DEVICES_DEVICE_FINDER_H_

// SPDX-License-Identifier: Apache-2.0
// The process that asks the vendor's library. It is a child of the agent, for two reasons: calls
// into the driver of a device that is sick take seconds or never return, and what a library of
// others does to its process must not happen to an agent that may be root's. The child samples by
// itself and writes its file itself: the agent starts it, tells it to end, and waits for a bounded
// time. What it has written until it is lost counts. It has the agent's rights, like the driver's
// own tools.
//
// Thread-safety: no state.
#ifndef SYNCLINE_AGENT_DEVICES_DEVICE_CHILD_H_
#define SYNCLINE_AGENT_DEVICES_DEVICE_CHILD_H_

#include <cstdint>
#include <filesystem>

#include "agent/probe/clock.h"

namespace syncline::agent {

inline constexpr char kDeviceChildFlag[] = "--sample-devices";        // LIBRARY
inline constexpr char kDescribeDevicesFlag[] = "--describe-devices";  // LIBRARY

struct DeviceChildOptions {
  std::filesystem::path library;
  int stop_fd = 3;                // a pipe: when its other end is closed, the child ends
  int pid_fd = 3;                 // of DescribeDevices: its number goes there, before all else
  int file_fd = 1;                // lines go there, and nothing else
  uint64_t bytes_max = 64 << 20;  // of the file
};

inline constexpr int kCannotWrite = 4;  // an exit code: the disk or `bytes_max` is full

// Samples until it is told to end. Its exit code; 0 also where the library does not work, which
// the file then says.
int RunDeviceChild(const DeviceChildOptions& options, Clock* clock);

// Writes what the devices are to `file_fd`, and ends. 0: the library works.
int DescribeDevices(const DeviceChildOptions& options, Clock* clock);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_DEVICES_DEVICE_CHILD_H_

// SPDX-License-Identifier: Apache-2.0
// The seam to the library, or driver, of a vendor that says how the devices of this machine are.
// Its calls may take long, or never return: only a process that may be lost makes them
// (device_child.h).
#ifndef SYNCLINE_AGENT_DEVICES_DEVICE_LIBRARY_H_
#define SYNCLINE_AGENT_DEVICES_DEVICE_LIBRARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "evidence/device_samples.h"

namespace syncline::agent {

class DeviceLibrary {
 public:
  struct Error {
    uint32_t device = 0;
    int64_t number = 0;
  };

  // What is read: some counters cost the driver a thousand times as much as a clock.
  enum class Depth { kLevels, kCounters, kAll };  // each with all before it

  virtual ~DeviceLibrary() = default;
  virtual std::string driver_version() = 0;
  // By its own numbers. Of one that does not answer all is unknown.
  virtual const std::vector<evidence::Device>& devices() = 0;
  // What cannot be read is absent.
  virtual evidence::DeviceValues Read(uint32_t device, Depth depth) = 0;
  // The processes that have work or memory on the device, as the driver numbers them.
  virtual std::vector<int32_t> Users(uint32_t device) = 0;
  // That came since the last call.
  virtual std::vector<Error> TakeErrors() = 0;
  // What is wrong, for people.
  virtual std::vector<std::string> TakeNotes() = 0;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_DEVICES_DEVICE_LIBRARY_H_

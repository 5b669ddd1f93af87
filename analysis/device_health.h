// SPDX-License-Identifier: Apache-2.0
// How a node's devices were while a job was recorded, by the samples of their driver
// (evidence/device_samples.h).
//
// Times in which a device was held below its clocks are counters that only grow, and no sample
// misses what they counted. A window begins and ends between two readings: what grew from the first
// reading inside to the last is the least that it can have been, what grew between the readings
// around it is the most. Where there is no reading on one side of the window, all of the time that
// is left open there may have been so, too.
//
//     readings       r0      r1      r2      r3      r4
//     window             [----------------------]
//     least                  [r1 ....... r3]
//     most           [r0 ....................... r4]
//
// That the driver counts without delay is taken for granted. Pure. Thread-safe: no state.
#ifndef SYNCLINE_ANALYSIS_DEVICE_HEALTH_H_
#define SYNCLINE_ANALYSIS_DEVICE_HEALTH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/identity.h"
#include "evidence/device_samples.h"

namespace syncline::analysis {

// Of the samples inside the window.
struct ValueSpread {
  int64_t min = 0;
  int64_t median = 0;
  int64_t mean = 0;
  int64_t max = 0;
};

// How much of the window, 0 to 1: proven to lie between lo and hi.
struct WindowShare {
  double est = 0;
  double lo = 0;
  double hi = 0;
};

struct DeviceUserReport {
  ProcessKey process;  // node: 0; pid 0: it is not known which
  std::string name;    // as in NodeReport where it was recorded, else its comm
  int32_t pid = 0;     // as the agent sees it
  int32_t rank = -1;
};

// By how much a counter has grown.
struct CounterGrowth {
  int64_t amount = 0;  // from the reading before the window to the one behind it, where there are
  int64_t inside = 0;  // of it, between readings inside the window
  // How far these two lie outside the window: the more distant one. 0: they lie inside.
  int64_t beside_ns = 0;
};

struct DeviceErrorReport {
  int64_t number = 0;
  // It came between these: since the window's begin, by the node's clock. Either may lie outside.
  int64_t from_ns = 0;
  int64_t until_ns = 0;
};

struct DeviceHealth {
  uint32_t node = 0;    // index into Report::nodes
  uint32_t number = 0;  // as evidence::DeviceSamples has them
  evidence::Device device;
  int64_t window_ns = 0;  // how long it is
  uint64_t samples = 0;   // inside the window
  // The last one of these, since the window's begin, where it ends well before the window does.
  std::optional<int64_t> readings_end_ns;
  std::vector<DeviceUserReport> users;  // in the window
  // What a sample shows: clocks, power, ... Absent: the device does not say it.
  std::map<evidence::DeviceValue, ValueSpread> values;
  // Times in which it was held back, by reason.
  std::map<evidence::DeviceValue, WindowShare> held_back;
  // Other counters. Not those that wrap: PCIe's of bytes.
  std::map<evidence::DeviceValue, CounterGrowth> grown;
  // By its counter of energy, if its two readings are near enough to the window's ends: the energy
  // that was drawn outside must not count.
  std::optional<int64_t> mean_power_mw;
  std::vector<DeviceErrorReport> errors;
};

struct HealthWindow {
  int64_t begin_ns = 0;  // of the node's trace clock
  int64_t end_ns = 0;
};

// Of every device that has a sample, a user or an error.
std::vector<DeviceHealth> HealthOf(const evidence::DeviceSamples& samples,
                                   const HealthWindow& window);

// kPowerNs to kMemoryHotNs.
bool IsHeldBackTime(evidence::DeviceValue value);
// "by its temperature": of these.
const char* HeldBackBy(evidence::DeviceValue reason);

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_DEVICE_HEALTH_H_

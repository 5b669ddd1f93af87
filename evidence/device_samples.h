// SPDX-License-Identifier: Apache-2.0
// What the driver of a node's devices said of them from outside of the programs: clocks, power,
// temperature, memory, errors, and for how long a device was held below its clocks and why. The
// agent samples it (agent/devices) and writes it as text (docs/recording-format.md,
// "nodes/NODE/evidence/devices.txt"); this reads it back.
//
// All times are ns of the node's CLOCK_MONOTONIC, the clock of its traces. What a device or its
// driver does not say is absent, never 0.
//
// Thread-safety: plain values, no state.
#ifndef SYNCLINE_EVIDENCE_DEVICE_SAMPLES_H_
#define SYNCLINE_EVIDENCE_DEVICE_SAMPLES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "evidence/process_identity.h"

namespace syncline::evidence {

inline constexpr char kDevicesFileName[] = "devices.txt";  // in nodes/NODE/evidence
inline constexpr char kDevicesHead[] = "syncline-devices 1";

// What a sample has. Those from kEnergyMj on only grow, until the driver is loaded anew: what a
// difference of two samples says is true of the time between them.
enum class DeviceValue : uint8_t {
  kSmMhz,
  kMemoryMhz,
  kPowerMw,
  kPowerLimitMw,
  kDeviceCelsius,
  kMemoryCelsius,
  kBusyPercent,        // of a period of the driver's before, in which any kernel ran
  kMemoryBusyPercent,  // likewise, in which its memory was read or written
  kMemoryUsedBytes,
  kReasons,  // kReason...: why its clocks are as they are
  kEnergyMj,
  // Time in which it was held below the clocks that it was to have.
  kPowerNs,          // by its limit of power
  kThermalNs,        // by its temperature
  kSyncBoostNs,      // to keep step with other devices
  kBoardLimitNs,     // by a limit of the board
  kLowUseNs,         // because it had little to do
  kReliabilityNs,    // by its reliability limit, as NVML calls it
  kHardwareHotNs,    // by the hardware's own protection from heat, to half or less
  kHardwarePowerNs,  // by a signal from outside to draw less power, to half or less
  kRegulatorHotNs,   // by the temperature of its voltage regulators
  kMemoryHotNs,      // by that of its memory
  kCorrectedErrors,  // of its memories (ECC), since the driver was loaded
  kUncorrectedErrors,
  kPcieReplays,
  kPcieSentBytes,  // these two wrap: they may begin anew at any time
  kPcieReceivedBytes,
  kNvlinkSentKib,
  kNvlinkReceivedKib,
};
inline constexpr size_t kDeviceValues = 28;
inline constexpr int64_t kPowerMwMax = 100'000'000;  // no device draws more
// "sm_mhz": as the file and JSON call it.
const char* DeviceValueName(DeviceValue value);

// Bits of kReasons, as NVML has them.
inline constexpr int64_t kReasonIdle = 0x1;
inline constexpr int64_t kReasonClocksSetting = 0x2;
inline constexpr int64_t kReasonPowerCap = 0x4;
inline constexpr int64_t kReasonHardwareSlowdown = 0x8;
inline constexpr int64_t kReasonSyncBoost = 0x10;
inline constexpr int64_t kReasonThermal = 0x20;
inline constexpr int64_t kReasonHardwareThermal = 0x40;
inline constexpr int64_t kReasonPowerBrake = 0x80;

// Of one device; -1: absent.
class DeviceValues {
 public:
  DeviceValues() { values_.fill(-1); }
  std::optional<int64_t> Get(DeviceValue value) const {
    const int64_t known = values_[static_cast<size_t>(value)];
    return known < 0 ? std::nullopt : std::optional(known);
  }
  // What is negative, or more than any device can have, is absent.
  void Set(DeviceValue value, int64_t amount);
  bool Any() const;

 private:
  std::array<int64_t, kDeviceValues> values_;
};

struct Device {
  std::string id;               // "GPU-8f6d..."
  std::string name;             // "NVIDIA H100 80GB HBM3"
  std::string bus;              // "00000000:1B:00.0"
  int64_t memory_bytes = -1;    // -1: it is not known
  int64_t sm_mhz_max = -1;      // likewise
  bool errors_watched = false;  // `errors` has all that came while it was sampled
};

struct DeviceSample {
  uint32_t device = 0;
  int64_t at_ns = 0;  // read between this and `until_ns`
  int64_t until_ns = 0;
  DeviceValues values;
};

using DeviceProcess = ProcessIdentity;

// `process` was found to have work or memory on `device`.
struct DeviceUser {
  uint32_t device = 0;
  int64_t at_ns = 0;
  uint32_t process = 0;  // index into DeviceSamples::processes
};

// An error that the driver reported: NVIDIA's XID.
struct DeviceError {
  uint32_t device = 0;
  int64_t at_ns = 0;  // it came between this, the look before, and `until_ns`, when it was found
  int64_t until_ns = 0;
  int64_t number = 0;
};

struct DeviceSamples {
  std::string driver_version;
  std::string library;          // its path
  std::vector<Device> devices;  // by the numbers of NVIDIA's driver, or by AMD's PCI addresses
  std::vector<DeviceProcess> processes;
  std::vector<DeviceSample> samples;  // by time
  std::vector<DeviceUser> users;
  std::vector<DeviceError> errors;
  int64_t cost_ns = -1;  // processor time that sampling took; -1: unknown
  std::vector<std::string> notes;
  bool ended = false;
  uint64_t damaged_lines = 0;
};

// InvalidArgument: no samples of a version that is known. Lines that are cut or damaged are left
// out and counted. What refers to something refers to what is there.
absl::StatusOr<DeviceSamples> ParseDeviceSamples(std::string_view text);

// Each appends one line.
void AppendDevicesHead(std::string* out);
void AppendLibrary(std::string_view driver_version, std::string_view path, std::string* out);
void Append(const Device& device, std::string* out);
void Append(const DeviceSample& sample, std::string* out);
void Append(const DeviceUser& user, std::string* out);
void Append(const DeviceError& error, std::string* out);
// Append (process_identity.h), AppendCost (code_samples.h), AppendNote and AppendEnd (write.h) do
// the rest.

}  // namespace syncline::evidence

#endif  // SYNCLINE_EVIDENCE_DEVICE_SAMPLES_H_

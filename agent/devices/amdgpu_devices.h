// SPDX-License-Identifier: Apache-2.0
// AMD's GPUs as a DeviceLibrary, by the files that their kernel driver (amdgpu) has in sysfs: no
// library is loaded, and no right is needed. By contract: no such GPU was at hand.
//
// Clocks, power, temperatures, use and memory are files of their own. Times in which it was held
// back, and its energy, are in its table gpu_metrics, where that has version 1.6 to 1.8 (Instinct
// MI300 and newer): of a counter of cycles it says in how many each limit held. Of what was between
// two readings the same part of the time is taken, by the clock that stands in the table.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_AGENT_DEVICES_AMDGPU_DEVICES_H_
#define SYNCLINE_AGENT_DEVICES_AMDGPU_DEVICES_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/devices/device_library.h"

namespace syncline::agent {

// What gpu_metrics says of the time since the device was started.
struct AmdgpuMetrics {
  uint64_t energy_units = 0;  // of 2^-16 J
  uint64_t clock_ns = 0;
  uint32_t cycles = 0;  // of these four, which wrap, cycles in which it was held back
  uint32_t by_protection = 0;
  uint32_t by_power = 0;
  uint32_t by_heat = 0;         // of the chip
  uint32_t by_memory_heat = 0;  // of its memory
};
// nullopt: it is of another version, cut, or the device does not count these.
std::optional<AmdgpuMetrics> ParseAmdgpuMetrics(std::string_view table);

// Whether amdgpu has a device. `drm`: "/sys/class/drm".
bool HasAmdgpu(const std::filesystem::path& drm);

class AmdgpuDevices : public DeviceLibrary {
 public:
  // FailedPrecondition: there is no device.
  static absl::StatusOr<std::unique_ptr<AmdgpuDevices>> Open(const std::filesystem::path& drm);

  std::string driver_version() override;
  const std::vector<evidence::Device>& devices() override { return devices_; }
  evidence::DeviceValues Read(uint32_t device, Depth depth) override;
  // By the driver of compute queues (kfd): processes that have memory on the device.
  std::vector<int32_t> Users(uint32_t device) override;
  // None are known: what goes wrong is in the kernel's log alone.
  std::vector<Error> TakeErrors() override { return {}; }
  std::vector<std::string> TakeNotes() override { return {}; }

 private:
  struct Card {
    std::filesystem::path device;    // ".../card1/device"
    std::filesystem::path sensors;   // hwmon's; empty: none
    std::string device_temperature;  // "temp2_input"; "": none
    std::string memory_temperature;
    std::string user_file;  // "vram_4711", in the folder of a process; "": not known
    std::optional<AmdgpuMetrics> last;
    // Since the first reading, ns.
    double power_ns = 0;
    double heat_ns = 0;
    double protection_ns = 0;
  };

  AmdgpuDevices() = default;
  static Card CardOf(const std::filesystem::path& device);
  static void ReadErrors(const Card& card, evidence::DeviceValues* values);
  static void ReadMetrics(Card* card, evidence::DeviceValues* values);

  std::filesystem::path kfd_;  // "/sys/class/kfd/kfd"
  std::vector<evidence::Device> devices_;
  std::vector<Card> cards_;  // beside `devices_`
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_DEVICES_AMDGPU_DEVICES_H_

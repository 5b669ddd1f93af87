// SPDX-License-Identifier: Apache-2.0
// AMD's GPUs as a DeviceLibrary, by the files that their kernel driver (amdgpu) has in sysfs: no
// library is loaded, and no right is needed. By contract: no such GPU was at hand.
//
// Clocks, power, temperatures, use and memory are files of their own. Times in which it was held
// back, and its energy, are in its table gpu_metrics, where that has version 1.6 to 1.8 (Instinct
// MI300, with some kernels): of a counter of cycles it says in how many each limit held. Of what
// was between two readings the same part of the time is taken, by the clock that stands in the
// table. One that sleeps is not woken: it has no values then.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_AGENT_DEVICES_AMDGPU_DEVICES_H_
#define SYNCLINE_AGENT_DEVICES_AMDGPU_DEVICES_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/devices/device_library.h"

namespace syncline::agent {

// What gpu_metrics says of the time since the device was started.
struct AmdgpuMetrics {
  uint64_t energy_units = 0;  // of 2^-16 J
  uint64_t clock_ns = 0;
  uint32_t cycles = 0;  // these and the next wrap
  // In how many of them it was held back, by what kAmdgpuReasons has; all ones: it does not count
  // them.
  std::array<uint32_t, 5> held = {};
};
inline constexpr std::array kAmdgpuReasons = {
    evidence::DeviceValue::kHardwareHotNs, evidence::DeviceValue::kPowerNs,
    evidence::DeviceValue::kThermalNs, evidence::DeviceValue::kRegulatorHotNs,
    evidence::DeviceValue::kMemoryHotNs};
// nullopt: it is of another version, or cut.
std::optional<AmdgpuMetrics> ParseAmdgpuMetrics(std::string_view table);
// "1.9"; "": it has none.
std::string AmdgpuMetricsVersion(std::string_view table);

// Whether amdgpu has a device. `drm`: "/sys/class/drm".
bool HasAmdgpu(const std::filesystem::path& drm);

class AmdgpuDevices : public DeviceLibrary {
 public:
  // FailedPrecondition: there is no device. `dri`: where devices are that may be used; those that
  // lack there are left out, if any is there (a container shows the files of all).
  static absl::StatusOr<std::unique_ptr<AmdgpuDevices>> Open(
      const std::filesystem::path& drm, const std::filesystem::path& dri = "/dev/dri");

  std::string driver_version() override;
  const std::vector<evidence::Device>& devices() override { return devices_; }
  evidence::DeviceValues Read(uint32_t device, Depth depth) override;
  // By the driver of compute queues (kfd): processes that have memory on the device.
  std::vector<int32_t> Users(uint32_t device) override;
  // None are known: what goes wrong is in the kernel's log alone.
  std::vector<Error> TakeErrors() override { return {}; }
  std::vector<std::string> TakeNotes() override { return std::exchange(notes_, {}); }

 private:
  struct Card {
    std::filesystem::path device;    // ".../card1/device"
    std::filesystem::path sensors;   // hwmon's; empty: none
    std::string device_temperature;  // "temp2_input"; "": none
    std::string memory_temperature;
    // "vram_4711", in the folder of a process: of each of its partitions.
    std::vector<std::string> user_files;
    std::optional<AmdgpuMetrics> last;
    std::array<double, kAmdgpuReasons.size()> held_ns = {};  // since the first reading
  };

  AmdgpuDevices() = default;
  static Card CardOf(const std::filesystem::path& device);
  void Describe(const Card& card);
  static void ReadErrors(const Card& card, evidence::DeviceValues* values);
  static void ReadMetrics(Card* card, evidence::DeviceValues* values);

  std::filesystem::path kfd_;  // "/sys/class/kfd/kfd"
  std::vector<evidence::Device> devices_;
  std::vector<Card> cards_;  // beside `devices_`
  std::vector<std::string> notes_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_DEVICES_AMDGPU_DEVICES_H_

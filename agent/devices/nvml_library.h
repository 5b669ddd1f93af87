// SPDX-License-Identifier: Apache-2.0
// NVIDIA's management library as a DeviceLibrary. It needs no rights beyond those on /dev/nvidia*.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_AGENT_DEVICES_NVML_LIBRARY_H_
#define SYNCLINE_AGENT_DEVICES_NVML_LIBRARY_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/devices/device_library.h"
#include "agent/devices/nvml_abi.h"

namespace syncline::agent {

// Where the driver's packages and container runtimes put it. The dynamic linker's own search would
// also look where LD_LIBRARY_PATH says.
std::vector<std::filesystem::path> NvmlPlaces();

// Whether a process of this user may load it. FailedPrecondition: others than root and this user
// can write it, or exchange anything on the way to it. One that is not there is good.
absl::Status CheckNvml(const std::filesystem::path& library);

// The file that is to be loaded. NotFound: none of `places` has one; FailedPrecondition: as above.
absl::StatusOr<std::filesystem::path> FindNvml(const std::vector<std::filesystem::path>& places);

class NvmlLibrary : public DeviceLibrary {
 public:
  // Loads and initialises it, for the rest of the process's life. FailedPrecondition: it is no
  // NVML, or has no driver or devices to talk to.
  static absl::StatusOr<std::unique_ptr<NvmlLibrary>> Load(const std::filesystem::path& path);

  std::string driver_version() override;
  const std::vector<evidence::Device>& devices() override { return devices_; }
  // Its counter of energy is in kAll alone.
  evidence::DeviceValues Read(uint32_t device, Depth depth) override;
  std::vector<int32_t> Users(uint32_t device) override;
  std::vector<Error> TakeErrors() override;
  std::vector<std::string> TakeNotes() override;

 private:
  explicit NvmlLibrary(const nvml::Functions& nvml) : nvml_(nvml) {}
  void FindDevices(unsigned count);
  evidence::Device Describe(nvml::Handle handle) const;
  void WatchErrors();
  void ReadClocks(nvml::Handle handle, evidence::DeviceValues* values) const;
  void ReadUse(nvml::Handle handle, evidence::DeviceValues* values) const;
  void ReadThrottling(nvml::Handle handle, evidence::DeviceValues* values) const;
  void ReadEnergy(nvml::Handle handle, evidence::DeviceValues* values) const;
  void ReadFields(nvml::Handle handle, Depth depth, evidence::DeviceValues* values) const;
  std::string Text(nvml::Return result) const;

  const nvml::Functions nvml_;
  std::vector<evidence::Device> devices_;
  // Beside `devices_`; nullptr: it does not answer. That of a lost one is kept: errors name it.
  std::vector<nvml::Handle> handles_;
  std::vector<bool> lost_;         // beside `devices_`: it is asked no more
  nvml::Handle events_ = nullptr;  // nullptr: errors are not watched
  std::vector<std::string> notes_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_DEVICES_NVML_LIBRARY_H_

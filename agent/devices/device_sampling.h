// SPDX-License-Identifier: Apache-2.0
// The text of evidence/devices.txt, as rounds over a DeviceLibrary make it. It has no thread and no
// file.
//
// Not thread-safe.
#ifndef SYNCLINE_AGENT_DEVICES_DEVICE_SAMPLING_H_
#define SYNCLINE_AGENT_DEVICES_DEVICE_SAMPLING_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "agent/devices/device_library.h"
#include "agent/probe/clock.h"

namespace syncline::agent {

class DeviceSampling {
 public:
  // Not owned: both outlive this.
  DeviceSampling(DeviceLibrary* library, Clock* clock, std::filesystem::path proc = "/proc")
      : library_(library), clock_(clock), proc_(std::move(proc)) {}

  // The devices, and whose library says it.
  std::string Describe(const std::filesystem::path& library_path);
  // Reads every device once; who uses it, once a second.
  std::string Round(DeviceLibrary::Depth depth);

 private:
  void LookForUsers(int64_t now_ns, std::string* text);
  // Its number; nullopt: it is gone, or is another one of the same pid.
  std::optional<uint32_t> NumberOf(int32_t pid, std::string* text);
  void TakeNotes(std::string* text);

  DeviceLibrary* const library_;
  Clock* const clock_;
  const std::filesystem::path proc_;
  std::map<std::pair<int32_t, uint64_t>, uint32_t> processes_;  // by pid and start
  int64_t looked_for_errors_ns_ = 0;
  int64_t next_users_ns_ = 0;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_DEVICES_DEVICE_SAMPLING_H_

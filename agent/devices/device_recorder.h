// SPDX-License-Identifier: Apache-2.0
// How the node's devices were during a recording, as a source of evidence: a child process that
// samples them (device_child.h) into evidence/devices.txt. Where there is no device of NVIDIA's or
// AMD's, nothing happens. A recording never fails for it.
//
// Thread-safe.
#ifndef SYNCLINE_AGENT_DEVICES_DEVICE_RECORDER_H_
#define SYNCLINE_AGENT_DEVICES_DEVICE_RECORDER_H_

#include <sys/types.h>

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "agent/devices/hung_child.h"
#include "agent/devices/nvml_library.h"
#include "agent/evidence/evidence_source.h"
#include "agent/host/log.h"
#include "agent/session/spawn.h"
#include "common/files.h"

namespace syncline::agent {

struct DeviceOptions {
  std::vector<std::string> command;  // starts the child; the library's path follows
  // Instead of what is found, for tests: NVML, or a folder like `drm`; empty: what is found.
  std::filesystem::path library;
  std::filesystem::path control = "/dev/nvidiactl";  // there is none without NVIDIA's driver
  std::filesystem::path drm = "/sys/class/drm";      // of AMD's devices
  std::vector<std::filesystem::path> places = NvmlPlaces();
  int end_limit_ms = 1'500;              // for its last round
  std::filesystem::path proc = "/proc";  // for tests
};

// NVML, which is to be loaded, or the folder in which AMD's devices are; nullopt: there are devices
// of neither. Where there are both, NVIDIA's. An agent of root's does not load a library that
// others can change, even if it is named by hand.
absl::StatusOr<std::optional<std::filesystem::path>> ChooseDevices(const DeviceOptions& options);

// "nvml", "amdgpu": of what ChooseDevices() says.
std::string DevicesName(const std::filesystem::path& chosen);

class DeviceRecorder : public EvidenceSource {
 public:
  // The log is not owned; it outlives this.
  DeviceRecorder(Log* log, DeviceOptions options);
  ~DeviceRecorder() override;

  bool IsWanted(const v1::PrepareRequest& request) const override {
    return !request.skip_evidence();
  }
  void Find(const std::vector<uint32_t>&) override {}
  // The child starts at once, also before the window: loading the library takes its time.
  void Begin(const EvidenceWindow& window) override;
  void End() override;
  std::vector<v1::Complaint> Collect() override;

 private:
  absl::Status Start(const std::filesystem::path& folder, const std::filesystem::path& library)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Log* const log_;
  const DeviceOptions options_;
  std::mutex mutex_;
  std::string recording_id_ ABSL_GUARDED_BY(mutex_);
  std::string failure_ ABSL_GUARDED_BY(mutex_);
  pid_t child_ ABSL_GUARDED_BY(mutex_) = -1;  // -1: there is none
  HungChild hung_ ABSL_GUARDED_BY(mutex_);
  Descriptor going_on_ ABSL_GUARDED_BY(mutex_){-1};  // closed: the child is to end
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_DEVICES_DEVICE_RECORDER_H_

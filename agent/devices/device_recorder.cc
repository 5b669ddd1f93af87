// SPDX-License-Identifier: Apache-2.0
#include "agent/devices/device_recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/devices/amdgpu_devices.h"
#include "agent/devices/device_child.h"
#include "common/status.h"
#include "evidence/device_samples.h"

namespace syncline::agent {
namespace {

constexpr char kFolder[] = "evidence";
constexpr int kAboveGiven = 10;  // a child's own descriptors are below (spawn.h)

}  // namespace

absl::StatusOr<std::optional<std::filesystem::path>> ChooseDevices(const DeviceOptions& options) {
  std::error_code error;
  if (!options.library.empty()) {
    const bool is_loaded = !std::filesystem::is_directory(options.library, error);
    if (is_loaded && ::geteuid() == 0) SYNCLINE_RETURN_IF_ERROR(CheckNvml(options.library));
    return std::filesystem::absolute(options.library, error);
  }
  if (std::filesystem::exists(options.control, error)) {
    SYNCLINE_ASSIGN_OR_RETURN(std::filesystem::path found, FindNvml(options.places));
    return found;
  }
  if (HasAmdgpu(options.drm)) return options.drm;
  return std::nullopt;
}

std::string DevicesName(const std::filesystem::path& chosen) {
  std::error_code error;
  return std::filesystem::is_directory(chosen, error) ? "amdgpu" : "nvml";
}

DeviceRecorder::DeviceRecorder(Log* log, DeviceOptions options)
    : log_(log), options_(std::move(options)), hung_(options_.proc) {}

DeviceRecorder::~DeviceRecorder() {
  End();
  Collect();
}

absl::Status DeviceRecorder::Start(const std::filesystem::path& folder,
                                   const std::filesystem::path& library) {
  SYNCLINE_RETURN_IF_ERROR(hung_.Check());
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(folder, 0700));
  const std::filesystem::path path = folder / evidence::kDevicesFileName;
  const Descriptor made(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (made.get() < 0) {
    return ErrnoStatus(errno, absl::StrCat("Cannot create \"", path.string(), "\""));
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "Cannot make a pipe");
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const Descriptor file(::fcntl(made.get(), F_DUPFD_CLOEXEC, kAboveGiven));
  const Descriptor stop(::fcntl(read_end.get(), F_DUPFD_CLOEXEC, kAboveGiven));
  if (file.get() < 0 || stop.get() < 0) return ErrnoStatus(errno, "Cannot copy a descriptor");
  SpawnOptions spawn{
      .arguments = options_.command, .pass_as_3 = stop.get(), .pass_as_output = file.get()};
  spawn.arguments.push_back(library.string());
  SYNCLINE_ASSIGN_OR_RETURN(child_, Spawn(spawn));
  going_on_ = std::move(write_end);
  return absl::OkStatus();
}

void DeviceRecorder::Begin(const EvidenceWindow& window) {
  const std::lock_guard lock(mutex_);
  if (recording_id_ == window.recording_id || child_ >= 0) return;
  recording_id_ = window.recording_id;
  const auto library = ChooseDevices(options_);
  absl::Status begun = library.status();
  if (library.ok() && library->has_value()) begun = Start(window.directory / kFolder, **library);
  if (begun.ok()) return;
  log_->Failure("device samples", begun);
  failure_ = absl::StrCat("No samples of the devices: ", begun.message());
}

void DeviceRecorder::End() {
  const std::lock_guard lock(mutex_);
  going_on_ = Descriptor(-1);
}

std::vector<v1::Complaint> DeviceRecorder::Collect() {
  const std::lock_guard lock(mutex_);
  std::string said = std::exchange(failure_, {});
  if (child_ >= 0) {
    const pid_t child = std::exchange(child_, -1);
    const auto ended = WaitForExit(child, options_.end_limit_ms);
    if (!ended.ok()) {
      hung_.Remember(child);
      said = absl::StrCat("Samples of the devices end early: their driver did not answer for ",
                          options_.end_limit_ms, " ms");
    } else if (*ended == kCannotWrite) {
      said = "Samples of the devices end early: their file cannot be written, or is too large";
    } else if (*ended != 0) {
      said = absl::StrCat(
          "Samples of the devices end early: the process that takes them ended ",
          *ended > 128 ? absl::StrCat("by signal ", *ended - 128) : absl::StrCat("with ", *ended));
    }
  }
  recording_id_.clear();
  if (said.empty()) return {};
  return Warnings({said},
                  "the rest of the recording is not affected; nvidia-smi or amd-smi says how the "
                  "devices are");
}

}  // namespace syncline::agent

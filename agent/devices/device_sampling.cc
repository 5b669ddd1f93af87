// SPDX-License-Identifier: Apache-2.0
#include "agent/devices/device_sampling.h"

#include "agent/host/process_table.h"
#include "evidence/write.h"

namespace syncline::agent {
namespace {

constexpr int64_t kUsersNs = 1'000'000'000;
constexpr uint64_t kFirstPidNamespace = 0xEFFFFFFC;  // the kernel's PROC_PID_INIT_INO

}  // namespace

std::string DeviceSampling::Describe(const std::filesystem::path& library_path) {
  std::string text;
  evidence::AppendLibrary(library_->driver_version(), library_path.string(), &text);
  for (const evidence::Device& device : library_->devices()) evidence::Append(device, &text);
  TakeNotes(&text);
  looked_for_errors_ns_ = clock_->MonotonicNs();
  return text;
}

std::string DeviceSampling::Round(DeviceLibrary::Depth depth) {
  std::string text;
  for (uint32_t i = 0; i < library_->devices().size(); ++i) {
    evidence::DeviceSample sample;
    sample.device = i;
    sample.at_ns = clock_->MonotonicNs();
    sample.values = library_->Read(i, depth);
    sample.until_ns = clock_->MonotonicNs();
    if (sample.values.Any()) evidence::Append(sample, &text);
  }
  const auto errors = library_->TakeErrors();
  const int64_t now_ns = clock_->MonotonicNs();
  for (const DeviceLibrary::Error& error : errors) {
    evidence::Append(
        evidence::DeviceError{error.device, looked_for_errors_ns_, now_ns, error.number}, &text);
  }
  looked_for_errors_ns_ = now_ns;
  if (now_ns >= next_users_ns_) {
    LookForUsers(now_ns, &text);
    next_users_ns_ = now_ns + kUsersNs;
  }
  TakeNotes(&text);
  return text;
}

void DeviceSampling::LookForUsers(int64_t now_ns, std::string* text) {
  for (uint32_t i = 0; i < library_->devices().size(); ++i) {
    for (const int32_t pid : library_->Users(i)) {
      const std::optional<uint32_t> process = NumberOf(pid, text);
      if (process.has_value()) {
        evidence::Append(evidence::DeviceUser{i, now_ns, *process}, text);
      }
    }
  }
}

// The driver numbers processes as the machine does. In a container that has numbers of its own,
// such a number may be that of another process here: then it must have a device open.
std::optional<uint32_t> DeviceSampling::NumberOf(int32_t pid, std::string* text) {
  const std::optional<ProcessEntry> entry = ReadProcess(proc_, pid);
  if (!entry.has_value()) return std::nullopt;
  const bool is_same = OwnPidNamespace(proc_) == kFirstPidNamespace ||
                       HasOpen(proc_, pid, "/dev/nvidia").value_or(false) ||
                       HasOpen(proc_, pid, "/dev/kfd").value_or(false);
  if (!is_same) return std::nullopt;
  const auto [found, is_new] = processes_.try_emplace(std::pair(pid, entry->start_ticks),
                                                      static_cast<uint32_t>(processes_.size()));
  if (is_new) {
    evidence::Append(
        evidence::DeviceProcess{pid, entry->start_ticks, static_cast<int64_t>(entry->pid_namespace),
                                entry->own_pid, entry->name},
        text);
  }
  return found->second;
}

void DeviceSampling::TakeNotes(std::string* text) {
  for (const std::string& note : library_->TakeNotes()) evidence::AppendNote(note, text);
}

}  // namespace syncline::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/devices/device_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "agent/devices/amdgpu_devices.h"
#include "agent/devices/device_pace.h"
#include "agent/devices/device_sampling.h"
#include "agent/devices/nvml_library.h"
#include "common/files.h"
#include "evidence/code_samples.h"
#include "evidence/write.h"

namespace syncline::agent {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;

int64_t ProcessCpuNs() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<int64_t>(time.tv_sec) * kNsPerSecond + time.tv_nsec;
}

// The lines' way into the file. Whatever else the process prints goes nowhere: the library may
// print what it likes.
class Lines {
 public:
  Lines(int file_fd, uint64_t bytes_max)
      : fd_(::fcntl(file_fd, F_DUPFD_CLOEXEC, 10)), bytes_max_(bytes_max) {
    const Descriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    ::dup2(nowhere.get(), STDOUT_FILENO);
    ::dup2(nowhere.get(), STDERR_FILENO);
  }

  // false: nothing more can be written.
  bool Write(std::string_view text) {
    if (bytes_ + text.size() > bytes_max_) return false;
    bytes_ += text.size();
    // Not at the file's end: it may be a memory of a fixed size.
    return WriteAll(fd_.get(), text, "lines").ok();
  }

 private:
  Descriptor fd_;
  const uint64_t bytes_max_;
  uint64_t bytes_ = 0;
};

// Whether the other end of the pipe was closed within that time: by the agent, or by its end.
bool IsOver(int stop_fd, int wait_ms) {
  pollfd stop{.fd = stop_fd, .events = POLLIN, .revents = 0};
  return ::poll(&stop, 1, wait_ms) > 0;
}

absl::StatusOr<std::unique_ptr<DeviceLibrary>> OpenLibrary(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return AmdgpuDevices::Open(path);
  return NvmlLibrary::Load(path);
}

std::string NoteOf(const absl::Status& status) {
  std::string note;
  evidence::AppendNote({status.message().data(), status.message().size()}, &note);
  return note;
}

}  // namespace

int RunDeviceChild(const DeviceChildOptions& options, Clock* clock) {
  const rlimit core{0, 0};
  ::setrlimit(RLIMIT_CORE, &core);
  Lines lines(options.file_fd, options.bytes_max);
  std::string head;
  evidence::AppendDevicesHead(&head);
  if (!lines.Write(head)) return kCannotWrite;  // before the library is asked: it may never answer
  std::string last;
  const auto library = OpenLibrary(options.library);
  if (library.ok()) {
    DeviceSampling sampling(library->get(), clock);
    DevicePace pace((*library)->devices().size(), clock->MonotonicNs());
    constexpr auto kAll = DeviceLibrary::Depth::kAll;
    bool writes = lines.Write(sampling.Describe(options.library) + sampling.Round(kAll));
    const int64_t begin_cpu_ns = ProcessCpuNs();
    pace.Took(kAll, clock->MonotonicNs(), 0);
    while (writes && !IsOver(options.stop_fd, pace.WaitMs(clock->MonotonicNs()))) {
      const auto depth = pace.Next(clock->MonotonicNs());
      if (!depth.has_value()) continue;  // a signal woke us
      const int64_t before_cpu_ns = ProcessCpuNs();
      writes = lines.Write(sampling.Round(*depth));
      pace.Took(*depth, clock->MonotonicNs(), ProcessCpuNs() - before_cpu_ns);
    }
    if (!writes) ::_exit(kCannotWrite);
    last = sampling.Round(kAll);
    evidence::AppendCost(ProcessCpuNs() - begin_cpu_ns, &last);
  } else {
    last = NoteOf(library.status());
  }
  evidence::AppendEnd(&last);
  // Without the library's own end: nothing of it is needed any more, and it may take long.
  ::_exit(lines.Write(last) ? 0 : kCannotWrite);
}

int DescribeDevices(const DeviceChildOptions& options, Clock* clock) {
  const std::string pid = absl::StrCat(::getpid());
  // Where it cannot be written, nobody wants to know it.
  [[maybe_unused]] const ssize_t written = ::write(options.pid_fd, pid.data(), pid.size());
  Lines lines(options.file_fd, options.bytes_max);
  std::string text;
  evidence::AppendDevicesHead(&text);
  const auto library = OpenLibrary(options.library);
  if (library.ok()) {
    text += DeviceSampling(library->get(), clock).Describe(options.library);
  } else {
    text += NoteOf(library.status());
  }
  lines.Write(text);
  ::_exit(library.ok() ? 0 : 1);
}

}  // namespace syncline::agent

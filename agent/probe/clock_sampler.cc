// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/clock_sampler.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clocksync/sample_file.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

// A little more than 10 Hz, so that a late wake-up does not bring it below.
constexpr std::chrono::milliseconds kPeriod(80);

}  // namespace

ClockSampler::ClockSampler(Clock* clock, std::string node)
    : clock_(clock), node_(std::move(node)), last_(clock->Tuple()) {
  thread_ = std::jthread([this](const std::stop_token& stop) { Loop(stop); });
}

ClockSampler::~ClockSampler() {
  thread_ = {};
  StopFile();
}

absl::Status ClockSampler::StartFile(const std::filesystem::path& path) {
  const int file =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return ErrnoStatus(errno, absl::StrCat("Cannot create \"", path.string(), "\""));
  absl::Status written = AppendWhole(file, clocksync::EncodeTuplesHeader(node_), path);
  if (!written.ok()) {
    ::close(file);
    return written;
  }
  const std::lock_guard lock(mutex_);
  if (file_ >= 0) ::close(file_);
  file_ = file;
  Append(clock_->Tuple());
  return absl::OkStatus();
}

void ClockSampler::StopFile() {
  const std::lock_guard lock(mutex_);
  if (file_ < 0) return;
  Append(clock_->Tuple());
  ::close(file_);
  file_ = -1;
}

clocksync::ClockTuple ClockSampler::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

void ClockSampler::Append(const clocksync::ClockTuple& tuple) {
  last_ = tuple;
  if (file_ < 0) return;
  std::string bytes;
  clocksync::AppendTuple(tuple, &bytes);
  // A full disk loses readings, nothing else; the manager's disk guard stops the recording.
  AppendWhole(file_, bytes, "clock tuples").IgnoreError();
}

void ClockSampler::Loop(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    Append(clock_->Tuple());
    wake_.wait_for(lock, stop, kPeriod, [] { return false; });
  }
}

}  // namespace syncline::agent

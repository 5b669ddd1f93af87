// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/daemon_watch.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/host/process_table.h"

namespace syncline::agent {
namespace {

// Several looks within what a program waits.
constexpr std::chrono::milliseconds kPeriod(50);

std::vector<int32_t> FindDaemons(const std::filesystem::path& proc, uint32_t uid) {
  std::vector<int32_t> pids;
  const uint64_t here = OwnPidNamespace(proc);
  for (const ProcessEntry& entry : ListProcesses(proc).value_or(std::vector<ProcessEntry>())) {
    if (entry.name == "lttng-sessiond" && entry.uid == uid && entry.pid_namespace == here) {
      pids.push_back(entry.pid);
    }
  }
  return pids;
}

}  // namespace

DaemonWatch::DaemonWatch(std::filesystem::path proc, uint32_t uid)
    : proc_(std::move(proc)),
      daemons_(FindDaemons(proc_, uid)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

absl::Status DaemonWatch::AllRan() {
  const std::lock_guard lock(mutex_);
  Look();
  if (stopped_ == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "lttng-sessiond (process ", stopped_,
      ") was stopped while the recording was prepared: programs may have given up waiting for the "
      "daemon, and would be missing. Record again"));
}

void DaemonWatch::Look() {
  for (const int32_t pid : daemons_) {
    const auto entry = ReadProcess(proc_, pid);
    if (stopped_ == 0 && entry.has_value() && entry->stopped()) stopped_ = pid;
  }
}

void DaemonWatch::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested() && stopped_ == 0) {
    Look();
    wake_.wait_for(lock, stop, kPeriod, [] { return false; });
  }
}

}  // namespace syncline::agent

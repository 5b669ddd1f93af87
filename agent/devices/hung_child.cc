// SPDX-License-Identifier: Apache-2.0
#include "agent/devices/hung_child.h"

#include "absl/strings/str_cat.h"
#include "agent/host/process_table.h"

namespace syncline::agent {

void HungChild::Remember(pid_t pid) {
  pid_ = -1;
  const auto entry = ReadProcess(proc_, pid);
  if (!entry.has_value() || entry->ended()) return;
  pid_ = pid;
  start_ticks_ = entry->start_ticks;
}

absl::Status HungChild::Check() const {
  if (pid_ < 0) return absl::OkStatus();
  const auto entry = ReadProcess(proc_, pid_);
  if (!entry.has_value() || entry->ended() || entry->start_ticks != start_ticks_) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("an earlier look at the devices still hangs in the driver (pid ", pid_, ")"));
}

}  // namespace syncline::agent

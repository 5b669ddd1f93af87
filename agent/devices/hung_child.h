// SPDX-License-Identifier: Apache-2.0
// A child that looks at the devices and cannot be ended: it hangs in a call into the driver, and
// not even SIGKILL reaches it. Each further one would hang there, too, for as long as the machine
// runs: none is started while it is there.
//
// Not thread-safe.
#ifndef SYNCLINE_AGENT_DEVICES_HUNG_CHILD_H_
#define SYNCLINE_AGENT_DEVICES_HUNG_CHILD_H_

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <utility>

#include "absl/status/status.h"

namespace syncline::agent {

class HungChild {
 public:
  explicit HungChild(std::filesystem::path proc) : proc_(std::move(proc)) {}

  // It was killed. One that has ended since is forgotten at once.
  void Remember(pid_t pid);
  // Unavailable, with its number: it is still there.
  absl::Status Check() const;

 private:
  const std::filesystem::path proc_;
  pid_t pid_ = -1;  // -1: there is none
  uint64_t start_ticks_ = 0;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_DEVICES_HUNG_CHILD_H_

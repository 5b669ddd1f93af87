// SPDX-License-Identifier: Apache-2.0
// Two perf events of one thread, and their ring: minor page faults, of which each so many are
// noted, and major ones, all of which are; beside them each time that the thread leaves a processor
// and gets one. The kernel tells an ordinary user of switches as records only (context_switch):
// the counters of switches and migrations stand still for one who may not see the kernel.
//
// A page and kSoftwareRingPages of data: 512 switches between two calls of Drain().
//
// Not thread-safe.
#ifndef SYNCLINE_AGENT_CODE_SOFTWARE_RING_H_
#define SYNCLINE_AGENT_CODE_SOFTWARE_RING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/code/software_records.h"

namespace syncline::agent {

inline constexpr size_t kSoftwareRingPages = 8;

class SoftwareRing {
 public:
  virtual ~SoftwareRing() = default;
  virtual void Enable() = 0;
  virtual void Disable() = 0;
  // From now on each `period`th minor fault is noted.
  virtual void SetPeriod(uint64_t period) = 0;
  // What came since the last call.
  virtual SoftwareRecords Drain() = 0;
  // Of samples.
  virtual uint64_t minor_id() const = 0;
};

// Disabled at first. Errors as of OpenPerfEvent. `kernel`: faults in the kernel's own work for the
// thread, too.
using OpenSoftwareRing = std::function<absl::StatusOr<std::unique_ptr<SoftwareRing>>(
    int32_t tid, bool kernel, uint64_t period)>;
absl::StatusOr<std::unique_ptr<SoftwareRing>> OpenPerfSoftwareRing(int32_t tid, bool kernel,
                                                                   uint64_t period);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CODE_SOFTWARE_RING_H_

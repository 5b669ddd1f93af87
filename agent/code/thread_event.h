// SPDX-License-Identifier: Apache-2.0
// A perf event that samples one thread, each period of its processor time, and its ring.
//
// Each thread has a ring of its own. The kernel lets events share a ring only if they are bound to
// one processor, which takes an event for each thread and processor: of 200 threads on 64
// processors 12,800 descriptors. Watching whole processors instead would sample programs that are
// nobody's business here, and needs root. Inherited events cannot have a ring for all processors:
// threads that begin later are found by whoever looks for them.
//
// A ring is one page and kRingPages of data, so that 500 threads take 10 MiB.
//
// Not thread-safe.
#ifndef SYNCLINE_AGENT_CODE_THREAD_EVENT_H_
#define SYNCLINE_AGENT_CODE_THREAD_EVENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "agent/code/perf_records.h"

namespace syncline::agent {

// 99 a second of processor time: not a divisor of what programs and the kernel do 100 or 1000
// times a second.
inline constexpr int64_t kCodePeriodNs = 1'000'000'000 / 99;

class ThreadEvent {
 public:
  virtual ~ThreadEvent() = default;
  virtual void Enable() = 0;
  virtual void Disable() = 0;
  // What came since the last call.
  virtual PerfRecords Drain() = 0;
  // Processor time of the thread while it was enabled.
  virtual int64_t OnCpuNs() = 0;
};

// Disabled at first. NotFound: there is no such thread any more. PermissionDenied: the kernel, or a
// container's filter, refuses; ResourceExhausted: no descriptor, or no memory that may be locked.
// `tid` 0: the calling thread.
using OpenThreadEvent =
    std::function<absl::StatusOr<std::unique_ptr<ThreadEvent>>(int32_t tid, bool kernel)>;
absl::StatusOr<std::unique_ptr<ThreadEvent>> OpenPerfEvent(int32_t tid, bool kernel);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CODE_THREAD_EVENT_H_

// SPDX-License-Identifier: Apache-2.0
#include "agent/code/thread_event.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "agent/host/perf_ring.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

// A record takes some 200 bytes: 4 pages hold 0.8 s of a thread that never sleeps.
constexpr size_t kRingPages = 4;
constexpr uint16_t kFramesMax = 16;  // user stacks without frame pointers end after one

perf_event_attr Attributes(bool kernel) {
  perf_event_attr attr = PerfAttributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
  attr.sample_period = static_cast<uint64_t>(kCodePeriodNs);
  attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;
  attr.exclude_kernel = kernel ? 0 : 1;
  attr.exclude_callchain_kernel = kernel ? 0 : 1;
  attr.exclude_hv = 1;
  attr.mmap = 1;  // of code
  attr.sample_max_stack = kFramesMax;
  return attr;
}

class PerfEvent : public ThreadEvent {
 public:
  PerfEvent(Descriptor fd, PerfRing ring) : fd_(std::move(fd)), ring_(std::move(ring)) {}

  void Enable() override { ::ioctl(fd_.get(), PERF_EVENT_IOC_ENABLE, 0); }
  void Disable() override { ::ioctl(fd_.get(), PERF_EVENT_IOC_DISABLE, 0); }

  PerfRecords Drain() override {
    std::vector<uint8_t> bytes;
    ring_.Drain(&bytes);
    return ParsePerfRecords(bytes);
  }

  int64_t OnCpuNs() override {
    uint64_t value = 0;
    if (::read(fd_.get(), &value, sizeof value) != sizeof value) return 0;
    return static_cast<int64_t>(value);
  }

 private:
  Descriptor fd_;
  PerfRing ring_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ThreadEvent>> OpenPerfEvent(int32_t tid, bool kernel) {
  SYNCLINE_ASSIGN_OR_RETURN(Descriptor fd, OpenPerfEvent(Attributes(kernel), tid, -1));
  SYNCLINE_ASSIGN_OR_RETURN(PerfRing ring, PerfRing::Map(fd.get(), kRingPages));
  return std::make_unique<PerfEvent>(std::move(fd), std::move(ring));
}

}  // namespace syncline::agent

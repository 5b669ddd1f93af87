// SPDX-License-Identifier: Apache-2.0
#include "agent/code/thread_event.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

// A record takes some 200 bytes: 4 pages hold 0.8 s of a thread that never sleeps.
constexpr size_t kRingPages = 4;
constexpr uint16_t kFramesMax = 16;  // user stacks without frame pointers end after one

perf_event_attr Attributes(bool kernel) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.sample_period = static_cast<uint64_t>(kCodePeriodNs);
  attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;
  attr.disabled = 1;
  attr.exclude_kernel = kernel ? 0 : 1;
  attr.exclude_callchain_kernel = kernel ? 0 : 1;
  attr.exclude_hv = 1;
  attr.sample_id_all = 1;
  attr.mmap = 1;  // of code
  attr.sample_max_stack = kFramesMax;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;  // LTTng's
  attr.watermark = 1;              // nobody waits for it
  attr.wakeup_watermark = UINT32_MAX;
  return attr;
}

absl::Status OpenError(int error, const char* what) {
  switch (error) {
    case ESRCH:
      return absl::NotFoundError("The thread has ended");
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(absl::StrCat(what, ": ", std::strerror(error)));
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::ResourceExhaustedError(absl::StrCat(what, ": ", std::strerror(error)));
    default:
      return ErrnoStatus(error, what);
  }
}

class PerfEvent : public ThreadEvent {
 public:
  PerfEvent(Descriptor fd, void* ring, size_t page)
      : fd_(std::move(fd)), ring_(static_cast<uint8_t*>(ring)), page_(page) {}
  ~PerfEvent() override { ::munmap(ring_, page_ * (1 + kRingPages)); }
  PerfEvent(const PerfEvent&) = delete;
  PerfEvent& operator=(const PerfEvent&) = delete;

  void Enable() override { ::ioctl(fd_.get(), PERF_EVENT_IOC_ENABLE, 0); }
  void Disable() override { ::ioctl(fd_.get(), PERF_EVENT_IOC_DISABLE, 0); }

  PerfRecords Drain() override {
    auto* const control = reinterpret_cast<perf_event_mmap_page*>(ring_);
    const uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
    const uint64_t tail = control->data_tail;
    if (head == tail) return {};
    const size_t size = page_ * kRingPages;
    const uint8_t* const data = ring_ + page_;
    const size_t length = std::min<uint64_t>(head - tail, size);
    const size_t at = tail % size;
    const size_t first = std::min(length, size - at);
    std::vector<uint8_t> bytes(length);
    std::memcpy(bytes.data(), data + at, first);
    std::memcpy(bytes.data() + first, data, length - first);
    __atomic_store_n(&control->data_tail, head, __ATOMIC_RELEASE);
    return ParsePerfRecords(bytes);
  }

  int64_t OnCpuNs() override {
    uint64_t value = 0;
    if (::read(fd_.get(), &value, sizeof value) != sizeof value) return 0;
    return static_cast<int64_t>(value);
  }

 private:
  Descriptor fd_;
  uint8_t* ring_;
  size_t page_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ThreadEvent>> OpenPerfEvent(int32_t tid, bool kernel) {
  perf_event_attr attr = Attributes(kernel);
  const long opened = ::syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (opened < 0) return OpenError(errno, "perf_event_open");
  Descriptor fd(static_cast<int>(opened));
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* const ring =
      ::mmap(nullptr, page * (1 + kRingPages), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (ring == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a ring of samples: ", std::strerror(errno)));
  }
  return std::make_unique<PerfEvent>(std::move(fd), ring, page);
}

}  // namespace syncline::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/host/perf_ring.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace syncline::agent {

absl::StatusOr<PerfRing> PerfRing::Map(int event, size_t pages) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* const ring =
      ::mmap(nullptr, page * (1 + pages), PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
  if (ring == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a ring of samples: ", std::strerror(errno)));
  }
  return PerfRing(static_cast<uint8_t*>(ring), page, page * pages);
}

PerfRing::~PerfRing() {
  if (ring_ != nullptr) ::munmap(ring_, page_ + size_);
}

void PerfRing::Drain(std::vector<uint8_t>* bytes) {
  auto* const control = reinterpret_cast<perf_event_mmap_page*>(ring_);
  const uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
  const uint64_t tail = control->data_tail;
  if (head == tail) return;
  const uint8_t* const data = ring_ + page_;
  const size_t length = std::min<uint64_t>(head - tail, size_);
  const size_t at = tail % size_;
  const size_t first = std::min(length, size_ - at);
  const size_t old = bytes->size();
  bytes->resize(old + length);
  std::memcpy(bytes->data() + old, data + at, first);
  std::memcpy(bytes->data() + old + first, data, length - first);
  __atomic_store_n(&control->data_tail, head, __ATOMIC_RELEASE);
}

perf_event_attr PerfAttributes(uint32_t type, uint64_t config) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = type;
  attr.config = config;
  attr.disabled = 1;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;  // LTTng's
  attr.watermark = 1;              // nobody waits for it
  attr.wakeup_watermark = UINT32_MAX;
  return attr;
}

absl::StatusOr<Descriptor> OpenPerfEvent(const perf_event_attr& attr, int32_t tid, int32_t cpu) {
  perf_event_attr asked = attr;  // the kernel writes into it
  const long opened = ::syscall(SYS_perf_event_open, &asked, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  if (opened < 0) return PerfOpenError(errno);
  return Descriptor(static_cast<int>(opened));
}

absl::Status PerfOpenError(int error) {
  const char* const what = "perf_event_open";
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

}  // namespace syncline::agent

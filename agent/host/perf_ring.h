// SPDX-License-Identifier: Apache-2.0
// The ring into which the kernel writes the records of a perf event.
//
// Not thread-safe.
#ifndef SYNCLINE_AGENT_HOST_PERF_RING_H_
#define SYNCLINE_AGENT_HOST_PERF_RING_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files.h"

namespace syncline::agent {

class PerfRing {
 public:
  // One page of control data, and `pages` (a power of two) of records. ResourceExhausted: no memory
  // for it, or none that may be locked.
  static absl::StatusOr<PerfRing> Map(int event, size_t pages);
  PerfRing(PerfRing&& other) noexcept
      : ring_(std::exchange(other.ring_, nullptr)), page_(other.page_), size_(other.size_) {}
  PerfRing& operator=(PerfRing&& other) noexcept {
    std::swap(ring_, other.ring_);
    std::swap(page_, other.page_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~PerfRing();

  // Appends what came since the last call: whole records, the oldest first.
  void Drain(std::vector<uint8_t>* bytes);
  size_t size() const { return size_; }

 private:
  PerfRing(uint8_t* ring, size_t page, size_t size) : ring_(ring), page_(page), size_(size) {}

  uint8_t* ring_;
  size_t page_;
  size_t size_;  // of the records' part
};

// What is the same for all of the agent's events: they begin disabled, have LTTng's clock, say of
// each record what samples say, and wake nobody.
perf_event_attr PerfAttributes(uint32_t type, uint64_t config);
// Of the thread, or -1 for all; on the processor, or -1 for all. Errors: PerfOpenError.
absl::StatusOr<Descriptor> OpenPerfEvent(const perf_event_attr& attr, int32_t tid, int32_t cpu);

// What `errno` says of perf_event_open: NotFound: there is no such thread any more.
// PermissionDenied: the kernel, or a container's filter, refuses; ResourceExhausted: no descriptor,
// or no memory that may be locked.
absl::Status PerfOpenError(int error);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_HOST_PERF_RING_H_

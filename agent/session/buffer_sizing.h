// SPDX-License-Identifier: Apache-2.0
// How large the tracer's buffers may be. LTTng accepts a channel that nobody can allocate ("Tracing
// started", and an empty trace), and what it does allocate is taken from the job's memory: so the
// agent computes the need beforehand, chooses what fits, and refuses what does not. Pure.
//
//   bytes = buffer sets x (possible CPUs x ((sub-buffers + 1) x sub-buffer bytes + overhead)
//                          + metadata)
//
// A buffer set is one user (buffers per user) or one process (per process). LTTng-UST allocates for
// every *possible* CPU, not for those online; one sub-buffer more than asked for, which the reader
// holds; and for each set a metadata channel, without which nothing of the set can ever be read.
#ifndef SYNCLINE_AGENT_SESSION_BUFFER_SIZING_H_
#define SYNCLINE_AGENT_SESSION_BUFFER_SIZING_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"

namespace syncline::agent {

// The metadata channel's buffers, as small as LTTng makes them where nobody asks: a page each. What
// does not fit waits in the consumer daemon's own memory. (A channel that is enabled by name gets
// the size of a data channel unless it is told: 2.5 MiB.)
uint64_t MetadataSubbufferBytes();
inline constexpr uint32_t kMetadataSubbufferCount = 2;

struct BufferNeeds {
  uint32_t possible_cpus = 1;
  uint32_t buffer_sets = 1;                // users, or processes
  uint64_t requested_subbuffer_bytes = 0;  // 0: choose
  uint32_t requested_subbuffer_count = 0;  // 0: choose
};

struct BufferRoom {
  uint64_t shm_free_bytes = 0;
  std::optional<uint64_t> cgroup_headroom_bytes;  // nullopt: no limit
};

struct BufferPlan {
  uint64_t subbuffer_bytes = 0;
  uint32_t subbuffer_count = 0;
  uint64_t total_bytes = 0;
  bool shrunk = false;  // less than what is chosen when there is room
};

// FailedPrecondition when not even the smallest buffers fit, or those asked for do not: the message
// says what is needed, what there is, and what to do. InvalidArgument for sizes that are no powers
// of two.
absl::StatusOr<BufferPlan> PlanBuffers(const BufferNeeds& needs, const BufferRoom& room);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SESSION_BUFFER_SIZING_H_

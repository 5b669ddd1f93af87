// SPDX-License-Identifier: Apache-2.0
#include "agent/session/buffer_sizing.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace syncline::agent {
namespace {

// Guessed: 4 MiB per CPU absorbs half a second at 100,000 events/s of 80 bytes.
constexpr uint64_t kPreferredSubbufferBytes = 1 << 20;
constexpr uint64_t kSmallestSubbufferBytes = 16 << 10;
constexpr uint64_t kSubbufferBytesMin = 4 << 10;  // a page: LTTng's own minimum
constexpr uint32_t kPreferredSubbufferCount = 4;
// No machine has room for more; and products of larger ones would not fit 64 bits.
constexpr uint64_t kSubbufferBytesMax = uint64_t{1} << 30;
constexpr uint32_t kSubbufferCountMax = 1024;
// Per CPU besides the data: control structures. Guessed high: 36 KiB were seen.
constexpr uint64_t kOverheadBytes = 64 << 10;
// The sub-buffer that the reader holds; LTTng adds it to those asked for.
constexpr uint32_t kReaderSubbuffers = 1;
// The job's share is never touched: at most a quarter of what is free, and no more than this in
// all.
constexpr uint64_t kShare = 4;
constexpr uint64_t kTotalBytesMax = uint64_t{1} << 30;

uint64_t TotalBytes(const BufferNeeds& needs, uint64_t subbuffer_bytes, uint32_t count) {
  const uint64_t per_cpu = subbuffer_bytes * (count + kReaderSubbuffers) + kOverheadBytes;
  const uint64_t metadata =
      MetadataSubbufferBytes() * (kMetadataSubbufferCount + kReaderSubbuffers) + kOverheadBytes;
  return needs.buffer_sets * (needs.possible_cpus * per_cpu + metadata);
}

std::string Mebibytes(uint64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

absl::Status DoNotFit(const BufferNeeds& needs, const BufferRoom& room, uint64_t total) {
  std::string what = absl::StrCat("The trace buffers do not fit: ", needs.possible_cpus, " CPUs x ",
                                  needs.buffer_sets, " buffer sets need ", Mebibytes(total),
                                  ", but /dev/shm has ", Mebibytes(room.shm_free_bytes), " free");
  if (room.cgroup_headroom_bytes.has_value()) {
    absl::StrAppend(&what, " and the memory cgroup ", Mebibytes(*room.cgroup_headroom_bytes));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(what,
                   "; enlarge /dev/shm (docker run --shm-size=256m, or mount -o remount,size=256m "
                   "/dev/shm), choose smaller buffers (--buffer-size), or use buffers per user"));
}

}  // namespace

uint64_t MetadataSubbufferBytes() {
  return std::max<uint64_t>(kSubbufferBytesMin, static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)));
}

absl::StatusOr<BufferPlan> PlanBuffers(const BufferNeeds& needs, const BufferRoom& room) {
  const uint64_t available =
      std::min(room.shm_free_bytes, room.cgroup_headroom_bytes.value_or(room.shm_free_bytes));
  BufferPlan plan;
  plan.subbuffer_count = needs.requested_subbuffer_count != 0 ? needs.requested_subbuffer_count
                                                              : kPreferredSubbufferCount;
  if (!std::has_single_bit(plan.subbuffer_count) || plan.subbuffer_count < 2 ||
      plan.subbuffer_count > kSubbufferCountMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("The number of sub-buffers must be a power of two from 2 to ",
                     kSubbufferCountMax, ": ", plan.subbuffer_count));
  }
  if (needs.requested_subbuffer_bytes != 0) {
    plan.subbuffer_bytes = needs.requested_subbuffer_bytes;
    if (!std::has_single_bit(plan.subbuffer_bytes) || plan.subbuffer_bytes < kSubbufferBytesMin ||
        plan.subbuffer_bytes > kSubbufferBytesMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("The size of a sub-buffer must be a power of two from ", kSubbufferBytesMin,
                       " bytes to ", kSubbufferBytesMax, ": ", plan.subbuffer_bytes));
    }
    plan.total_bytes = TotalBytes(needs, plan.subbuffer_bytes, plan.subbuffer_count);
    // What somebody asked for may take more than our modest share, but never all there is.
    if (plan.total_bytes > available / 10 * 9) return DoNotFit(needs, room, plan.total_bytes);
    return plan;
  }
  const uint64_t budget = std::min(available / kShare, kTotalBytesMax);
  plan.subbuffer_bytes = kPreferredSubbufferBytes;
  while (plan.subbuffer_bytes > kSmallestSubbufferBytes &&
         TotalBytes(needs, plan.subbuffer_bytes, plan.subbuffer_count) > budget) {
    plan.subbuffer_bytes /= 2;
  }
  plan.shrunk = plan.subbuffer_bytes < kPreferredSubbufferBytes;
  plan.total_bytes = TotalBytes(needs, plan.subbuffer_bytes, plan.subbuffer_count);
  // The smallest buffers may take more than the share; half of what is free is the end.
  if (plan.total_bytes > budget && plan.total_bytes > available / 2) {
    return DoNotFit(needs, room, plan.total_bytes);
  }
  return plan;
}

}  // namespace syncline::agent

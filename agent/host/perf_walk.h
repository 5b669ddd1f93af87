// SPDX-License-Identifier: Apache-2.0
// Goes through the records of a perf_event ring.
//
// Thread-safety: no state.
#ifndef SYNCLINE_AGENT_HOST_PERF_WALK_H_
#define SYNCLINE_AGENT_HOST_PERF_WALK_H_

#include <linux/perf_event.h>

#include <cstdint>
#include <cstring>
#include <span>

namespace syncline::agent {

// Calls `take(header, body)` for each record of `bytes`, which are whole ones, from the oldest on.
// Returns false at the first that cannot be, or of which `take` returns false: nothing behind it is
// read.
template <class Take>
bool WalkPerfRecords(std::span<const uint8_t> bytes, const Take& take) {
  while (!bytes.empty()) {
    perf_event_header header{};
    if (bytes.size() < sizeof header) return false;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.size < sizeof header || header.size > bytes.size()) return false;
    if (!take(header, bytes.subspan(sizeof header, header.size - sizeof header))) return false;
    bytes = bytes.subspan(header.size);
  }
  return true;
}

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_HOST_PERF_WALK_H_

// SPDX-License-Identifier: Apache-2.0
// The coordinator's clocks and its waiting, as a seam: only main has the real ones.
#ifndef SYNCLINE_COORDINATOR_HOST_CLOCK_H_
#define SYNCLINE_COORDINATOR_HOST_CLOCK_H_

#include <cstdint>
#include <stop_token>

namespace syncline::host {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // CLOCK_MONOTONIC_RAW of this machine.
  virtual int64_t RawNs() const = 0;
  // CLOCK_REALTIME: for names, display and certificates only; it never enters a model.
  virtual int64_t UnixNs() const = 0;
  // Returns after `ns`, or as soon as `stop` is requested.
  virtual void Wait(int64_t ns, const std::stop_token& stop) = 0;
};

}  // namespace syncline::host

#endif  // SYNCLINE_COORDINATOR_HOST_CLOCK_H_

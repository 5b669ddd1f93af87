// SPDX-License-Identifier: Apache-2.0
// What a process's devices did for its collectives, as NCCL (or RCCL) itself says it: of which
// communicator, which one of it, and when the device worked at it, by the device's own clock.
//
// That clock is placed in the trace clock by what is known of each collective: the device did not
// begin before a time of the host (`since`), and a stamp was in the host's hands no earlier than it
// was made (`ahead`: by how much the trace clock is ahead at most). A stamp is of the clock's
// last step. Between collectives the two clocks may drift apart by kDriftPpm. Where these
// contradict each other nothing is placed: the device's clock does not count nanoseconds, or runs
// otherwise. Pure. Thread-safety: plain values.
#ifndef SYNCLINE_TIMELINE_DEVICE_COLLECTIVES_H_
#define SYNCLINE_TIMELINE_DEVICE_COLLECTIVES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/time.h"
#include "timeline/sink.h"

namespace syncline::timeline {

struct Communicator {
  uint64_t id = 0;    // the same on all of its ranks
  uint32_t size = 0;  // ranks
  uint32_t rank = 0;  // the process's, in it
  auto operator<=>(const Communicator&) const = default;
};

// Of the device's clock, as the collectives of one communicator tell.
struct CommunicatorClock {
  bool placed = false;
  int64_t step_ns = 1;  // by which its stamps differ, or multiples of it
};

struct DeviceCollective {
  uint32_t communicator = 0;         // these two: index into ProcessCollectives'
  uint32_t name = 0;                 // "AllReduce"
  std::optional<uint64_t> sequence;  // by communicator and name, alike on all ranks
  uint64_t bytes = 0;                // 0: not known
  int64_t begin_device_ns = 0;       // these two: the device's own clock
  int64_t end_device_ns = 0;
  std::optional<int64_t> since_ns;  // these two as above: the trace clock, and its difference
  int64_t ahead_ns = 0;
  int64_t watched_ns = 0;  // by the host: from when the first stamp was there to when the last was
  // Where its clock could be placed: the trace clock, within so much.
  std::optional<int64_t> begin_ns;
  int64_t bound_ns = 0;
  TimelineTime begin;  // of begin_ns

  int64_t duration_ns() const { return end_device_ns - begin_device_ns; }
};

struct ProcessCollectives {
  TrackId track = kNoTrack;  // the process's
  ProcessKey key;
  std::string process;  // its name
  std::vector<Communicator> communicators;
  std::vector<std::string> names;
  std::vector<DeviceCollective> collectives;  // by communicator, then begin
  std::vector<CommunicatorClock> clocks;      // beside communicators
};

inline constexpr int64_t kDriftPpm = 500;

enum class ClockPlacing : uint8_t {
  kPlaced,
  kNothingKnown,   // no time is known before which the device did not begin
  kContradiction,  // it does not count nanoseconds, or drifts by more
  kOthersStamps,   // they were there long after they were made: they are of other collectives
};

// Of one communicator, by begin_device_ns. 1 where there are no two stamps.
int64_t ClockStepNs(std::span<const DeviceCollective> collectives);

// Of one communicator, by begin_device_ns: sets begin_ns and bound_ns if it is placed.
ClockPlacing PlaceDeviceClock(std::span<DeviceCollective> collectives);

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_DEVICE_COLLECTIVES_H_

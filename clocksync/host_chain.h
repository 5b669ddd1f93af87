// SPDX-License-Identifier: Apache-2.0
// The clocks of one host against each other: CLOCK_MONOTONIC, BOOTTIME and REALTIME as functions of
// CLOCK_MONOTONIC_RAW, from bracketed readings.
//
// A tuple says: when RAW read `before`, the other clock read at most its reading, and when RAW read
// `after`, at least that. These are exactly the constraints of corridor.h. Between two tuples with
// equal adjtimex the clock runs straight; where adjtimex differs, or the readings do not fit a
// straight line, its rate changed at an unknown instant and the interval is what any rate between
// the two (or the kernel's limits) allows. REALTIME may be set: a step ends a map and begins
// another, and nothing is interpolated over it.
#ifndef SYNCLINE_CLOCKSYNC_HOST_CHAIN_H_
#define SYNCLINE_CLOCKSYNC_HOST_CHAIN_H_

#include <vector>

#include "clocksync/bounded_map.h"
#include "clocksync/builder.h"
#include "clocksync/samples.h"

namespace syncline::clocksync {

// RAW -> each clock. Empty where there are no readings.
struct HostMaps {
  BoundedMap monotonic;
  BoundedMap boottime;
  std::vector<BoundedMap> realtime;  // one per stretch between two steps, in the order of RAW
};

struct HostFit {
  HostMaps maps;
  std::vector<ClockEvent> events;
};

HostFit FitHostClocks(const HostClocks& host);

// RAW when REALTIME reads `ns`: of all stretches that can have read it the union, est from the
// last.
Bounds RawOfRealtime(const std::vector<BoundedMap>& realtime, int64_t ns);
// REALTIME when RAW reads `ns`; between two stretches and outside all: of the nearest, interval
// unknown.
Bounds RealtimeOfRaw(const std::vector<BoundedMap>& realtime, int64_t ns);

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_HOST_CHAIN_H_

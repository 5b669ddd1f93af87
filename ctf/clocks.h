// SPDX-License-Identifier: Apache-2.0
// From the clock values of a trace to nanoseconds.
//
// A trace has one time: that of the first stream class's clock, in ns, without its offset (LTTng's
// trace clock is CLOCK_MONOTONIC). The values of other clocks are shifted by the difference of the
// offsets, where both have one origin: that of all absolute ones, or (CTF 2) of one name, or, as
// far as nothing says so, of the same clock by its uuid (CTF 1.8, section 8).
#ifndef SYNCLINE_CTF_CLOCKS_H_
#define SYNCLINE_CTF_CLOCKS_H_

#include <cstdint>
#include <optional>

#include "ctf/layout.h"
#include "ctf/metadata.h"

namespace syncline::ctf {

// Ends at INT64_MAX; may be negative where the clock is shifted. A stream without a clock (null)
// counts ns.
int64_t CyclesToNs(const ClockClass* clock, uint64_t cycles);

// Whether its values are the trace's time as they are.
inline bool CountsTraceNs(const ClockClass* clock) {
  return clock == nullptr || (clock->frequency == 1'000'000'000 && clock->shift_ns == 0);
}

// From the origin to its zero; nullopt: beyond what 64 bits hold.
std::optional<int64_t> OffsetNs(const ClockClass& clock);

// Sets TraceLayout::clock, and gives streams of other clocks shifted ones.
void PlaceClocks(TraceLayout* layout);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_CLOCKS_H_

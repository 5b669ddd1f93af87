// From the clock values of a trace to nanoseconds.
//
// A trace has one time: its clock's value in ns, without that clock's offset (LTTng's trace clock
// is CLOCK_MONOTONIC). Where streams have clocks of different offsets, it is that of the clock
// whose zero is the earliest, and the values of the others are shifted by the difference (CTF 1.8,
// 8; CTF 2, "clock class fragment": both count from one origin).
#ifndef SYNCLINE_CTF_CLOCKS_H_
#define SYNCLINE_CTF_CLOCKS_H_

#include <cstdint>
#include <optional>

#include "ctf/layout.h"
#include "ctf/metadata.h"

namespace syncline::ctf {

// Ends at INT64_MAX. A stream without a clock (null) counts ns.
int64_t CyclesToNs(const ClockClass* clock, uint64_t cycles);

// Whether its values are the trace's time as they are.
inline bool CountsTraceNs(const ClockClass* clock) {
  return clock == nullptr || (clock->frequency == 1'000'000'000 && clock->shift_ns == 0);
}

// From the origin to its zero; nullopt: beyond what 64 bits hold.
std::optional<int64_t> OffsetNs(const ClockClass& clock);

// Sets TraceLayout::clock, and gives the streams whose clocks begin later shifted ones.
void PlaceClocks(TraceLayout* layout);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_CLOCKS_H_

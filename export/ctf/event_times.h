// SPDX-License-Identifier: Apache-2.0
// Writes over the times of events where they stand, two packets in lock step on one thread.
//
// As in ctf/lanes.h: where an event begins is known when the size of the one before it is, and what
// a processor waits for in one packet it has time for in another. A lane takes events that the fast
// path knows, whose times lie on one straight line of the placement, and that keep their sizes. It
// stops in front of anything else.
#ifndef SYNCLINE_EXPORT_CTF_EVENT_TIMES_H_
#define SYNCLINE_EXPORT_CTF_EVENT_TIMES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "clocksync/clock_line.h"
#include "ctf/layout.h"

namespace syncline::ctf_export {

inline constexpr size_t kTimeLanes = 2;

// Where the writing over stands in one packet.
struct TimeLane {
  const ctf::StreamLayout* stream = nullptr;  // with a fast header and a clock in ns
  uint8_t* at = nullptr;                      // the next event
  uint8_t* end = nullptr;                     // of the packet's content
  uint64_t clock = 0;                         // of the event before, ns
  uint64_t value = 0;                         // what was written for it
  uint64_t latest = 0;                        // no event is later
  clocksync::ClockLine line;                  // from clock values to what is to be written
  uint64_t events = 0;                        // written over so far
};

// Moves all lanes (at most kTimeLanes, of one stream class) on until one of them stops. They stop
// near the end of a packet, too.
void RewriteTimes(std::span<TimeLane> lanes);

// One event of one lane, also at the end of a packet; false: it is not for lanes.
bool RewriteTime(TimeLane& lane);

// The time of the next event, by the trace's clock; nullopt: there is none.
std::optional<uint64_t> NextClock(const TimeLane& lane);

// How far apart two events may be for the later one to have a short header, ns.
constexpr uint64_t BriefSpan(ctf::FastHeader kind) {
  return uint64_t{1} << (kind == ctf::FastHeader::kCompact ? 27 : 32);
}

}  // namespace syncline::ctf_export

#endif  // SYNCLINE_EXPORT_CTF_EVENT_TIMES_H_

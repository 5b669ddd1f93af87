// Several packets walked in lock step on one thread.
//
// Where an event begins depends on the size of the one before it: load its id, look its size up,
// add. A processor can do nothing else for that packet meanwhile, some 10 ns per event. Packets do
// not depend on each other, so while one waits others go on; four of them are about three times as
// fast as one after the other.
//
// A lane takes events that the fast path (fast_path.h) knows and with which nothing is wrong. It
// stops in front of anything else, which is then the ordinary decoder's to look at: what is fast
// never decides what is right.
#ifndef SYNCLINE_CTF_LANES_H_
#define SYNCLINE_CTF_LANES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/event_cursor.h"
#include "ctf/layout.h"

namespace syncline::ctf {

inline constexpr size_t kLanes = 4;
inline constexpr size_t kLaneSteps =
    512;  // what they touch then is still in the second-level cache

// Records of one event class.
struct Bucket {
  std::unique_ptr<EventRecord[]> records;  // room for kLaneSteps; made when it is first needed
  uint32_t count = 0;
};

struct Lane {
  const StreamLayout* stream = nullptr;  // with a fast header and a clock in ns
  const uint8_t* base = nullptr;         // of the packet
  const uint8_t* at = nullptr;           // the next event
  const uint8_t* end = nullptr;          // of the packet's content
  uint64_t clock = 0;                    // of the event before, ns
  uint64_t latest = 0;                   // no event is later
  Bucket* buckets = nullptr;             // by EventClass::index
  uint32_t* used = nullptr;              // indices of the buckets that are not empty
  size_t used_count = 0;
};

// Advances all lanes by one event at a time, kLaneSteps times or until one of them stops. Records
// go into the lane's bucket for their class, in order; `at` and `clock` are where the lane got to.
void RunLanes(std::span<Lane> lanes);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_LANES_H_

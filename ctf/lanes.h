// Several packets walked in lock step on one thread.
//
// Where an event begins depends on the size of the one before it: load its id, look its size up,
// add. A processor can do nothing else for that packet meanwhile, some 5 ns per event. Packets do
// not depend on each other, so while one waits others go on. FindEvents() does this chain and
// nothing else; what is known then is where events begin, and all that is left to do is independent
// from event to event: LaneRecords makes records of them, by class.
//
// A lane takes events that the fast path (fast_path.h) knows and with which nothing is wrong. It
// stops in front of anything else, which is then the ordinary decoder's to look at: what is fast
// never decides what is right.
#ifndef SYNCLINE_CTF_LANES_H_
#define SYNCLINE_CTF_LANES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/event_cursor.h"
#include "ctf/layout.h"

namespace syncline::ctf {

inline constexpr size_t kLanes = 4;
// Enough for loops over the events of one class to be worth their beginning and end, few enough for
// a lane's events and records to lie in the nearer caches.
inline constexpr size_t kLaneSteps = 512;

struct Lane {
  const StreamLayout* stream = nullptr;  // with a fast header and a clock in ns
  const uint8_t* base = nullptr;         // of the packet
  const uint8_t* at = nullptr;           // the next event
  const uint8_t* end = nullptr;          // of the packet's content
  uint64_t clock = 0;                    // of the event before, ns
  uint64_t latest = 0;                   // no event is later
};

// Where events begin, by lane.
struct FoundEvents {
  std::array<std::array<const uint8_t*, kLaneSteps>, kLanes> places;
  std::array<size_t, kLanes> counts;

  std::span<const uint8_t* const> OfLane(size_t i) const { return {places[i].data(), counts[i]}; }
};

// Advances all lanes by one event at a time, kLaneSteps times or until one of them stops; `at` is
// where each got to. Times are not looked at: `clock` stays.
void FindEvents(std::span<Lane> lanes, FoundEvents* found);

// The events of one lane, by class.
class LaneRecords {
 public:
  explicit LaneRecords(size_t classes) : buckets_(classes), used_(classes) {}

  // Takes the events that FindEvents() found in the lane, and forgets those of before; brings the
  // lane's `clock` up to date. In front of one whose time cannot be it stops, and the lane goes
  // back there.
  void Fill(Lane& lane, std::span<const uint8_t* const> events);

  // Of one class each, in order.
  size_t class_count() const { return used_count_; }
  std::span<const EventRecord> OfClass(size_t i) const {
    const Bucket& bucket = buckets_[used_[i]];
    return {bucket.records.get(), bucket.next};
  }

 private:
  struct Bucket {
    EventRecord* next = nullptr;
    std::unique_ptr<EventRecord[]> records;  // room for kLaneSteps; made when it is first needed
  };
  void Clear();
  template <FastHeader kKind>
  bool Sort(Lane& lane, std::span<const uint8_t* const> events);
  void Open(const FastEvent& event);

  std::vector<Bucket> buckets_;  // by EventClass::index
  std::vector<uint32_t> used_;   // indices of the buckets that are not empty
  size_t used_count_ = 0;
};

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_LANES_H_

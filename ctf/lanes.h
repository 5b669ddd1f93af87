// SPDX-License-Identifier: Apache-2.0
// Several packets walked in lock step on one thread.
//
// Where an event begins depends on the size of the one before it: load its id, look its size up,
// add. A processor can do nothing else for that packet meanwhile, some 5 ns per event. Packets do
// not depend on each other, so while one waits the other goes on: WalkLanes() advances each of them
// by one event at a time and puts what it finds into the lane's records, by class.
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
#include <vector>

#include "absl/status/status.h"
#include "common/event_cursor.h"
#include "ctf/layout.h"

namespace syncline::ctf {

// What is known of more does not fit a processor's registers, and costs what it gains.
inline constexpr size_t kLanes = 2;

// The events found in one packet and not yet visited, by class. They wait until there are enough of
// one class, because loops over fields cost their beginning and end once per visit, and most traces
// have some classes that are rare.
class LaneRecords {
 public:
  struct Bucket {  // of one class
    EventRecord* next = nullptr;
    EventRecord* end = nullptr;
    std::unique_ptr<EventRecord[]> records;
    size_t kept = 0;

    size_t size() const { return static_cast<size_t>(next - records.get()); }
  };

  // `events` (by EventClass::index) and `visit` must outlive it.
  LaneRecords(std::span<const EventLayout* const> events, TraceReader::Visit visit);

  // Where records are put, by EventClass::index.
  Bucket* buckets() { return buckets_.data(); }

  // Makes room for more of the class, if it can without a visit.
  bool Grow(uint32_t class_index);

  // What was put since Keep() is kept, or taken back.
  void Keep();
  void TakeBack();

  // Gives `visit` the records of one class, or of all, and forgets them. `cursor` still stands in
  // their packet. The first error stays, and nothing is visited any more.
  const absl::Status& status() const { return status_; }
  absl::Status Visit(EventCursor& cursor, uint32_t class_index);
  absl::Status VisitAll(EventCursor& cursor);

 private:
  std::span<const EventLayout* const> events_;
  TraceReader::Visit visit_;
  absl::Status status_;
  size_t records_max_;           // of a class
  std::vector<Bucket> buckets_;  // by EventClass::index
  std::vector<uint32_t> used_;   // indices of the buckets that have had records
};

struct Lane {
  const StreamLayout* stream = nullptr;  // with a fast header and a clock in ns
  const uint8_t* base = nullptr;         // of the packet
  const uint8_t* at = nullptr;           // the next event
  const uint8_t* end = nullptr;          // of the packet's content
  uint64_t clock = 0;                    // of the event before, ns
  uint64_t latest = 0;                   // no event is later
  EventCursor* cursor = nullptr;         // in the packet, for those who visit
  LaneRecords* records = nullptr;        // of the packet
  bool stopped = false;                  // in front of something that is for the ordinary decoder
};

// Advances all lanes until one of them stops. Lanes whose times cannot be stop where those were
// last known to be right.
void WalkLanes(std::span<Lane> lanes);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_LANES_H_

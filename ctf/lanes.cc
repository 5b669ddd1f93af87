// SPDX-License-Identifier: Apache-2.0
#include "ctf/lanes.h"

#include <algorithm>
#include <utility>

#include "ctf/bits.h"
#include "ctf/event_header.h"
#include "ctf/walk.h"

namespace syncline::ctf {
namespace {

// Far enough for memory to answer in time.
constexpr ptrdiff_t kAhead = 1024;
constexpr size_t kRecordsMin = 32;   // of one class, at first
constexpr size_t kRecordsMax = 256;  // that wait: they and their events lie in the nearest cache
// Of all classes together, unless that leaves less than kRecordsMin to each: half a MiB.
constexpr size_t kRecordsTotal = 16384;

// What the walk needs of a lane at hand.
struct Chain {
  const uint8_t* at;
  const uint8_t* safe_end;  // an event of fixed size that begins before it ends in the packet
  uint64_t clock;
  LaneRecords::Bucket* buckets;
};

Chain Prepare(const Lane& lane) {
  const size_t longest = kEventHeaderBytesMax + lane.stream->fast_bytes_max;
  const bool room = static_cast<size_t>(lane.end - lane.at) >= longest;
  return {lane.at, room ? lane.end - longest + 1 : lane.at, lane.clock, lane.records->buckets()};
}

// False when a time of what was found cannot be: short headers cannot step back, so that the last
// one tells of all. Otherwise the lane goes on from here.
bool Settle(Lane& lane, const uint8_t* at, uint64_t clock) {
  if (clock > lane.latest) return false;
  lane.records->Keep();
  lane.at = at;
  lane.clock = clock;
  return true;
}

__attribute__((noinline)) bool MakeRoom(Lane& lane, const uint8_t* at, uint64_t clock,
                                        uint32_t class_index) {
  return lane.records->Grow(class_index) ||
         (Settle(lane, at, clock) && lane.records->Visit(*lane.cursor, class_index).ok());
}

// One with a full timestamp, or of varying size.
struct RareEvent {
  const uint8_t* body = nullptr;
  const uint8_t* next = nullptr;  // null: it is not for a lane
  uint64_t clock = 0;
  uint32_t class_index = 0;
};

template <FastHeader kKind>
__attribute__((noinline)) RareEvent FindRare(const Lane& lane, const uint8_t* at, uint64_t clock) {
  RareEvent rare{at, nullptr, clock, 0};
  uint32_t id = 0;
  if (!ReadEventHeader(kKind, rare.body, lane.end, rare.clock, id)) return rare;
  // Only here can a time step back.
  if (rare.clock < clock || rare.clock > lane.latest) return rare;
  rare.next = SkipFastEvent(*lane.stream, id, rare.body, lane.end);
  if (rare.next != nullptr) rare.class_index = lane.stream->fast_events[id].class_index;
  return rare;
}

// Steps of lanes that are all of one stream class.
template <FastHeader kKind>
class LaneWalk {
 public:
  explicit LaneWalk(const StreamLayout& stream)
      : events_(stream.brief_events.data()),
        known_(static_cast<uint32_t>(stream.brief_events.size())) {}

  // One event of the lane; false, and it stays where it is, when it has to stop.
  [[gnu::always_inline]] bool Step(Lane& lane, Chain& chain) const {
    const uint8_t* const at = chain.at;
    if (at >= chain.safe_end) return Stop(lane);
    __builtin_prefetch(at + kAhead);
    const uint32_t id = LoadNumber<uint16_t>(at, false) & kLong;
    if (id >= known_ || events_[id].bytes == 0) [[unlikely]] {
      const RareEvent rare = FindRare<kKind>(lane, at, chain.clock);
      if (rare.next == nullptr) return Stop(lane);
      return Put(lane, chain, rare.class_index, rare.body, rare.next, rare.clock);
    }
    const uint64_t clock = kLarge
                               ? ExtendClock(chain.clock, LoadNumber<uint32_t>(at + 2, false), 32)
                               : ExtendClock(chain.clock, LoadNumber<uint32_t>(at, false) >> 5, 27);
    const BriefEvent& event = events_[id];
    return Put(lane, chain, event.class_index, at + kBrief, at + event.bytes, clock);
  }

 private:
  static constexpr bool kLarge = kKind == FastHeader::kLarge;
  static constexpr uint32_t kLong = kLarge ? 65535 : 31;
  static constexpr size_t kBrief = kLarge ? 6 : 4;

  static bool Stop(Lane& lane) {
    lane.stopped = true;
    return false;
  }

  [[gnu::always_inline]] static bool Put(Lane& lane, Chain& chain, uint32_t class_index,
                                         const uint8_t* body, const uint8_t* next, uint64_t clock) {
    LaneRecords::Bucket& bucket = chain.buckets[class_index];
    if (bucket.next == bucket.end && !MakeRoom(lane, chain.at, chain.clock, class_index))
        [[unlikely]] {
      return Stop(lane);
    }
    EventRecord* const record = bucket.next++;
    record->time_ns = static_cast<int64_t>(clock);
    record->bytes = body;
    chain.at = next;
    chain.clock = clock;
    return true;
  }

  const BriefEvent* events_;
  uint32_t known_;
};

template <FastHeader kKind, size_t... kLane>
void Walk(std::span<Lane> lanes, std::index_sequence<kLane...>) {
  const LaneWalk<kKind> walk(*lanes[0].stream);
  Chain chains[] = {Prepare(lanes[kLane])...};
  // Not a loop over the lanes: what is known of each shall stay in registers.
  while ((walk.Step(lanes[kLane], chains[kLane]) && ...)) {
  }
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (Settle(lanes[i], chains[i].at, chains[i].clock)) continue;
    lanes[i].records->TakeBack();
    lanes[i].stopped = true;
  }
}

template <FastHeader kKind>
void WalkAlike(std::span<Lane> lanes) {
  static_assert(kLanes == 2);
  if (lanes.size() == 1) return Walk<kKind>(lanes, std::make_index_sequence<1>());
  Walk<kKind>(lanes, std::make_index_sequence<2>());
}

}  // namespace

void WalkLanes(std::span<Lane> lanes) {
  while (!lanes.empty()) {
    const StreamLayout* const stream = lanes[0].stream;
    size_t alike = 1;
    while (alike < std::min(lanes.size(), kLanes) && lanes[alike].stream == stream) ++alike;
    if (stream->fast_header == FastHeader::kLarge) {
      WalkAlike<FastHeader::kLarge>(lanes.first(alike));
    } else {
      WalkAlike<FastHeader::kCompact>(lanes.first(alike));
    }
    lanes = lanes.subspan(alike);
  }
}

LaneRecords::LaneRecords(std::span<const EventLayout* const> events, TraceReader::Visit visit)
    : events_(events),
      visit_(visit),
      records_max_(
          std::clamp(kRecordsTotal / std::max<size_t>(events.size(), 1), kRecordsMin, kRecordsMax)),
      buckets_(events.size()) {}

bool LaneRecords::Grow(uint32_t class_index) {
  Bucket& bucket = buckets_[class_index];
  const size_t size = bucket.size();
  if (size == records_max_) return false;
  if (size == 0) used_.push_back(class_index);
  const size_t room = std::clamp(2 * size, kRecordsMin, records_max_);
  auto records = std::make_unique<EventRecord[]>(room);
  std::copy_n(bucket.records.get(), size, records.get());
  for (size_t i = size; i < room; ++i) records[i].event_class = &events_[class_index]->event_class;
  bucket.records = std::move(records);
  bucket.next = bucket.records.get() + size;
  bucket.end = bucket.records.get() + room;
  return true;
}

void LaneRecords::Keep() {
  for (const uint32_t index : used_) buckets_[index].kept = buckets_[index].size();
}

void LaneRecords::TakeBack() {
  for (const uint32_t index : used_) {
    Bucket& bucket = buckets_[index];
    bucket.next = bucket.records.get() + bucket.kept;
  }
}

absl::Status LaneRecords::Visit(EventCursor& cursor, uint32_t class_index) {
  Bucket& bucket = buckets_[class_index];
  const size_t size = bucket.size();
  bucket.next = bucket.records.get();
  bucket.kept = 0;
  if (status_.ok() && size > 0) status_ = visit_(cursor, {bucket.records.get(), size});
  return status_;
}

absl::Status LaneRecords::VisitAll(EventCursor& cursor) {
  for (const uint32_t index : used_) Visit(cursor, index).IgnoreError();
  return status_;
}

}  // namespace syncline::ctf

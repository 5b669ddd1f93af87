#include "ctf/lanes.h"

#include <array>

#include "ctf/bits.h"
#include "ctf/event_header.h"
#include "ctf/walk.h"

namespace syncline::ctf {
namespace {

// Far enough for memory to answer in time.
constexpr ptrdiff_t kAhead = 2048;

// What a lane needs at hand.
struct Chain {
  const uint8_t* safe_end;  // an event of fixed size that begins before it ends in the packet
  const uint32_t* brief_bytes;
  uint32_t brief_count;
  uint32_t id_mask;
};

Chain Prepare(const Lane& lane) {
  const size_t longest = kEventHeaderBytesMax + lane.stream->fast_bytes_max;
  const bool room = static_cast<size_t>(lane.end - lane.at) >= longest;
  return {room ? lane.end - longest + 1 : lane.at, lane.stream->brief_bytes.data(),
          static_cast<uint32_t>(lane.stream->brief_bytes.size()),
          lane.stream->fast_header == FastHeader::kCompact ? 31u : 65535u};
}

// Behind an event with a full timestamp, or of varying size; where it began when it is not for a
// lane.
__attribute__((noinline)) const uint8_t* SkipRare(const Lane& lane, const uint8_t* at) {
  const uint8_t* body = at;
  uint64_t clock = 0;
  uint32_t id = 0;
  if (!ReadEventHeader(lane.stream->fast_header, body, lane.end, clock, id)) return at;
  const uint8_t* next = SkipFastEvent(*lane.stream, id, body, lane.end);
  return next == nullptr ? at : next;
}

template <size_t N>
void Run(std::span<Lane> lanes, FoundEvents& found) {
  std::array<Chain, N> chains;
  std::array<const uint8_t*, N> places;
  for (size_t i = 0; i < N; ++i) {
    chains[i] = Prepare(lanes[i]);
    places[i] = lanes[i].at;
  }
  bool going = true;
  size_t steps = 0;
  for (; going && steps < kLaneSteps; ++steps) {
#pragma GCC unroll 8
    for (size_t i = 0; i < N; ++i) {
      const Chain& chain = chains[i];
      const uint8_t* const at = places[i];
      found.places[i][steps] = at;
      if (at >= chain.safe_end) {
        going = false;
        continue;
      }
      __builtin_prefetch(at + kAhead);
      const uint32_t id = LoadNumber<uint16_t>(at, false) & chain.id_mask;
      const uint32_t bytes = id < chain.brief_count ? chain.brief_bytes[id] : 0;
      places[i] = at + bytes;
      if (bytes == 0) {
        places[i] = SkipRare(lanes[i], at);
        going &= places[i] != at;
      }
    }
  }
  for (size_t i = 0; i < N; ++i) {
    lanes[i].at = places[i];
    // What the last step stopped at was not passed.
    found.counts[i] = steps > 0 && found.places[i][steps - 1] == places[i] ? steps - 1 : steps;
  }
}

}  // namespace

void FindEvents(std::span<Lane> lanes, FoundEvents* found) {
  static_assert(kLanes == 4);
  switch (lanes.size()) {
    case 1:
      return Run<1>(lanes, *found);
    case 2:
      return Run<2>(lanes, *found);
    case 3:
      return Run<3>(lanes, *found);
    case 4:
      return Run<4>(lanes, *found);
    default:
      return;
  }
}

void LaneRecords::Clear() {
  for (size_t i = 0; i < used_count_; ++i) {
    Bucket& bucket = buckets_[used_[i]];
    bucket.next = bucket.records.get();
  }
  used_count_ = 0;
}

__attribute__((noinline)) void LaneRecords::Open(const FastEvent& event) {
  Bucket& bucket = buckets_[event.class_index];
  used_[used_count_++] = event.class_index;
  if (bucket.records != nullptr) return;
  bucket.records = std::make_unique<EventRecord[]>(kLaneSteps);
  for (size_t i = 0; i < kLaneSteps; ++i) {
    bucket.records[i].event_class = &event.layout->event_class;
  }
  bucket.next = bucket.records.get();
}

// False when some time cannot be. Short headers cannot step back, so that all of their times can be
// judged by the last one.
template <FastHeader kKind>
bool LaneRecords::Sort(Lane& lane, std::span<const uint8_t* const> events) {
  constexpr bool kLarge = kKind == FastHeader::kLarge;
  constexpr uint32_t kLong = kLarge ? 65535 : 31;
  const FastEvent* const classes = lane.stream->fast_events.data();
  Bucket* const buckets = buckets_.data();
  uint64_t clock = lane.clock;
  for (const uint8_t* bytes : events) {
    // As ReadEventHeader(), whose checks FindEvents() has made.
    uint32_t id = LoadNumber<uint16_t>(bytes, false) & kLong;
    if (id != kLong) {
      clock = kLarge ? ExtendClock(clock, LoadNumber<uint32_t>(bytes + 2, false), 32)
                     : ExtendClock(clock, LoadNumber<uint32_t>(bytes, false) >> 5, 27);
      bytes += kLarge ? 6 : 4;
    } else {
      const uint64_t before = clock;
      ReadEventHeader(kKind, bytes, lane.end, clock, id);
      if (clock < before || clock > lane.latest) return false;
    }
    Bucket& bucket = buckets[classes[id].class_index];
    if (bucket.next == bucket.records.get()) Open(classes[id]);
    EventRecord* const record = bucket.next++;
    record->time_ns = static_cast<int64_t>(clock);
    record->bytes = bytes;
  }
  if (clock > lane.latest) return false;
  lane.clock = clock;
  return true;
}

void LaneRecords::Fill(Lane& lane, std::span<const uint8_t* const> events) {
  const FastHeader kind = lane.stream->fast_header;
  const auto sort = [&] {
    Clear();
    return kind == FastHeader::kLarge ? Sort<FastHeader::kLarge>(lane, events)
                                      : Sort<FastHeader::kCompact>(lane, events);
  };
  if (sort()) return;
  uint64_t clock = lane.clock;
  for (size_t i = 0; i < events.size(); ++i) {
    const uint8_t* bytes = events[i];
    const uint64_t before = clock;
    uint32_t id = 0;
    ReadEventHeader(kind, bytes, lane.end, clock, id);
    if (clock >= before && clock <= lane.latest) continue;
    lane.at = events[i];
    events = events.first(i);
    break;
  }
  sort();
}

}  // namespace syncline::ctf

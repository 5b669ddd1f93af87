#include "ctf/lanes.h"

#include <array>

#include "ctf/bits.h"
#include "ctf/event_header.h"
#include "ctf/walk.h"

namespace syncline::ctf {
namespace {

// What a lane needs at hand.
struct Fast {
  const uint8_t* at;
  const uint8_t* safe_end;  // an event of fixed size that begins before it ends in the packet
  uint64_t clock;
  size_t used_count;
  const FastEvent* events;
  uint32_t event_count;
  bool compact;
};

Fast Prepare(const Lane& lane) {
  const size_t longest = kEventHeaderBytesMax + lane.stream->fast_bytes_max;
  const bool room = static_cast<size_t>(lane.end - lane.at) >= longest;
  return {lane.at,
          room ? lane.end - longest + 1 : lane.at,
          lane.clock,
          0,
          lane.stream->fast_events.data(),
          static_cast<uint32_t>(lane.stream->fast_events.size()),
          lane.stream->fast_header == FastHeader::kCompact};
}

__attribute__((noinline)) void Open(const Lane& lane, uint32_t class_index, Fast& fast) {
  Bucket& bucket = lane.buckets[class_index];
  if (bucket.records == nullptr) bucket.records = std::make_unique<EventRecord[]>(kLaneSteps);
  lane.used[fast.used_count++] = class_index;
}

inline void Record(const Lane& lane, const FastEvent& event, const uint8_t* body, Fast& fast) {
  Bucket& bucket = lane.buckets[event.class_index];
  if (bucket.count == 0) Open(lane, event.class_index, fast);
  bucket.records[bucket.count++] = {static_cast<int64_t>(fast.clock), &event.layout->event_class,
                                    body, static_cast<uint64_t>(fast.at - lane.base) * 8};
}

// An event with a full timestamp, or of varying size. False: not for a lane.
__attribute__((noinline)) bool StepRare(const Lane& lane, Fast& fast) {
  const uint8_t* body = fast.at;
  uint64_t clock = fast.clock;
  uint32_t id = 0;
  if (!ReadEventHeader(lane.stream->fast_header, body, lane.end, clock, id)) return false;
  if (id >= fast.event_count || fast.events[id].layout == nullptr) return false;
  if (clock < fast.clock || clock > lane.latest) return false;
  const FastEvent& event = fast.events[id];
  const uint8_t* next =
      event.fixed_bytes != 0 ? body + event.fixed_bytes : event.layout->fast->Skip(body, lane.end);
  if (next == nullptr) return false;
  fast.clock = clock;
  Record(lane, event, body, fast);
  fast.at = next;
  return true;
}

inline bool Step(const Lane& lane, Fast& fast) {
  if (fast.at >= fast.safe_end) return false;
  uint32_t id;
  uint64_t clock;
  const uint8_t* body;
  if (fast.compact) {
    const uint32_t word = LoadNumber<uint32_t>(fast.at, false);
    id = word & 31;
    if (id == 31) return StepRare(lane, fast);
    clock = ExtendClock(fast.clock, word >> 5, 27);
    body = fast.at + 4;
  } else {
    id = LoadNumber<uint16_t>(fast.at, false);
    clock = ExtendClock(fast.clock, LoadNumber<uint32_t>(fast.at + 2, false), 32);
    body = fast.at + 6;
  }
  if (id >= fast.event_count) return StepRare(lane, fast);
  const FastEvent& event = fast.events[id];
  if (event.fixed_bytes == 0) return StepRare(lane, fast);
  if (clock > lane.latest) return false;
  fast.clock = clock;
  Record(lane, event, body, fast);
  fast.at = body + event.fixed_bytes;
  return true;
}

template <size_t N>
void Run(std::span<Lane> lanes) {
  std::array<Fast, N> fast;
  for (size_t i = 0; i < N; ++i) fast[i] = Prepare(lanes[i]);
  bool going = true;
  for (size_t steps = 0; going && steps < kLaneSteps; ++steps) {
#pragma GCC unroll 8
    for (size_t i = 0; i < N; ++i) going &= Step(lanes[i], fast[i]);
  }
  for (size_t i = 0; i < N; ++i) {
    lanes[i].at = fast[i].at;
    lanes[i].clock = fast[i].clock;
    lanes[i].used_count = fast[i].used_count;
  }
}

}  // namespace

void RunLanes(std::span<Lane> lanes) {
  static_assert(kLanes == 4);
  switch (lanes.size()) {
    case 1:
      return Run<1>(lanes);
    case 2:
      return Run<2>(lanes);
    case 3:
      return Run<3>(lanes);
    case 4:
      return Run<4>(lanes);
    default:
      return;
  }
}

}  // namespace syncline::ctf

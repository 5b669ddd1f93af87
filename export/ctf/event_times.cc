// SPDX-License-Identifier: Apache-2.0
#include "export/ctf/event_times.h"

#include <algorithm>
#include <utility>

#include "ctf/bits.h"
#include "ctf/event_header.h"
#include "ctf/walk.h"

namespace syncline::ctf_export {
namespace {

using ctf::FastHeader;

// What the walk needs of a lane at hand.
struct Chain {
  uint8_t* at;
  uint64_t clock;
  uint64_t events;
  const uint8_t* safe_end;  // an event of fixed size that begins before it ends in the packet
  uint64_t latest;          // on the line, too
  uint64_t gap_max;         // to the event before: a short header can tell its time then
  clocksync::ClockLine line;

  uint64_t ValueAt(uint64_t time) const {
    return static_cast<uint64_t>(line.At(static_cast<int64_t>(time)));
  }
};

Chain Prepare(const TimeLane& lane) {
  const size_t longest = ctf::kEventHeaderBytesMax + lane.stream->fast_bytes_max;
  const bool room = static_cast<size_t>(lane.end - lane.at) >= longest;
  const uint64_t span = BriefSpan(lane.stream->fast_header);
  __extension__ using Wide = unsigned __int128;
  const auto steepness = static_cast<uint64_t>(std::max<int64_t>(lane.line.slope, 1));
  const Wide gap = (Wide{span - 1} << clocksync::ClockLine::kSlopeBits) / steepness;
  Chain chain;
  chain.at = lane.at;
  chain.clock = lane.clock;
  chain.events = 0;
  chain.safe_end = room ? lane.end - longest + 1 : lane.at;
  chain.latest = std::min(lane.latest, static_cast<uint64_t>(std::max<int64_t>(lane.line.last, 0)));
  // One less, because both ends are rounded.
  chain.gap_max = static_cast<uint64_t>(std::min<Wide>(gap, span - 1)) - 1;
  chain.line = lane.line;
  return chain;
}

void Settle(TimeLane& lane, const Chain& chain) {
  lane.at = chain.at;
  lane.clock = chain.clock;
  lane.events += chain.events;
  if (chain.events > 0) lane.value = chain.ValueAt(chain.clock);
}

// One of any size, with either header. In registers.
struct Passed {
  const uint8_t* next = nullptr;  // null: it is not for a lane
  uint64_t clock = 0;
};

template <FastHeader kKind>
__attribute__((noinline)) Passed PassAny(const TimeLane& lane, const uint8_t* at, uint64_t clock) {
  Passed passed{nullptr, clock};
  const uint8_t* body = at;
  uint32_t id = 0;
  if (!ctf::ReadEventHeader(kKind, body, lane.end, passed.clock, id)) return passed;
  passed.next = ctf::SkipFastEvent(*lane.stream, id, body, lane.end);
  return passed;
}

template <FastHeader kKind>
class TimeWalk {
 public:
  explicit TimeWalk(const ctf::StreamLayout& stream)
      : events_(stream.brief_events.data()),
        known_(static_cast<uint32_t>(stream.brief_events.size())) {}

  // One event of the lane; false, and it stays where it is, when it has to stop.
  [[gnu::always_inline]] bool Step(const TimeLane& lane, Chain& chain) const {
    uint8_t* const at = chain.at;
    if (at >= chain.safe_end) return false;
    const uint32_t id = ctf::LoadNumber<uint16_t>(at, false) & kLong;
    if (id >= known_ || events_[id].bytes == 0) [[unlikely]] {
      const Passed passed = PassAny<kKind>(lane, at, chain.clock);
      if (passed.next == nullptr || passed.clock - chain.clock > chain.gap_max) return false;
      return Put(chain, id, at + (passed.next - at), passed.clock);
    }
    const uint64_t clock =
        kLarge ? ctf::ExtendClock(chain.clock, ctf::LoadNumber<uint32_t>(at + 2, false), 32)
               : ctf::ExtendClock(chain.clock, ctf::LoadNumber<uint32_t>(at, false) >> 5, 27);
    if (clock - chain.clock > chain.gap_max) [[unlikely]]
      return false;
    return Put(chain, id, at + events_[id].bytes, clock);
  }

  // The same of any event that is one for lanes.
  bool StepAny(const TimeLane& lane, Chain& chain) const {
    const Passed passed = PassAny<kKind>(lane, chain.at, chain.clock);
    if (passed.next == nullptr || passed.clock < chain.clock) return false;
    const uint32_t id = ctf::LoadNumber<uint16_t>(chain.at, false) & kLong;
    const bool fits = id == kLong || chain.ValueAt(passed.clock) - lane.value < BriefSpan(kKind);
    return fits && Put(chain, id, chain.at + (passed.next - chain.at), passed.clock);
  }

 private:
  static constexpr bool kLarge = kKind == FastHeader::kLarge;
  static constexpr uint32_t kLong = kLarge ? 65535 : 31;

  [[gnu::always_inline]] static bool Put(Chain& chain, uint32_t id, uint8_t* next, uint64_t clock) {
    if (clock > chain.latest) [[unlikely]]
      return false;
    const uint64_t value = chain.ValueAt(clock);
    const auto low = static_cast<uint32_t>(value);
    uint8_t* const at = chain.at;
    if (id == kLong) [[unlikely]] {
      ctf::StoreNumber(value, at + (kLarge ? 6 : 5));
    } else {
      kLarge ? ctf::StoreNumber(low, at + 2) : ctf::StoreNumber(id | low << 5, at);
    }
    chain.at = next;
    chain.clock = clock;
    ++chain.events;
    return true;
  }

  const ctf::BriefEvent* events_;
  uint32_t known_;
};

template <FastHeader kKind, size_t... kLane>
void Walk(std::span<TimeLane> lanes, std::index_sequence<kLane...>) {
  const TimeWalk<kKind> walk(*lanes[0].stream);
  Chain chains[] = {Prepare(lanes[kLane])...};
  // Not a loop over the lanes: what is known of each shall stay in registers.
  while ((walk.Step(lanes[kLane], chains[kLane]) && ...)) {
  }
  for (size_t i = 0; i < lanes.size(); ++i) Settle(lanes[i], chains[i]);
}

template <FastHeader kKind>
void WalkAll(std::span<TimeLane> lanes) {
  static_assert(kTimeLanes == 2);
  if (lanes.size() == 1) return Walk<kKind>(lanes, std::make_index_sequence<1>());
  Walk<kKind>(lanes, std::make_index_sequence<2>());
}

template <FastHeader kKind>
bool StepOne(TimeLane& lane) {
  Chain chain = Prepare(lane);
  const bool passed = TimeWalk<kKind>(*lane.stream).StepAny(lane, chain);
  Settle(lane, chain);
  return passed;
}

}  // namespace

void RewriteTimes(std::span<TimeLane> lanes) {
  if (lanes.empty()) return;
  const bool large = lanes[0].stream->fast_header == FastHeader::kLarge;
  large ? WalkAll<FastHeader::kLarge>(lanes) : WalkAll<FastHeader::kCompact>(lanes);
}

bool RewriteTime(TimeLane& lane) {
  const bool large = lane.stream->fast_header == FastHeader::kLarge;
  return large ? StepOne<FastHeader::kLarge>(lane) : StepOne<FastHeader::kCompact>(lane);
}

std::optional<uint64_t> NextClock(const TimeLane& lane) {
  const uint8_t* at = lane.at;
  uint64_t clock = lane.clock;
  uint32_t id = 0;
  if (!ctf::ReadEventHeader(lane.stream->fast_header, at, lane.end, clock, id)) return std::nullopt;
  return clock;
}

}  // namespace syncline::ctf_export

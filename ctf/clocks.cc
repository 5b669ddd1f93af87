// SPDX-License-Identifier: Apache-2.0
#include "ctf/clocks.h"

#include <algorithm>
#include <limits>

namespace syncline::ctf {
namespace {

bool HaveOneOrigin(const ClockClass& a, const ClockClass& b) {
  if (a.absolute || b.absolute) return a.absolute && b.absolute;
  if (!a.origin.empty() || !b.origin.empty()) return a.origin == b.origin;
  return a.uuid == b.uuid;
}

// By how much its zero lies behind the other's.
std::optional<int64_t> ShiftNs(const ClockClass& clock, const ClockClass& other) {
  const std::optional<int64_t> offset_ns = OffsetNs(clock);
  const std::optional<int64_t> other_ns = OffsetNs(other);
  int64_t shift_ns = 0;
  const bool known = offset_ns && other_ns && HaveOneOrigin(clock, other) &&
                     !__builtin_sub_overflow(*offset_ns, *other_ns, &shift_ns);
  return known ? std::optional<int64_t>(shift_ns) : std::nullopt;
}

}  // namespace

int64_t CyclesToNs(const ClockClass* clock, uint64_t cycles) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  if (CountsTraceNs(clock)) return static_cast<int64_t>(std::min<uint64_t>(cycles, kMax));
  __extension__ using Wide = unsigned __int128;
  const Wide ns = static_cast<Wide>(cycles) * 1'000'000'000 / clock->frequency;
  const int64_t unshifted = ns > static_cast<Wide>(kMax) ? kMax : static_cast<int64_t>(ns);
  int64_t shifted = 0;
  return __builtin_add_overflow(unshifted, clock->shift_ns, &shifted) ? kMax : shifted;
}

std::optional<int64_t> OffsetNs(const ClockClass& clock) {
  const bool negative = clock.offset_cycles < 0;
  const uint64_t cycles = negative ? 0 - static_cast<uint64_t>(clock.offset_cycles)
                                   : static_cast<uint64_t>(clock.offset_cycles);
  ClockClass unshifted;
  unshifted.frequency = clock.frequency;
  const int64_t part = CyclesToNs(&unshifted, cycles);
  // Garbage in the metadata must not overflow; sums of real clocks fit.
  int64_t seconds_ns = 0;
  int64_t sum = 0;
  if (__builtin_mul_overflow(clock.offset_seconds, int64_t{1'000'000'000}, &seconds_ns) ||
      __builtin_add_overflow(seconds_ns, negative ? -part : part, &sum)) {
    return std::nullopt;
  }
  return sum;
}

void PlaceClocks(TraceLayout* layout) {
  if (layout->metadata->clocks.empty()) return;  // all count ns
  layout->clock = &layout->metadata->clocks[0];
  const auto first = std::find_if(layout->streams.begin(), layout->streams.end(),
                                  [](const auto& stream) { return stream->clock != nullptr; });
  if (first != layout->streams.end()) layout->clock = (*first)->clock;
  for (const auto& stream : layout->streams) {
    if (stream->clock == nullptr || stream->clock == layout->clock) continue;
    const std::optional<int64_t> shift_ns = ShiftNs(*stream->clock, *layout->clock);
    if (!shift_ns) layout->unplaced_clocks.insert(stream->id);
    if (shift_ns.value_or(0) == 0) continue;
    ClockClass& shifted = layout->shifted_clocks.emplace_back(*stream->clock);
    shifted.shift_ns = *shift_ns;
    stream->clock = &shifted;
  }
}

}  // namespace syncline::ctf

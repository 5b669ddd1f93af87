#include "ctf/clocks.h"

#include <algorithm>
#include <limits>

namespace syncline::ctf {

int64_t CyclesToNs(const ClockClass* clock, uint64_t cycles) {
  constexpr uint64_t kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (CountsTraceNs(clock)) return static_cast<int64_t>(std::min(cycles, kMax));
  __extension__ using Wide = unsigned __int128;
  const Wide ns = static_cast<Wide>(cycles) * 1'000'000'000 / clock->frequency +
                  static_cast<uint64_t>(clock->shift_ns);
  return static_cast<int64_t>(ns > kMax ? kMax : static_cast<uint64_t>(ns));
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
  std::optional<int64_t> earliest_ns;
  for (const auto& stream : layout->streams) {
    if (stream->clock == nullptr) continue;
    if (layout->clock == nullptr) layout->clock = stream->clock;
    const std::optional<int64_t> offset_ns = OffsetNs(*stream->clock);
    if (!offset_ns || (earliest_ns && *earliest_ns <= *offset_ns)) continue;
    earliest_ns = offset_ns;
    layout->clock = stream->clock;
  }
  if (layout->clock == nullptr) layout->clock = &layout->metadata->clocks[0];
  for (const auto& stream : layout->streams) {
    if (stream->clock == nullptr || stream->clock == layout->clock) continue;
    const std::optional<int64_t> offset_ns = OffsetNs(*stream->clock);
    int64_t shift_ns = 0;
    if (!offset_ns || __builtin_sub_overflow(*offset_ns, *earliest_ns, &shift_ns)) {
      layout->unplaced_clocks.insert(stream->id);
    } else if (shift_ns != 0) {
      ClockClass& shifted = layout->shifted_clocks.emplace_back(*stream->clock);
      shifted.shift_ns = shift_ns;
      stream->clock = &shifted;
    }
  }
}

}  // namespace syncline::ctf

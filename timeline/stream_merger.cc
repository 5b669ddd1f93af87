#include "timeline/stream_merger.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "common/status.h"

namespace syncline::timeline {
namespace {

// A slab of this many events lies in the second-level cache; its length in ns is adapted to that.
constexpr size_t kSlabEvents = 1 << 15;
constexpr uint64_t kSlabLengthNsMax = uint64_t{1} << 31;
constexpr size_t kRadixMin = 256;  // fewer are sorted by comparing
constexpr int kDigitBitsMax = 12;

int BitWidth(uint64_t value) { return static_cast<int>(std::bit_width(value)); }

}  // namespace

void StreamMerger::Add(std::unique_ptr<EventCursor> cursor, Placement* placement) {
  Source source;
  source.cursor = std::move(cursor);
  source.placement = placement;
  empty_.push_back(static_cast<uint32_t>(sources_.size()));
  sources_.push_back(std::move(source));
  heads_ns_.push_back(kNone);
  lasts_ns_.push_back(kNone);
}

// A damaged stream may step back from one batch to the next; the order of one stream's events is
// never changed. kNone is no time.
absl::Status StreamMerger::Load(uint32_t number) {
  Source& source = sources_[number];
  SYNCLINE_ASSIGN_OR_RETURN(source.batch, source.cursor->NextBatch());
  source.next = 0;
  if (source.batch.empty()) return absl::OkStatus();
  source.times_ns.clear();
  for (const EventRecord& record : source.batch) source.times_ns.push_back(record.time_ns);
  source.placement->PlaceAll(source.times_ns);
  int64_t earliest_ns = source.started ? lasts_ns_[number] : std::numeric_limits<int64_t>::min();
  for (int64_t& ns : source.times_ns) {
    earliest_ns = std::max(earliest_ns, ns);
    ns = std::min(earliest_ns, kNone - 1);
  }
  heads_ns_[number] = source.times_ns.front();
  lasts_ns_[number] = source.times_ns.back();
  source.started = true;
  return absl::OkStatus();
}

absl::Status StreamMerger::Refill() {
  for (const uint32_t number : empty_) {
    SYNCLINE_RETURN_IF_ERROR(Load(number));
    index_bits_ = std::max(index_bits_, BitWidth(sources_[number].batch.size()));
  }
  empty_.clear();
  place_bits_ = index_bits_ + BitWidth(sources_.size());
  return absl::OkStatus();
}

StreamMerger::SlabEnd StreamMerger::PlanSlab() {
  slab_begin_ns_ = kNone;
  SlabEnd end;
  for (size_t i = 0; i < heads_ns_.size(); ++i) {
    if (heads_ns_[i] == kNone) continue;
    slab_begin_ns_ = std::min(slab_begin_ns_, heads_ns_[i]);
    if (lasts_ns_[i] < end.ns) end = {lasts_ns_[i], i};
  }
  const auto begin = static_cast<uint64_t>(slab_begin_ns_);
  const uint64_t length_ns = std::min(slab_length_ns_, LowBits(64 - place_bits_));
  if (static_cast<uint64_t>(end.ns) - begin > length_ns) {
    end = {static_cast<int64_t>(begin + length_ns), heads_ns_.size()};
  }
  return end;
}

void StreamMerger::Gather() {
  slab_size_ = 0;
  slab_next_ = 0;
  const SlabEnd end = PlanSlab();
  const auto begin = static_cast<uint64_t>(slab_begin_ns_);
  for (size_t i = 0; i < heads_ns_.size(); ++i) {
    // Instants before this one belong to the slab.
    const int64_t limit_ns = i <= end.source && end.ns != kNone ? end.ns + 1 : end.ns;
    if (heads_ns_[i] >= limit_ns) continue;
    Source& source = sources_[i];
    const std::span<const int64_t> times_ns = source.times_ns;
    const size_t room = slab_size_ + times_ns.size() - source.next;
    if (slab_.size() < room) {
      slab_.resize(2 * room);
      scratch_.resize(2 * room);
    }
    const uint64_t place = uint64_t{i} << index_bits_;
    size_t next = source.next;
    size_t count = slab_size_;
    for (; next < times_ns.size() && times_ns[next] < limit_ns; ++next, ++count) {
      slab_[count] = (static_cast<uint64_t>(times_ns[next]) - begin) << place_bits_ | place | next;
    }
    slab_size_ = count;
    source.next = next;
    const bool used_up = next == times_ns.size();
    heads_ns_[i] = used_up ? kNone : times_ns[next];
    if (used_up) empty_.push_back(static_cast<uint32_t>(i));
  }
  if (slab_size_ > kSlabEvents && slab_length_ns_ > 1) slab_length_ns_ /= 2;
  if (slab_size_ < kSlabEvents / 4 && slab_length_ns_ < kSlabLengthNsMax) slab_length_ns_ *= 2;
}

// Equal times stay in the order of the streams, as they were gathered.
void StreamMerger::Sort() {
  const std::span<uint64_t> keys(slab_.data(), slab_size_);
  if (std::is_sorted(keys.begin(), keys.end())) return;
  if (keys.size() < kRadixMin) {
    std::sort(keys.begin(), keys.end());
    return;
  }
  const uint64_t longest = *std::max_element(keys.begin(), keys.end());
  const int bits = BitWidth(longest >> place_bits_);
  const int passes = (bits + kDigitBitsMax - 1) / kDigitBitsMax;
  const int digit_bits = (bits + passes - 1) / std::max(passes, 1);
  for (int pass = 0; pass < passes; ++pass) {
    const int shift = place_bits_ + pass * digit_bits;
    const std::span<const uint64_t> from(slab_.data(), slab_size_);
    std::array<uint32_t, uint64_t{1} << kDigitBitsMax> places{};
    for (const uint64_t key : from) ++places[key >> shift & LowBits(digit_bits)];
    uint32_t sum = 0;
    for (uint32_t& place : places) sum += std::exchange(place, sum);
    for (const uint64_t key : from) scratch_[places[key >> shift & LowBits(digit_bits)]++] = key;
    slab_.swap(scratch_);
  }
}

absl::Status StreamMerger::NextSlab() {
  SYNCLINE_RETURN_IF_ERROR(Refill());
  Gather();
  Sort();
  return absl::OkStatus();
}

}  // namespace syncline::timeline

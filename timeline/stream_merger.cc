// SPDX-License-Identifier: Apache-2.0
#include "timeline/stream_merger.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <span>
#include <utility>

#include "common/status.h"

namespace syncline::timeline {
namespace {

// A slab of this many events lies in the second-level cache; its length in ns is adapted to that.
constexpr size_t kSlabEvents = 1 << 15;
constexpr size_t kSlabEventsMax = 8 * kSlabEvents;  // unless they are all at one time
constexpr uint64_t kSlabLengthNsMax = uint64_t{1} << 31;
constexpr size_t kRadixMin = 256;  // fewer are sorted by comparing
constexpr int kDigitBitsMax = 12;
constexpr size_t kSourcesAhead = 4;  // far enough for memory to answer in time
constexpr size_t kLateSources = 16;  // of so many sources, one may be refilled in a slab

int BitWidth(uint64_t value) { return static_cast<int>(std::bit_width(value)); }

}  // namespace

void StreamMerger::Add(std::unique_ptr<EventCursor> cursor, Placement* placement) {
  batches_.push_back({nullptr, cursor.get(), 0});
  heads_ns_.push_back(std::numeric_limits<int64_t>::min());
  bounds_ns_.push_back(std::numeric_limits<int64_t>::min());
  is_used_up_.push_back(true);
  Source& source = sources_.emplace_back();
  source.cursor = std::move(cursor);
  source.placement = placement;
}

// What the source has up to the slab's end, or at least when it will have something.
absl::StatusOr<EventCursor::Stretch> StreamMerger::Ask(const Source& source) {
  constexpr int64_t kSlackNs = 2;  // the way back from the timeline rounds
  if (until_placement_ != source.placement || until_slab_end_ns_ != slab_end_ns_) {
    until_placement_ = source.placement;
    until_slab_end_ns_ = slab_end_ns_;
    const bool unknown = slab_end_ns_ < std::numeric_limits<int64_t>::min() / 2;
    const int64_t ns = unknown ? kUnknownLo : source.placement->ClockNs({slab_end_ns_});
    until_ns_ = ns > kUnknownHi - kSlackNs ? kUnknownHi : ns + kSlackNs;
  }
  SYNCLINE_ASSIGN_OR_RETURN(const EventCursor::Stretch stretch,
                            source.cursor->NextBefore(until_ns_));
  if (!stretch.records.empty() || stretch.next_ns == kUnknownHi ||
      source.placement->At(stretch.next_ns).ns >= slab_end_ns_) {
    return stretch;
  }
  // A placement whose way back is not the same way.
  SYNCLINE_ASSIGN_OR_RETURN(const auto batch, source.cursor->NextBatch());
  if (batch.empty()) return EventCursor::Stretch{};
  return EventCursor::Stretch{batch, batch.back().time_ns};
}

// A damaged stream may step back from one batch to the next; the order of one stream's events is
// never changed. kNone is no time.
absl::Status StreamMerger::Load(uint32_t number) {
  Source& source = sources_[number];
  SYNCLINE_ASSIGN_OR_RETURN(const EventCursor::Stretch stretch, Ask(source));
  const std::span<const EventRecord> batch = stretch.records;
  source.next = 0;
  source.times_ns.resize(batch.size());
  batches_[number].records = batch.data();
  ++batches_[number].loads;
  batches_[number].packet = source.cursor->packet();
  for (size_t i = 0; i < batch.size(); ++i) source.times_ns[i] = batch[i].time_ns;
  source.placement->PlaceAll(source.times_ns);
  int64_t earliest_ns = source.earliest_ns;
  for (int64_t& ns : source.times_ns) {
    earliest_ns = std::max(earliest_ns, ns);
    ns = std::min(earliest_ns, kNone - 1);
  }
  if (!batch.empty()) source.earliest_ns = source.times_ns.back();
  bounds_ns_[number] = kNone;
  if (stretch.next_ns != kUnknownHi) {
    const int64_t next_ns = source.placement->At(stretch.next_ns).ns;
    bounds_ns_[number] = std::clamp(next_ns, source.earliest_ns, kNone - 1);
  }
  is_used_up_[number] = batch.empty();
  heads_ns_[number] = batch.empty() ? bounds_ns_[number] : source.times_ns.front();
  return absl::OkStatus();
}

// Loads what may have events before the slab's end.
absl::Status StreamMerger::LoadMissing() {
  for (uint32_t number = 0; number < heads_ns_.size(); ++number) {
    const uint32_t soon = number + 2;  // what memory answers meanwhile
    if (soon < heads_ns_.size() && is_used_up_[soon]) sources_[soon].cursor->Prefetch();
    if (!is_used_up_[number] || heads_ns_[number] >= slab_end_ns_) continue;
    SYNCLINE_RETURN_IF_ERROR(Load(number));
    index_bits_ = std::max(index_bits_, BitWidth(sources_[number].times_ns.size()));
  }
  place_bits_ = index_bits_ + BitWidth(sources_.size());
  return absl::OkStatus();
}

// All keys below `bound`; the last of them is in front of `next` then.
const uint64_t* StreamMerger::Keys::TakeBelow(uint64_t bound) {
  // Often it is a few: looks near first.
  size_t step = 1;
  while (next + step < size && room[next + step] < bound) step *= 2;
  const auto from = room.begin() + static_cast<ptrdiff_t>(next + step / 2);
  const auto to = room.begin() + static_cast<ptrdiff_t>(std::min(next + step, size));
  next = static_cast<size_t>(std::lower_bound(from, to, bound) - room.begin());
  return room.data() + next;
}

// What can be handed out until something else has to be done.
absl::Status StreamMerger::NextRun() {
  for (;;) {
    const uint64_t refill = refills_.empty() ? kNoKey : refills_.front();
    const uint64_t ready = slab_.first();
    const uint64_t late = late_.first();
    if (refill < std::min(ready, late)) {
      SYNCLINE_RETURN_IF_ERROR(Refill());
    } else if (ready == kNoKey && late == kNoKey) {
      SYNCLINE_RETURN_IF_ERROR(NextSlab());
      if (slab_.size == 0) return absl::OkStatus();
    } else {
      const bool from_late = late < ready;
      Keys& keys = from_late ? late_ : slab_;
      const uint64_t behind_refill = refill == kNoKey ? kNoKey : refill + 1;
      run_next_ = keys.room.data() + keys.next;
      run_end_ = keys.TakeBelow(std::min(from_late ? ready : late, behind_refill));
      return absl::OkStatus();
    }
  }
}

// The stream whose batch is out; what it has of this slab becomes late.
absl::Status StreamMerger::Refill() {
  std::pop_heap(refills_.begin(), refills_.end(), std::greater<>());
  const uint32_t number = SourceOf(refills_.back());
  refills_.pop_back();
  SYNCLINE_RETURN_IF_ERROR(Load(number));
  const int bits = BitWidth(sources_[number].times_ns.size());
  if (bits > index_bits_) {  // no key of this slab can name its events
    PutBack();
    index_bits_ = bits;
    return absl::OkStatus();
  }
  const auto waiting = static_cast<ptrdiff_t>(late_.size);
  Take(number, late_);
  const auto begin = late_.room.begin();
  std::inplace_merge(begin + static_cast<ptrdiff_t>(late_.next), begin + waiting,
                     begin + static_cast<ptrdiff_t>(late_.size));
  return absl::OkStatus();
}

// Ends the slab here: what waits in it is for the next one.
void StreamMerger::PutBack() {
  for (Keys* keys : {&slab_, &late_}) {
    for (size_t i = keys->size; i-- > keys->next;) {
      const uint32_t number = SourceOf(keys->room[i]);
      Source& source = sources_[number];
      source.next = IndexOf(keys->room[i]);
      heads_ns_[number] = source.times_ns[source.next];
      is_used_up_[number] = false;
    }
    keys->Clear();
  }
  refills_.clear();  // each of them is a key that waited, too
}

// False when there is nothing left.
absl::StatusOr<bool> StreamMerger::PlanSlab() {
  for (;;) {
    slab_begin_ns_ = *std::min_element(heads_ns_.begin(), heads_ns_.end());
    if (slab_begin_ns_ == kNone) return false;
    const uint64_t length_ns = std::min(slab_length_ns_, LowBits(64 - place_bits_));
    const uint64_t left_ns = static_cast<uint64_t>(kNone) - static_cast<uint64_t>(slab_begin_ns_);
    slab_end_ns_ =
        static_cast<int64_t>(static_cast<uint64_t>(slab_begin_ns_) + std::min(length_ns, left_ns));
    SYNCLINE_RETURN_IF_ERROR(LoadMissing());
    const int64_t begin_ns = *std::min_element(heads_ns_.begin(), heads_ns_.end());
    if (begin_ns == slab_begin_ns_ && length_ns <= LowBits(64 - place_bits_)) break;
  }
  // Where many batches end before that, it ends with them.
  ends_ns_.clear();
  size_t late = 0;
  for (size_t i = 0; i < bounds_ns_.size(); ++i) {
    late += heads_ns_[i] != kNone;
    if (bounds_ns_[i] < slab_end_ns_) ends_ns_.push_back(bounds_ns_[i]);
  }
  late /= kLateSources;
  if (ends_ns_.size() > late) {
    const auto last = ends_ns_.begin() + static_cast<ptrdiff_t>(late);
    std::nth_element(ends_ns_.begin(), last, ends_ns_.end());
    slab_end_ns_ = std::max(*last, slab_begin_ns_) + 1;
  }
  return true;
}

// Puts the source's events of the slab behind `keys`.
void StreamMerger::Take(uint32_t number, Keys& keys) {
  Source& source = sources_[number];
  const std::vector<int64_t>& times_ns = source.times_ns;
  const size_t room = keys.size + times_ns.size() - source.next;
  if (keys.room.size() < room) keys.room.resize(2 * room);
  const auto begin = static_cast<uint64_t>(slab_begin_ns_);
  const uint64_t place = uint64_t{number} << index_bits_;
  uint64_t* out = keys.room.data() + keys.size;
  size_t next = source.next;
  for (; next < times_ns.size() && times_ns[next] < slab_end_ns_; ++next) {
    *out++ = (static_cast<uint64_t>(times_ns[next]) - begin) << place_bits_ | place | next;
  }
  if (next == source.next) return;
  source.next = next;
  keys.size = static_cast<size_t>(out - keys.room.data());
  slab_last_ns_ = std::max(slab_last_ns_, times_ns[next - 1]);
  is_used_up_[number] = next == times_ns.size();
  heads_ns_[number] = is_used_up_[number] ? bounds_ns_[number] : times_ns[next];
  if (heads_ns_[number] >= slab_end_ns_) return;
  refills_.push_back(out[-1]);
  std::push_heap(refills_.begin(), refills_.end(), std::greater<>());
}

// Asks memory for what Take() will read of it.
void StreamMerger::Prefetch(const Source& source) const {
  const int64_t* const times_ns = source.times_ns.data() + source.next;
  for (size_t i = 0; i < kSlabEvents / sources_.size() && i < 32; i += 8) {
    __builtin_prefetch(times_ns + i);
  }
}

// False when these are too many events at a time.
bool StreamMerger::Gather() {
  slab_.Clear();
  late_.Clear();
  slab_last_ns_ = slab_begin_ns_;
  for (uint32_t i = 0; i < heads_ns_.size(); ++i) {
    if (i + kSourcesAhead < heads_ns_.size()) Prefetch(sources_[i + kSourcesAhead]);
    if (heads_ns_[i] >= slab_end_ns_ || is_used_up_[i]) continue;
    Take(i, slab_);
    if (slab_.size > kSlabEventsMax && slab_length_ns_ > 1) return false;
  }
  return true;
}

// Equal times stay in the order of the streams, as they were gathered.
void StreamMerger::Sort() {
  const std::span<uint64_t> keys(slab_.room.data(), slab_.size);
  if (std::is_sorted(keys.begin(), keys.end())) return;
  if (keys.size() < kRadixMin) {
    std::sort(keys.begin(), keys.end());
    return;
  }
  const int bits =
      BitWidth(static_cast<uint64_t>(slab_last_ns_) - static_cast<uint64_t>(slab_begin_ns_));
  if (scratch_.size() < slab_.room.size()) scratch_.resize(slab_.room.size());
  const int passes = (bits + kDigitBitsMax - 1) / kDigitBitsMax;
  const int digit_bits = (bits + passes - 1) / std::max(passes, 1);
  for (int pass = 0; pass < passes; ++pass) {
    const int shift = place_bits_ + pass * digit_bits;
    const std::span<const uint64_t> from(slab_.room.data(), slab_.size);
    std::array<uint32_t, size_t{1} << kDigitBitsMax> table;
    const std::span<uint32_t> places = std::span(table).first(size_t{1} << digit_bits);
    std::fill(places.begin(), places.end(), 0);
    for (const uint64_t key : from) ++places[key >> shift & LowBits(digit_bits)];
    uint32_t sum = 0;
    for (uint32_t& place : places) sum += std::exchange(place, sum);
    for (const uint64_t key : from) scratch_[places[key >> shift & LowBits(digit_bits)]++] = key;
    slab_.room.swap(scratch_);
  }
}

absl::Status StreamMerger::NextSlab() {
  slab_.Clear();
  if (sources_.empty()) return absl::OkStatus();
  for (;;) {
    SYNCLINE_ASSIGN_OR_RETURN(const bool any, PlanSlab());
    if (!any || Gather()) break;
    PutBack();
    slab_length_ns_ = std::max<uint64_t>(slab_length_ns_ / 4, 1);
  }
  if (slab_.size > kSlabEvents && slab_length_ns_ > 1) slab_length_ns_ /= 2;
  if (slab_.size < kSlabEvents / 4 && slab_length_ns_ < kSlabLengthNsMax) slab_length_ns_ *= 2;
  Sort();
  return absl::OkStatus();
}

}  // namespace syncline::timeline

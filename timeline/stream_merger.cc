#include "timeline/stream_merger.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/status.h"

namespace syncline::timeline {
namespace {

// A slab of this many events lies in the second-level cache; its length in ns is adapted to that.
constexpr size_t kSlabEvents = 1 << 14;
constexpr uint64_t kSlabLengthNsMax = uint64_t{1} << 31;  // fits half a key
constexpr size_t kRadixMin = 256;                         // fewer are sorted by comparing
constexpr int kDigitBits = 11;

}  // namespace

void StreamMerger::Add(std::unique_ptr<EventCursor> cursor, Placement* placement) {
  Source source;
  source.cursor = std::move(cursor);
  source.placement = placement;
  empty_.push_back(static_cast<uint32_t>(sources_.size()));
  sources_.push_back(std::move(source));
  heads_ns_.push_back(kNone);
}

// A damaged stream may step back from one batch to the next; the order of one stream's events is
// never changed. kNone is no time.
int64_t StreamMerger::TimeOf(const Source& source, size_t index) const {
  return std::min(source.placement->At(source.batch[index].time_ns).ns, kNone - 1);
}

absl::Status StreamMerger::Load(uint32_t number) {
  Source& source = sources_[number];
  SYNCLINE_ASSIGN_OR_RETURN(source.batch, source.cursor->NextBatch());
  source.next = 0;
  if (source.batch.empty()) return absl::OkStatus();
  const int64_t head_ns = TimeOf(source, 0);
  const int64_t last_ns = TimeOf(source, source.batch.size() - 1);
  heads_ns_[number] = source.started ? std::max(source.last_ns, head_ns) : head_ns;
  source.last_ns = std::max(heads_ns_[number], last_ns);
  source.started = true;
  return absl::OkStatus();
}

absl::Status StreamMerger::Refill() {
  for (const uint32_t number : empty_) SYNCLINE_RETURN_IF_ERROR(Load(number));
  empty_.clear();
  return absl::OkStatus();
}

StreamMerger::SlabEnd StreamMerger::PlanSlab() {
  slab_begin_ns_ = kNone;
  SlabEnd end;
  for (size_t i = 0; i < heads_ns_.size(); ++i) {
    if (heads_ns_[i] == kNone) continue;
    slab_begin_ns_ = std::min(slab_begin_ns_, heads_ns_[i]);
    if (sources_[i].last_ns < end.ns) end = {sources_[i].last_ns, i};
  }
  const auto begin = static_cast<uint64_t>(slab_begin_ns_);
  if (static_cast<uint64_t>(end.ns) - begin > slab_length_ns_) {
    end = {static_cast<int64_t>(begin + slab_length_ns_), heads_ns_.size()};
  }
  return end;
}

void StreamMerger::Gather() {
  gathered_.clear();
  slab_.clear();
  slab_next_ = 0;
  const SlabEnd end = PlanSlab();
  const auto begin = static_cast<uint64_t>(slab_begin_ns_);
  for (size_t i = 0; i < heads_ns_.size(); ++i) {
    const auto belongs = [&](int64_t ns) {
      return ns < end.ns || (ns == end.ns && i <= end.source);
    };
    int64_t head_ns = heads_ns_[i];
    if (head_ns == kNone || !belongs(head_ns)) continue;
    Source& source = sources_[i];
    const size_t size = source.batch.size();
    size_t next = source.next;
    do {
      slab_.push_back((static_cast<uint64_t>(head_ns) - begin) << 32 | gathered_.size());
      gathered_.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(next)});
      if (++next == size) {
        head_ns = kNone;
        empty_.push_back(static_cast<uint32_t>(i));
        break;
      }
      head_ns = std::clamp(TimeOf(source, next), head_ns, source.last_ns);
    } while (belongs(head_ns));
    source.next = next;
    heads_ns_[i] = head_ns;
  }
  if (slab_.size() > kSlabEvents && slab_length_ns_ > 1) slab_length_ns_ /= 2;
  if (slab_.size() < kSlabEvents / 4 && slab_length_ns_ < kSlabLengthNsMax) slab_length_ns_ *= 2;
}

// Equal times stay in the order of the streams, as they were gathered.
void StreamMerger::Sort() {
  if (std::is_sorted(slab_.begin(), slab_.end())) return;
  if (slab_.size() < kRadixMin) {
    std::sort(slab_.begin(), slab_.end());
    return;
  }
  constexpr uint64_t kDigits = uint64_t{1} << kDigitBits;
  uint64_t used = 0;
  for (const uint64_t key : slab_) used |= key;
  scratch_.resize(slab_.size());
  for (int shift = 32; shift < 64 && used >> shift != 0; shift += kDigitBits) {
    std::array<uint32_t, kDigits> places{};
    for (const uint64_t key : slab_) ++places[key >> shift & (kDigits - 1)];
    uint32_t sum = 0;
    for (uint32_t& place : places) sum += std::exchange(place, sum);
    for (const uint64_t key : slab_) scratch_[places[key >> shift & (kDigits - 1)]++] = key;
    slab_.swap(scratch_);
  }
}

absl::StatusOr<const StreamMerger::Head*> StreamMerger::Next() {
  if (slab_next_ == slab_.size()) {
    SYNCLINE_RETURN_IF_ERROR(Refill());
    Gather();
    if (slab_.empty()) return nullptr;
    Sort();
  }
  const uint64_t key = slab_[slab_next_++];
  const Place place = gathered_[key & 0xffffffff];
  const Source& source = sources_[place.source];
  head_ = {&source.batch[place.index],
           source.cursor.get(),
           place.source,
           {static_cast<int64_t>(static_cast<uint64_t>(slab_begin_ns_) + (key >> 32))}};
  return &head_;
}

}  // namespace syncline::timeline

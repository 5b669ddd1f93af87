// The events of many streams in one order: by time, then by the order in which the streams were
// added (callers add by node, reader, stream), then as the stream has them. This is the project's
// tie-break.
//
// Not one event at a time, but in slabs: what all streams have up to an instant is gathered, sorted
// by radix, and handed out. A slab ends where the first stream's batch does, so that records stay
// where they are; the cost of an event then hardly depends on the number of streams. Memory: a
// batch per stream and one slab, whose length follows the density of events.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_STREAM_MERGER_H_
#define SYNCLINE_TIMELINE_STREAM_MERGER_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/event_cursor.h"
#include "timeline/placement.h"

namespace syncline::timeline {

class StreamMerger {
 public:
  // The newest event. Valid until the next Next().
  struct Head {
    const EventRecord* record = nullptr;
    EventCursor* cursor = nullptr;
    uint32_t source = 0;  // number of the stream, in the order of Add
    TimelineTime time;    // by the stream's placement
  };

  // `placement` gives the time to order by and must outlive the merger; it may serve several
  // streams.
  void Add(std::unique_ptr<EventCursor> cursor, Placement* placement);

  // The next event; nullptr at the end.
  absl::StatusOr<const Head*> Next() {
    if (slab_next_ == slab_size_) {
      if (absl::Status status = NextSlab(); !status.ok()) return status;
      if (slab_size_ == 0) return nullptr;
    }
    const uint64_t key = slab_[slab_next_++];
    const auto number = static_cast<uint32_t>((key & LowBits(place_bits_)) >> index_bits_);
    const Source& source = sources_[number];
    head_ = {&source.batch[key & LowBits(index_bits_)],
             source.cursor.get(),
             number,
             {static_cast<int64_t>(static_cast<uint64_t>(slab_begin_ns_) + (key >> place_bits_))}};
    return &head_;
  }

  size_t size() const { return sources_.size(); }
  EventCursor* cursor(uint32_t source) const { return sources_[source].cursor.get(); }

 private:
  struct Source {
    std::unique_ptr<EventCursor> cursor;
    Placement* placement = nullptr;
    std::span<const EventRecord> batch;
    size_t next = 0;
    bool started = false;
    std::vector<int64_t> times_ns;  // timeline, beside batch; they only go up
  };
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  // A slab ends with this instant; of it, streams behind `source` wait, which may have more of it.
  struct SlabEnd {
    int64_t ns = kNone;
    size_t source = 0;
  };

  static uint64_t LowBits(int bits) { return (uint64_t{1} << bits) - 1; }
  absl::Status NextSlab();
  absl::Status Refill();
  absl::Status Load(uint32_t source);
  SlabEnd PlanSlab();
  void Gather();
  void Sort();

  std::vector<Source> sources_;
  // Beside sources_: timeline time of batch[next]; kNone at the end; and that of the batch's last
  // event. Apart, because every slab looks at all of them.
  std::vector<int64_t> heads_ns_;
  std::vector<int64_t> lasts_ns_;
  std::vector<uint32_t> empty_;  // sources whose batch is used up
  int64_t slab_begin_ns_ = 0;
  uint64_t slab_length_ns_ = 1 << 20;
  // The slab's events: ns since slab_begin_ns_ in the upper bits, then the source, then the place
  // in its batch in the lowest index_bits_. The first slab_size_ are in use.
  std::vector<uint64_t> slab_;
  std::vector<uint64_t> scratch_;
  int index_bits_ = 1;
  int place_bits_ = 1;  // of source and index together
  size_t slab_size_ = 0;
  size_t slab_next_ = 0;
  Head head_;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_STREAM_MERGER_H_

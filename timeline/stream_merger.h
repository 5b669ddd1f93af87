// SPDX-License-Identifier: Apache-2.0
// The events of many streams in one order: by time, then by the order in which the streams were
// added (callers add by node, reader, stream), then as the stream has them. This is the project's
// tie-break.
//
// Not one event at a time, but in slabs: what all streams have up to an instant is gathered, sorted
// by radix, and handed out; the cost of an event then hardly depends on the number of streams.
// Streams are asked for what they have up to the slab's end (EventCursor::NextBefore), so that
// mostly a stream is asked once per slab, and one that has nothing in it tells when it has.
//
// A record is valid until its stream is asked for more, so a stream whose batch ends inside a slab
// is refilled there, when the last event of that batch is out. What the new batch has of the slab
// comes late: it is kept apart, in order, and joins the rest on its way out. A slab ends where that
// would be many. Memory: a batch per stream and one slab, whose length follows the density of
// events.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_STREAM_MERGER_H_
#define SYNCLINE_TIMELINE_STREAM_MERGER_H_

#include <cstdint>
#include <limits>
#include <memory>
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
    uint64_t packet = 0;  // EventCursor::packet()
    uint32_t source = 0;  // number of the stream, in the order of Add
    TimelineTime time;    // by the stream's placement
  };

  // `placement` gives the time to order by and must outlive the merger; it may serve several
  // streams.
  void Add(std::unique_ptr<EventCursor> cursor, Placement* placement);

  // The next event; nullptr at the end.
  absl::StatusOr<const Head*> Next() {
    if (run_next_ == run_end_) {
      if (absl::Status status = NextRun(); !status.ok()) return status;
      if (run_next_ == run_end_) return nullptr;
    }
    const uint64_t key = *run_next_++;
    const uint32_t number = SourceOf(key);
    const Batch& batch = batches_[number];
    const uint64_t time_ns = static_cast<uint64_t>(slab_begin_ns_) + (key >> place_bits_);
    if (batches_.size() >= kManySources) PrefetchAhead();
    head_ = {batch.records + IndexOf(key),
             batch.cursor,
             batch.packet,
             number,
             {static_cast<int64_t>(time_ns)}};
    return &head_;
  }

  // An event that comes soon, for those who get ready for it: with many streams nothing of one is
  // in a near cache. nullptr where it is not worth it, or not known.
  struct Coming {
    const EventRecord* record = nullptr;
    uint32_t source = 0;
  };
  static constexpr ptrdiff_t kSoon = 8;
  Coming Soon(ptrdiff_t ahead = kSoon) const {
    if (batches_.size() < kManySources || run_end_ - run_next_ <= ahead) return {};
    const uint64_t key = run_next_[ahead];
    return {RecordOf(key), SourceOf(key)};
  }

  size_t size() const { return sources_.size(); }
  EventCursor* cursor(uint32_t source) const { return sources_[source].cursor.get(); }
  // How often the stream was asked for more.
  uint64_t loads(uint32_t source) const { return batches_[source].loads; }

 private:
  struct Source {
    std::unique_ptr<EventCursor> cursor;
    Placement* placement = nullptr;
    size_t next = 0;                                            // of the batch, not yet in the slab
    int64_t earliest_ns = std::numeric_limits<int64_t>::min();  // no time to come is earlier
    std::vector<int64_t> times_ns;  // timeline, of the batch's events; they only go up
  };
  // What handing out needs of a source; apart, because it goes from one to the next at random.
  struct Batch {
    const EventRecord* records = nullptr;
    EventCursor* cursor = nullptr;
    uint64_t loads = 0;
    uint64_t packet = 0;
  };
  // Events of the slab, each a number: ns since slab_begin_ns_ in the upper bits, then the source,
  // then the place in its batch in the lowest index_bits_. From `next` up to `size` they wait.
  struct Keys {
    std::vector<uint64_t> room;
    size_t next = 0;
    size_t size = 0;

    uint64_t first() const { return next == size ? kNoKey : room[next]; }
    const uint64_t* TakeBelow(uint64_t bound);
    void Clear() { next = size = 0; }
  };
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  // With so many it pays to ask memory for what is handed out later: first for the record, then for
  // what it points to, then Soon().
  static constexpr size_t kManySources = 32;
  static constexpr uint64_t kNoKey = std::numeric_limits<uint64_t>::max();  // behind all keys

  static uint64_t LowBits(int bits) { return (uint64_t{1} << bits) - 1; }
  uint32_t SourceOf(uint64_t key) const {
    return static_cast<uint32_t>((key & LowBits(place_bits_)) >> index_bits_);
  }
  size_t IndexOf(uint64_t key) const { return key & LowBits(index_bits_); }
  const EventRecord* RecordOf(uint64_t key) const {
    return batches_[SourceOf(key)].records + IndexOf(key);
  }
  void PrefetchAhead() const {
    const ptrdiff_t left = run_end_ - run_next_;
    if (left > 3 * kSoon) __builtin_prefetch(RecordOf(run_next_[3 * kSoon]));
    if (left > 2 * kSoon) __builtin_prefetch(RecordOf(run_next_[2 * kSoon])->bytes);
  }

  absl::Status NextRun();
  absl::Status Load(uint32_t number);
  absl::StatusOr<EventCursor::Stretch> Ask(const Source& source);
  absl::Status LoadMissing();
  absl::Status Refill();
  absl::Status NextSlab();
  absl::StatusOr<bool> PlanSlab();
  bool Gather();
  void Prefetch(const Source& source) const;
  void Take(uint32_t number, Keys& keys);
  void PutBack();
  void Sort();

  std::vector<Source> sources_;
  // Beside sources_.
  std::vector<Batch> batches_;
  // Timeline time of the first event that is not yet in the slab, kNone when there is none; where
  // the batch is used up, a time that it is not before.
  std::vector<int64_t> heads_ns_;
  std::vector<int64_t> bounds_ns_;  // the same of the first event behind the batch
  std::vector<uint8_t> is_used_up_;
  // The slab: instants in [slab_begin_ns_, slab_end_ns_).
  int64_t slab_begin_ns_ = 0;
  int64_t slab_end_ns_ = 0;
  int64_t slab_last_ns_ = 0;  // no event of slab_ is later
  uint64_t slab_length_ns_ = 1 << 20;
  int index_bits_ = 1;
  int place_bits_ = 1;  // of source and index together
  Keys slab_;
  Keys late_;
  std::vector<uint64_t> refills_;  // heap of the last keys of batches that the slab used up
  std::vector<uint64_t> scratch_;
  std::vector<int64_t> ends_ns_;  // for PlanSlab()
  // The slab's end by the clock of the placement that was asked last.
  const Placement* until_placement_ = nullptr;
  int64_t until_slab_end_ns_ = 0;
  int64_t until_ns_ = 0;
  // Being handed out, from slab_ or late_.
  const uint64_t* run_next_ = nullptr;
  const uint64_t* run_end_ = nullptr;
  Head head_;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_STREAM_MERGER_H_

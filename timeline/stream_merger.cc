#include "timeline/stream_merger.h"

#include <utility>

#include "common/status.h"

namespace syncline::timeline {

void StreamMerger::Add(std::unique_ptr<EventCursor> cursor, Placement* placement) {
  Source source;
  source.cursor = std::move(cursor);
  source.placement = placement;
  sources_.push_back(std::move(source));
}

absl::StatusOr<bool> StreamMerger::Load(Source* source) {
  if (source->next == source->batch.size()) {
    SYNCLINE_ASSIGN_OR_RETURN(source->batch, source->cursor->NextBatch());
    source->next = 0;
    if (source->batch.empty()) return false;
  }
  const TimelineTime time = source->placement->At(source->batch[source->next].time_ns);
  // A damaged stream may step back; the order of one stream's events is never changed.
  source->time = source->started ? std::max(source->time, time) : time;
  source->started = true;
  return true;
}

bool StreamMerger::Before(uint32_t a, uint32_t b) const {
  const TimelineTime time_a = sources_[a].time;
  const TimelineTime time_b = sources_[b].time;
  return time_a != time_b ? time_a < time_b : a < b;
}

void StreamMerger::SiftDown(size_t position) {
  const uint32_t moved = heap_[position];
  for (;;) {
    size_t child = 2 * position + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && Before(heap_[child + 1], heap_[child])) ++child;
    if (!Before(heap_[child], moved)) break;
    heap_[position] = heap_[child];
    position = child;
  }
  heap_[position] = moved;
}

absl::StatusOr<const StreamMerger::Head*> StreamMerger::Next() {
  if (!started_) {
    started_ = true;
    for (uint32_t i = 0; i < sources_.size(); ++i) {
      SYNCLINE_ASSIGN_OR_RETURN(const bool has_event, Load(&sources_[i]));
      if (has_event) heap_.push_back(i);
    }
    for (size_t i = heap_.size() / 2; i-- > 0;) SiftDown(i);
  } else if (!heap_.empty()) {
    Source& last = sources_[heap_[0]];
    ++last.next;
    SYNCLINE_ASSIGN_OR_RETURN(const bool has_event, Load(&last));
    if (!has_event) {
      heap_[0] = heap_.back();
      heap_.pop_back();
    }
    if (!heap_.empty()) SiftDown(0);
  }
  if (heap_.empty()) return nullptr;
  const Source& first = sources_[heap_[0]];
  head_ = {&first.batch[first.next], first.cursor.get(), heap_[0], first.time};
  return &head_;
}

}  // namespace syncline::timeline

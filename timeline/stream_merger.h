// The events of many streams in one order: by time, then by the order in which the streams were
// added (callers add by node, reader, stream), then as the stream has them. This is the project's
// tie-break.
//
// A binary heap of stream heads; a stream that stays first costs one comparison per event (events
// come in runs). Holds one batch per stream, whatever the size of the traces.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_STREAM_MERGER_H_
#define SYNCLINE_TIMELINE_STREAM_MERGER_H_

#include <cstdint>
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
  absl::StatusOr<const Head*> Next();

  size_t size() const { return sources_.size(); }
  EventCursor* cursor(uint32_t source) const { return sources_[source].cursor.get(); }

 private:
  struct Source {
    std::unique_ptr<EventCursor> cursor;
    Placement* placement = nullptr;
    std::span<const EventRecord> batch;
    size_t next = 0;
    TimelineTime time;  // of batch[next]
    bool started = false;
  };

  // Makes batch[next] and time valid; false at the end of the stream.
  absl::StatusOr<bool> Load(Source* source);
  bool Before(uint32_t a, uint32_t b) const;
  void SiftDown(size_t position);

  std::vector<Source> sources_;
  std::vector<uint32_t> heap_;  // of sources that have an event
  Head head_;
  bool started_ = false;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_STREAM_MERGER_H_

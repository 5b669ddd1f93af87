// SPDX-License-Identifier: Apache-2.0
// Every event of the inputs that is wanted (BuildOptions::events, EventNames), decoded, in the
// order that decides between equal times: by time, node, stream, as the stream has them; of a node,
// those of its traces before those of TensorFlow's profiles.
//
// Several side by side may share the streams out: neighbours to each, and what they give is in
// order by time and then by share.
//
// Thread-safety: one thread per object; several for one OpenedInputs, when each is opened by Share.
#ifndef SYNCLINE_COORDINATOR_MERGE_ORDERED_EVENTS_H_
#define SYNCLINE_COORDINATOR_MERGE_ORDERED_EVENTS_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clocksync/reach.h"
#include "common/event_filter.h"
#include "coordinator/merge/event_names.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/profile_cursor.h"
#include "export/text/event_text.h"
#include "timeline/cut_sink.h"
#include "timeline/stream_merger.h"

namespace syncline::merge {

// Some streams that follow one another, in the order of nodes, of their traces and profiles.
struct StreamShare {
  size_t begin = 0;
  size_t end = ~size_t{0};

  bool Contains(size_t stream) const { return begin <= stream && stream < end; }
};

// Shares as equal as can be, each with a stream at least, and no more than `shares_max`. One, where
// the inputs cannot be read by several threads.
std::vector<StreamShare> ShareStreams(const OpenedInputs& inputs, size_t shares_max);

class OrderedEvents {
 public:
  // `inputs` and `names`, if there are any, outlive this. Packets outside of `shown` are not read.
  OrderedEvents(const OpenedInputs& inputs, timeline::Interval shown,
                const EventNames* names = nullptr)
      : inputs_(inputs), shown_(shown), names_(names), reach_(inputs.models().proven) {}
  // All nodes, or one: its place in the inputs.
  absl::Status Open(std::optional<uint32_t> only = std::nullopt);
  absl::Status OpenShare(StreamShare share);

  // Without its values and EventView::ids. Valid until the next call; nullptr at the end.
  absl::StatusOr<const text::EventView*> Next();
  // Lets `lines` get ready for the events that come soon.
  void Prepare(const text::EventText& lines) const {
    constexpr ptrdiff_t kSoon = timeline::StreamMerger::kSoon;
    if (const auto coming = merger_.Soon(kSoon); coming.record != nullptr) {
      lines.Prefetch(*sources_[coming.source].stream, *coming.record->event_class);
    }
    if (const auto coming = merger_.Soon(kSoon / 2); coming.record != nullptr) {
      lines.PrefetchContext(*sources_[coming.source].stream, *coming.record->event_class);
    }
  }
  // The event at hand with both.
  const text::EventView& Decoded();
  // Of the event at hand: how far from its place on the timeline the truth may be, at most;
  // nullopt: unknown.
  std::optional<int64_t> BoundNs() {
    const auto reach = reach_.At({sources_[source_].placement->clock(), event_.record->time_ns});
    if (!reach.has_value()) return std::nullopt;
    return std::max(reach->lo_ns, reach->hi_ns);
  }

  // After the end.
  bool IsComplete() const;
  // Left out, because where they lie on the timeline cannot be decided.
  uint64_t undecided() const { return undecided_; }

 private:
  struct Source {
    uint32_t node = 0;
    const timeline::Placement* placement = nullptr;
    const StreamInfo* stream = nullptr;
  };

  std::shared_ptr<const ClassChoice> WantedOf(TraceReader* reader) const;
  absl::Status OpenTraces(uint32_t index, timeline::Placement* placement);
  absl::Status OpenProfiles(uint32_t index, timeline::WallPlacement* wall);
  bool TakesNextStream() { return share_.Contains(streams_met_++); }

  const OpenedInputs& inputs_;
  timeline::Interval shown_;
  const EventNames* names_;
  clocksync::ReachFinder reach_;
  StreamShare share_;
  size_t streams_met_ = 0;
  // Of a share: those of the inputs remember where they were.
  std::deque<std::unique_ptr<timeline::Placement>> placements_;
  std::deque<timeline::WallPlacement> walls_;
  std::deque<ProfilePlacement> profile_placements_;
  timeline::StreamMerger merger_;
  std::vector<Source> sources_;
  std::vector<const text::IdTexts*> ids_;  // of the first sources; the rest have none
  uint32_t source_ = 0;
  EventCursor* cursor_ = nullptr;  // of the event at hand
  text::EventView event_;
  std::vector<FieldValue> values_;
  uint64_t undecided_ = 0;
  bool damaged_ = false;
};

// One line for people; "": none.
std::string UndecidedComplaint(uint64_t events);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_ORDERED_EVENTS_H_

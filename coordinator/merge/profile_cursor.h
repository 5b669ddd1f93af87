// SPDX-License-Identifier: Apache-2.0
// TensorFlow's profiles among the events of a trace: their times are the host's wall clock, which
// is not always a place on the timeline (timeline/wall_placement.h).
//
// Thread-safety: one thread.
#ifndef SYNCLINE_COORDINATOR_MERGE_PROFILE_CURSOR_H_
#define SYNCLINE_COORDINATOR_MERGE_PROFILE_CURSOR_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/event_cursor.h"
#include "timeline/builder.h"
#include "timeline/placement.h"
#include "timeline/wall_placement.h"

namespace syncline::merge {

// A wall clock as a placement, for those that only ask At(), and only of times that have a place.
class ProfilePlacement final : public timeline::Placement {
 public:
  explicit ProfilePlacement(timeline::WallPlacement* wall) : wall_(wall) {}
  TimelineTime At(int64_t realtime_ns) override {
    return wall_->At(realtime_ns).value_or(TimelineTime{});
  }
  std::optional<int64_t> BoundNs(int64_t realtime_ns) const override {
    return wall_->BoundNs(realtime_ns);
  }
  int64_t ClockNs(TimelineTime) const override { return 0; }
  ClockId clock() const override { return wall_->clock(); }

 private:
  timeline::WallPlacement* wall_;
};

// Passes on the events that have a place, in the range.
class ProfileCursor final : public EventCursor {
 public:
  // `undecided` counts those that have none. All but `cursor` outlive this.
  ProfileCursor(std::unique_ptr<EventCursor> cursor, timeline::WallPlacement* wall,
                timeline::Interval shown, uint64_t* undecided)
      : cursor_(std::move(cursor)), wall_(wall), shown_(shown), undecided_(undecided) {}

  const StreamInfo& stream() const override { return cursor_->stream(); }
  absl::StatusOr<std::span<const EventRecord>> NextBatch() override;
  bool Decode(const EventRecord& record, std::vector<FieldValue>* values) override {
    return cursor_->Decode(record, values);
  }
  std::span<const Loss> losses() const override { return cursor_->losses(); }

 private:
  std::unique_ptr<EventCursor> cursor_;
  timeline::WallPlacement* wall_;
  timeline::Interval shown_;
  uint64_t* undecided_;
  std::vector<EventRecord> batch_;
};

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_PROFILE_CURSOR_H_

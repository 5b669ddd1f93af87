// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/profile_cursor.h"

#include <optional>

#include "common/status.h"

namespace syncline::merge {

absl::StatusOr<std::span<const EventRecord>> ProfileCursor::NextBatch() {
  batch_.clear();
  while (batch_.empty()) {
    SYNCLINE_ASSIGN_OR_RETURN(const std::span<const EventRecord> all, cursor_->NextBatch());
    if (all.empty()) break;
    for (const EventRecord& record : all) {
      const std::optional<TimelineTime> at = wall_->At(record.time_ns);
      if (!at.has_value()) {
        ++*undecided_;
      } else if (shown_.Contains(*at)) {
        batch_.push_back(record);
      }
    }
  }
  return std::span<const EventRecord>(batch_);
}

}  // namespace syncline::merge

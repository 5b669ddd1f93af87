// SPDX-License-Identifier: Apache-2.0
#include "common/event_cursor.h"

#include <algorithm>

#include "common/status.h"

namespace syncline {

absl::StatusOr<EventCursor::Stretch> EventCursor::NextBefore(int64_t) {
  SYNCLINE_ASSIGN_OR_RETURN(const std::span<const EventRecord> batch, NextBatch());
  if (batch.empty()) return Stretch{};
  return Stretch{batch, batch.back().time_ns};
}

absl::Status VisitByClass(EventCursor& cursor, std::span<const EventRecord> batch,
                          TraceReader::Visit visit) {
  std::vector<EventRecord> sorted(batch.begin(), batch.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const EventRecord& a, const EventRecord& b) {
    return a.event_class->index < b.event_class->index;
  });
  for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    while (end < sorted.size() && sorted[end].event_class == sorted[begin].event_class) ++end;
    SYNCLINE_RETURN_IF_ERROR(visit(cursor, std::span(sorted).subspan(begin, end - begin)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Loss>> TraceReader::ScanShared(std::span<const Visit> visits) {
  std::vector<Loss> losses;
  for (const StreamInfo& stream : streams()) {
    SYNCLINE_ASSIGN_OR_RETURN(const std::unique_ptr<EventCursor> cursor, Open(stream.index));
    for (;;) {
      SYNCLINE_ASSIGN_OR_RETURN(const std::span<const EventRecord> batch, cursor->NextBatch());
      if (batch.empty()) break;
      SYNCLINE_RETURN_IF_ERROR(VisitByClass(*cursor, batch, visits.front()));
    }
    const std::span<const Loss> found = cursor->losses();
    losses.insert(losses.end(), found.begin(), found.end());
  }
  return losses;
}

}  // namespace syncline

// SPDX-License-Identifier: Apache-2.0
// Which fields of our own events are ids: numbers that stand for a thread, a process or a name
// (docs/event-schema.md). NodeTables knows what they stand for.
//
// Thread-safe: no state.
#ifndef SYNCLINE_TIMELINE_ID_FIELDS_H_
#define SYNCLINE_TIMELINE_ID_FIELDS_H_

#include <cstdint>

#include "common/event_cursor.h"
#include "timeline/schema.h"

namespace syncline::timeline {

enum class IdKind : uint8_t { kNone, kThread, kProcess, kName };

// Announcements say what ids stand for: their numbers are meant as numbers.
inline bool IsAnnouncement(EventKind kind) {
  return kind == EventKind::kOn || kind == EventKind::kThread || kind == EventKind::kName;
}

// kNone for events of other providers, and for announcements.
IdKind IdKindOf(EventKind kind, const FieldClass& field);
// Whether the events of the class have any.
bool HasIds(const EventClass& event_class);

// The fields that are names in some event; texts in others.
inline constexpr Field kNameFields[] = {
    Field::kDomain,      Field::kName,  Field::kKey,    Field::kText,  Field::kGroup,
    Field::kDescription, Field::kRanks, Field::kDevice, Field::kQueue, Field::kSource};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_ID_FIELDS_H_

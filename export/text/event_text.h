// One decoded event as a line of text or of JSON: every field, in the order of the trace.
//
// Text: [+0.001234567] node stream provider:name: { context } { field = value, ... }
// JSON: one object per line; 64-bit integers are JSON numbers, so read them as integers. Fields of
// equal name in one scope (arrays apart) keep the last.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_TEXT_EVENT_TEXT_H_
#define SYNCLINE_EXPORT_TEXT_EVENT_TEXT_H_

#include <span>
#include <string>
#include <string_view>

#include "common/event_cursor.h"
#include "common/time.h"

namespace syncline::text {

struct EventView {
  TimelineTime time;
  std::string_view node;
  const StreamInfo* stream = nullptr;
  const EventRecord* record = nullptr;
  std::span<const FieldValue> values;  // in preorder, as EventCursor::Decode gives them
};

// Each ends with a newline.
void AppendText(const EventView& event, std::string* out);
void AppendJson(const EventView& event, std::string* out);

// "+0.001234567": seconds with all digits of the nanoseconds.
std::string Seconds(int64_t ns);
// `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(std::string_view text, std::string* out);
// The shortest digits that read back as the same number; what is no number becomes a string.
void AppendJsonReal(double value, std::string* out);

}  // namespace syncline::text

#endif  // SYNCLINE_EXPORT_TEXT_EVENT_TEXT_H_

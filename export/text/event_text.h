// Decoded events as lines of text or of JSON: every field, in the order of the trace.
//
// Text: [+0.001234567] node stream provider:name: { context } { field = value, ... }
// JSON: one object per line; 64-bit integers are JSON numbers, so read them as integers. Fields of
// equal name in one scope (arrays apart) keep the last.
//
// All that the events of one class and stream have in common (names, braces, ...) is put together
// once, as the pieces between their values; the class and stream of an event find them. An event
// that has other fields than the last one of its kind makes them anew.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_TEXT_EVENT_TEXT_H_
#define SYNCLINE_EXPORT_TEXT_EVENT_TEXT_H_

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/event_cursor.h"
#include "common/time.h"
#include "export/text/text_buffer.h"

namespace syncline::text {

struct EventView {
  TimelineTime time;
  std::string_view node;               // the same for all events of a stream
  const StreamInfo* stream = nullptr;  // it and the classes stay where they are
  const EventRecord* record = nullptr;
  std::span<const FieldValue> values;  // in preorder, as EventCursor::Decode gives them
};

class EventText {
 public:
  enum class Style : uint8_t { kText, kJson };
  explicit EventText(Style style) : style_(style) {}

  // Appends a line to buffer().
  void Append(const EventView& event);
  // Appends the values, of whatever scopes, as one object: {"name":value,...}. For Style::kJson.
  void AppendObject(std::span<const FieldValue> values);
  TextBuffer* buffer() { return &out_; }

 private:
  // The values of an event that are not inside another one, and what stands before each.
  struct Step {
    const FieldClass* field = nullptr;
    Piece before;
  };
  struct Line {
    Piece head;    // behind the first number
    Piece middle;  // JSON: behind the second one
    std::vector<Step> steps;
    Piece end;
    bool made = false;
  };

  Line MakeLine(const EventView& event) const;
  // False when the event has other fields than the line.
  bool AppendAs(const Line& line, const EventView& event);
  // The same of the values alone.
  bool AppendSteps(const std::vector<Step>& steps, std::span<const FieldValue> values);
  void AppendSeconds(int64_t ns);
  // Appends values[0] with its descendants; returns how many values that took. `depth` bounds
  // recursion: readers bound nesting too, but not for our sake.
  size_t AppendValue(std::span<const FieldValue> values, int depth);
  size_t AppendChildren(std::span<const FieldValue> values, bool named, int depth);
  void AppendUnsigned(const FieldValue& value);
  void AppendReal(double value);
  void AppendString(std::string_view text);
  void AppendBlob(std::string_view bytes);
  void AppendEnum(const FieldValue& value);

  Style style_;
  TextBuffer out_;
  absl::flat_hash_map<std::pair<const StreamInfo*, const EventClass*>, Line> lines_;
  absl::flat_hash_map<const FieldClass*, std::vector<Step>> objects_;  // by their first field
  std::string scratch_;
};

}  // namespace syncline::text

#endif  // SYNCLINE_EXPORT_TEXT_EVENT_TEXT_H_

// SPDX-License-Identifier: Apache-2.0
// Decoded events as lines of text or of JSON: every field, in the order of the trace.
//
// Text: [+0.001234567] node stream provider:name: { context } { field = value, ... }
// JSON: one object per line; 64-bit integers are JSON numbers, so read them as integers. Fields of
// equal name in one scope (arrays apart) keep the last.
//
// With Ids::kResolved ids of our own events are written as what they stand for (id_texts.h), and a
// number that nothing is known of under a name that says so: name_id = 17. Id 0 is no name: none,
// in JSON null. Lines of JSON then say which format they have.
//
// All that the events of one class have in common (names, braces, ...) is put together once, as the
// pieces between their values; an event that has other fields than the last one of its class makes
// them anew. What stands in front of the payload is kept too, by stream and class: most events
// have the context of the one before, which the bytes tell. Of very many streams not all is kept.
// Where the places of a class's fields are known (FieldPlace), nothing is decoded: numbers go from
// the event's bytes into the line.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_TEXT_EVENT_TEXT_H_
#define SYNCLINE_EXPORT_TEXT_EVENT_TEXT_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/event_cursor.h"
#include "common/time.h"
#include "export/text/id_texts.h"
#include "export/text/text_buffer.h"
#include "timeline/schema.h"

namespace syncline::text {

struct EventView {
  TimelineTime time;
  std::string_view node;               // the same for all events of a stream
  const StreamInfo* stream = nullptr;  // it and the classes stay where they are
  const EventRecord* record = nullptr;
  uint64_t packet = 0;                 // EventCursor::packet()
  std::span<const FieldValue> values;  // in preorder, as EventCursor::Decode gives them
  const IdTexts* ids = nullptr;  // the same for all events of a stream; nullptr: none is known
};

// How many values the first one is, with all that lies inside it.
size_t Extent(std::span<const FieldValue> values);

class EventText {
 public:
  enum class Style : uint8_t { kText, kJson };
  enum class Ids : uint8_t { kAsRecorded, kResolved };
  // Of JSON lines with resolved ids. Lines without it have ids as they were recorded.
  static constexpr int kFormatVersion = 2;
  // With more streams times classes than this, what is kept is made again now and then: 16 MiB or
  // so. Several side by side share it.
  static constexpr size_t kLinesMax = size_t{1} << 15;
  explicit EventText(Style style, Ids ids = Ids::kAsRecorded, size_t lines_max = kLinesMax)
      : style_(style),
        resolves_(ids == Ids::kResolved),
        lines_max_(std::max<size_t>(lines_max, 1)),
        recent_(kRecent) {}

  // Appends a line to buffer().
  void Append(const EventView& event);
  // The same of an event that has not been decoded; false, and nothing is appended, where that
  // takes the values.
  bool AppendUndecoded(const EventView& event);
  // Ask memory for what the line of a coming event will need; the second some events later, when
  // the first is answered.
  void Prefetch(const StreamInfo& stream, const EventClass& event_class) const {
    const auto* const line =
        reinterpret_cast<const char*>(recent_[RecentSlot(&stream, &event_class)]);
    for (size_t at = 0; line != nullptr && at < sizeof(Line); at += 64) {
      __builtin_prefetch(line + at);
    }
  }
  void PrefetchContext(const StreamInfo& stream, const EventClass& event_class) const {
    const Line* const line = recent_[RecentSlot(&stream, &event_class)];
    if (line == nullptr) return;
    __builtin_prefetch(line->context.text().data());
    __builtin_prefetch(line->context.text().data() + 64);
  }
  // Appends the values, of whatever scopes, as one object: {"name":value,...}. For Style::kJson.
  void AppendObject(std::span<const FieldValue> values);
  TextBuffer* buffer() { return &out_; }
  // Of how many streams and classes something is kept.
  size_t lines_kept() const { return lines_.size(); }

 private:
  // The values of an event that are not inside another one, and what stands before each.
  struct Step {
    // The last three are ids.
    enum class Way : uint8_t { kNumber, kSigned, kReal, kText, kOther, kThread, kProcess, kName };
    const FieldClass* field = nullptr;
    Way way = Way::kOther;
    uint32_t labels = 0;  // of an id: its place in Shape::labels
    Piece before;         // of an id without the field's name
    bool is_id() const { return way >= Way::kThread; }
  };
  // An id's field where it is known what the id stands for, and where not.
  struct Labels {
    Piece known;
    Piece unknown;
  };
  // Of the events of one class.
  struct Shape {
    std::vector<Step> steps;
    size_t context_steps = 0;  // the first ones; then those of the payload
    size_t context_bytes = 0;  // of an event, all in front of the payload's
    size_t room = 0;           // of the payload's pieces and numbers
    bool keeps_context = false;
    bool is_placed = false;  // keeps_context, and the payload needs no decoding
    Piece end;
    bool may_have_ids = false;  // an event of the class
    std::vector<Labels> labels;
  };
  // Of the events of one class in one stream. What every event needs lies together: with many
  // streams, no line is in a near cache.
  struct alignas(64) Line {
    const StreamInfo* stream = nullptr;
    const EventClass* event_class = nullptr;
    const Shape* shape = nullptr;
    uint64_t packet = 0;        // whose context is kept; 0: none is
    std::string context_bytes;  // of the last event
    // The opening with that context, up to the payload's first value.
    Piece context;
    uint32_t context_values = 0;
    uint32_t ids = 0;  // its place in line_ids_; 0: no id is known
    Piece node;        // JSON: between the two numbers
    Piece opening;     // behind them
  };
  // What is known of the ids of a line's events, and their last thread, which stays for many of
  // them. Apart from the line, which is no larger where events have none.
  struct LineIds {
    const IdTexts* texts = nullptr;
    uint64_t thread_key = ~uint64_t{0};
    const ThreadText* thread = nullptr;  // nullptr: it is not known
  };
  static constexpr int kRecentBits = 12;
  static constexpr size_t kRecent = size_t{1} << kRecentBits;

  static size_t RecentSlot(const EventView& event) {
    return RecentSlot(event.stream, event.record->event_class);
  }
  static size_t RecentSlot(const StreamInfo* stream, const EventClass* event_class) {
    const auto key = reinterpret_cast<uintptr_t>(stream) * 0x9e3779b97f4a7c15 +
                     reinterpret_cast<uintptr_t>(event_class);
    return key * 0x9e3779b97f4a7c15 >> (64 - kRecentBits);
  }
  static bool HasContext(const Line& line, const EventView& event);

  Line& FindLine(const EventView& event);
  Line MakeLine(const EventView& event) const;
  Shape MakeShape(const EventView& event) const;
  Step::Way WayOf(const FieldClass& field) const;
  Step MakeStep(timeline::EventKind kind, const FieldClass& field, std::string before,
                Shape* shape) const;
  // False when the event has other fields than the line's shape.
  bool AppendAs(Line* line, const EventView& event);
  // `names` are those of the event's thread, once that was met.
  void AppendId(const Step& step, uint64_t id, const Line& line, const NameTexts** names);
  void KeepContext(const EventView& event, size_t begin, size_t values, Line* line) const;
  char* WriteTimes(const EventView& event, const Line& line, char* out);
  char* WriteSeconds(int64_t ns, char* out);
  // Values alone, as `steps` has them; false where there are others.
  bool AppendSteps(const std::vector<Step>& steps, std::span<const FieldValue> values);
  // Appends values[0] with its descendants; returns how many values that took. `depth` bounds
  // recursion: readers bound nesting too, but not for our sake.
  size_t AppendValue(std::span<const FieldValue> values, int depth);
  size_t AppendChildren(std::span<const FieldValue> values, bool named, int depth);
  void AppendLeftOut(const FieldValue& array);
  void AppendUnsigned(const FieldValue& value);
  void AppendReal(double value);
  void AppendString(std::string_view text);
  void AppendBlob(std::string_view bytes);
  void PutName(std::string_view name);
  void AppendEnum(const FieldValue& value);

  Style style_;
  bool resolves_;
  size_t lines_max_;
  TextBuffer out_;
  absl::flat_hash_map<const EventClass*, std::unique_ptr<Shape>> shapes_;
  absl::flat_hash_map<std::pair<const StreamInfo*, const EventClass*>, std::unique_ptr<Line>>
      lines_;
  absl::flat_hash_map<const FieldClass*, std::vector<Step>> objects_;  // by their first field
  std::vector<LineIds> line_ids_{1};                                   // the first knows nothing
  std::vector<Line*> recent_;  // of `lines_`, by RecentSlot()
  // The last second that was written, and how.
  uint64_t second_ = ~uint64_t{0};
  size_t second_size_ = 0;
  std::array<char, kNumberMax> second_text_;
  std::string scratch_;
};

}  // namespace syncline::text

#endif  // SYNCLINE_EXPORT_TEXT_EVENT_TEXT_H_

// SPDX-License-Identifier: Apache-2.0
#include "timeline/testing/fake_trace.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"

namespace syncline::timeline::testing {
namespace {

FieldType TypeOf(const FakeValue& value) {
  switch (value.index()) {
    case 0:
      return FieldType::kUnsigned;
    case 1:
      return FieldType::kSigned;
    case 2:
      return FieldType::kReal;
    case 3:
      return FieldType::kString;
    default:
      return FieldType::kArray;
  }
}

absl::StatusOr<FakeValue> ParseNumber(std::string_view text) {
  const bool has_sign = text.starts_with('-') || text.starts_with('+');
  double real = 0;
  uint64_t natural = 0;
  int64_t integer = 0;
  if (has_sign &&
      absl::SimpleAtoi(AbslView(text.starts_with('+') ? text.substr(1) : text), &integer)) {
    return FakeValue(integer);
  }
  if (absl::SimpleAtoi(AbslView(text), &natural)) return FakeValue(natural);
  if (absl::SimpleAtod(AbslView(text), &real)) return FakeValue(real);
  return absl::InvalidArgumentError(absl::StrCat("not a number: ", AbslView(text)));
}

absl::StatusOr<FakeValue> ParseValue(std::string_view text) {
  if (text.starts_with('"')) return FakeValue(std::string(text.substr(1, text.size() - 2)));
  if (!text.starts_with('[')) return ParseNumber(text);
  FakeArray array;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    SYNCLINE_ASSIGN_OR_RETURN(const FakeValue value, ParseNumber(text.substr(0, comma)));
    if (const auto* u = std::get_if<uint64_t>(&value)) array.emplace_back(*u);
    if (const auto* s = std::get_if<int64_t>(&value)) array.emplace_back(*s);
    if (const auto* d = std::get_if<double>(&value)) array.emplace_back(*d);
    text = comma == text.size() ? std::string_view() : text.substr(comma + 1);
  }
  return FakeValue(std::move(array));
}

// Bytes of an unsigned field as our libraries write it.
uint8_t WidthOf(std::string_view field) {
  if (field == "depth" || field == "number") return 2;
  return field == "thread" || field == "domain" || field == "name" ? 4 : 8;
}

bool HasNumbersOnly(const FakeEvent& event) {
  return std::all_of(event.fields.begin(), event.fields.end(), [](const FakeField& field) {
    return std::holds_alternative<uint64_t>(field.value) && field.scope == FieldScope::kPayload;
  });
}

// The length of the first word; blanks inside quotes do not end it.
size_t WordLength(std::string_view text) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (text[i] == ' ' && !quoted) return i;
  }
  return text.size();
}

}  // namespace

class FakeCursor final : public EventCursor {
 public:
  FakeCursor(FakeTrace* trace, uint32_t index, int64_t begin_ns, int64_t end_ns)
      : trace_(trace), index_(index), begin_ns_(begin_ns), end_ns_(end_ns) {}

  const StreamInfo& stream() const override { return trace_->infos_[index_]; }

  absl::StatusOr<Stretch> NextBefore(int64_t until_ns) override {
    if (!trace_->stops_) return EventCursor::NextBefore(until_ns);
    until_ns_ = until_ns;
    const auto batch = NextBatch();
    until_ns_ = kUnknownHi;
    if (!batch.ok()) return batch.status();
    Stretch stretch{*batch};
    const FakeStream& stream = trace_->streams_[index_];
    if (next_ < stream.events.size()) stretch.next_ns = stream.events[next_].time_ns;
    return stretch;
  }

  absl::StatusOr<std::span<const EventRecord>> NextBatch() override {
    batch_.clear();
    const FakeStream& stream = trace_->streams_[index_];
    while (next_ < stream.events.size() && batch_.size() < trace_->batch_size_) {
      const FakeEvent& event = stream.events[next_];
      if (event.time_ns >= until_ns_) break;
      if (event.time_ns >= begin_ns_ && event.time_ns < end_ns_) {
        const auto* bytes = reinterpret_cast<const uint8_t*>(event.bytes.data());
        batch_.push_back({event.time_ns, trace_->ClassOf(event), bytes, next_});
      }
      ++next_;
    }
    // A reader learns of a loss when it reaches the packet behind it.
    const int64_t reached_ns = batch_.empty() ? kUnknownHi : batch_.back().time_ns;
    while (losses_known_ < stream.losses.size() &&
           stream.losses[losses_known_].begin_ns <= reached_ns) {
      ++losses_known_;
    }
    return std::span<const EventRecord>(batch_);
  }

  bool Decode(const EventRecord& record, std::vector<FieldValue>* values) override {
    values->clear();
    const FakeEvent& event = trace_->streams_[index_].events[record.reader_word];
    for (size_t i = 0; i < event.fields.size(); ++i) {
      const FieldClass& field = record.event_class->fields[i];
      Append(field, event.fields[i].value, values);
    }
    return true;
  }

  std::span<const Loss> losses() const override {
    return std::span(trace_->streams_[index_].losses).first(losses_known_);
  }

 private:
  static void Append(const FieldClass& field, const FakeValue& value,
                     std::vector<FieldValue>* values) {
    FieldValue out;
    out.field = &field;
    out.type = TypeOf(value);
    if (const auto* u = std::get_if<uint64_t>(&value)) out.u = *u;
    if (const auto* s = std::get_if<int64_t>(&value)) out.s = *s;
    if (const auto* d = std::get_if<double>(&value)) out.d = *d;
    if (const auto* text = std::get_if<std::string>(&value)) out.text = *text;
    const auto* array = std::get_if<FakeArray>(&value);
    if (array != nullptr) out.count = static_cast<uint32_t>(array->size());
    values->push_back(out);
    if (array == nullptr) return;
    for (const auto& element : *array) {
      std::visit([&](auto number) { Append(field.children[0], FakeValue(number), values); },
                 element);
    }
  }

  FakeTrace* trace_;
  int64_t until_ns_ = kUnknownHi;
  uint32_t index_;
  int64_t begin_ns_;
  int64_t end_ns_;
  size_t next_ = 0;
  size_t losses_known_ = 0;
  std::vector<EventRecord> batch_;
};

absl::StatusOr<FakeEvent> ParseFakeEvent(int64_t time_ns, std::string_view text) {
  FakeEvent event;
  event.time_ns = time_ns;
  size_t length = WordLength(text);
  event.name = text.substr(0, length);
  text.remove_prefix(length);
  while (!text.empty()) {
    if (text.front() == ' ') {
      text.remove_prefix(1);
      continue;
    }
    length = WordLength(text);
    const std::string_view word = text.substr(0, length);
    text.remove_prefix(length);
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) {
      return absl::InvalidArgumentError(absl::StrCat("no value: ", AbslView(word)));
    }
    FakeField field;
    std::string_view name = word.substr(0, equals);
    if (name.starts_with("context.")) {
      field.scope = FieldScope::kStreamContext;
      name.remove_prefix(8);
    }
    field.name = name;
    SYNCLINE_ASSIGN_OR_RETURN(field.value, ParseValue(word.substr(equals + 1)));
    event.fields.push_back(std::move(field));
  }
  return event;
}

FakeStream* FakeTrace::AddStream(std::string name) {
  StreamInfo info;
  info.index = static_cast<uint32_t>(streams_.size());
  info.name = name;
  infos_.push_back(info);
  streams_.push_back({std::move(name), {}, {}});
  return &streams_.back();
}

void FakeTrace::GivePlaces() {
  places_ = true;
  for (FakeStream& stream : streams_) {
    for (FakeEvent& event : stream.events) {
      if (!HasNumbersOnly(event)) continue;
      for (const FakeField& field : event.fields) {
        const uint64_t number = std::get<uint64_t>(field.value);
        for (int i = 0; i < WidthOf(field.name); ++i) {
          event.bytes.push_back(static_cast<char>(number >> 8 * i));
        }
      }
    }
  }
}

std::vector<const EventClass*> FakeTrace::classes() {
  std::vector<const EventClass*> all;
  for (const FakeStream& stream : streams_) {
    for (const FakeEvent& event : stream.events) ClassOf(event);
  }
  for (const EventClass& one : classes_) all.push_back(&one);
  return all;
}

const EventClass* FakeTrace::ClassOf(const FakeEvent& event) {
  const auto same = [&](const EventClass& entry) {
    if (entry.name != event.name || entry.fields.size() != event.fields.size()) return false;
    for (size_t i = 0; i < event.fields.size(); ++i) {
      if (entry.fields[i].name != event.fields[i].name) return false;
    }
    return true;
  };
  const auto found = std::find_if(classes_.begin(), classes_.end(), same);
  if (found != classes_.end()) return &*found;
  EventClass made;
  made.index = static_cast<uint32_t>(classes_.size());
  made.name = event.name;
  uint32_t offset = 0;
  const bool placed = places_ && HasNumbersOnly(event);
  for (const FakeField& field : event.fields) {
    FieldClass field_class;
    field_class.name = field.name;
    field_class.path = field.name;
    field_class.type = TypeOf(field.value);
    field_class.scope = field.scope;
    if (placed) {
      field_class.place = {FieldPlace::Kind::kUnsigned, WidthOf(field.name), false, offset};
      offset += field_class.place.width;
    }
    if (field_class.type == FieldType::kArray) field_class.children.emplace_back();
    made.fields.push_back(std::move(field_class));
  }
  classes_.push_back(std::move(made));
  return &classes_.back();
}

absl::StatusOr<std::unique_ptr<EventCursor>> FakeTrace::Open(uint32_t stream_index,
                                                             int64_t begin_ns, int64_t end_ns) {
  return std::make_unique<FakeCursor>(this, stream_index, begin_ns, end_ns);
}

}  // namespace syncline::timeline::testing

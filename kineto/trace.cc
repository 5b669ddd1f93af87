// SPDX-License-Identifier: Apache-2.0
#include "kineto/trace.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "common/text.h"
#include "kineto/text_reader.h"

namespace syncline::kineto {
namespace {

constexpr char kDurationField[] = "duration_ps";
constexpr size_t kBatchEvents = 1024;
constexpr int64_t kTimeMaxNs = int64_t{1} << 61;  // sums of two fit
constexpr int64_t kPsPerNs = 1000;
constexpr int64_t kDurationMaxNs = kTimeMaxNs / kPsPerNs;
constexpr char kTraceCategory[] = "Trace";  // how long the profiler ran

bool OfDevice(std::string_view category) {
  return category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset" ||
         category == "gpu_user_annotation";
}

FieldClass Field(std::string name, FieldType type) {
  FieldClass field;
  field.name = field.path = std::move(name);
  field.type = type;
  field.size_bits = type == FieldType::kUnsigned ? 64 : 0;
  return field;
}

}  // namespace

std::optional<int64_t> NanosecondsOf(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  int64_t digits = 0;  // behind the point
  bool point = false;
  int64_t value = 0;
  size_t i = 0;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && !point) {
      point = true;
    } else if (text[i] >= '0' && text[i] <= '9') {
      if (point && digits == 3) continue;  // less than a nanosecond
      if (value > kTimeMaxNs / 10) return std::nullopt;
      value = value * 10 + (text[i] - '0');
      digits += point ? 1 : 0;
    } else {
      break;
    }
  }
  // The one exponent that anybody writes: "e-3" for what is ns already.
  const bool nanoseconds = text.substr(i) == "e-3" && digits == 0;
  if (i == 0 || (i != text.size() && !nanoseconds)) return std::nullopt;
  for (; digits < 3 && !nanoseconds; ++digits) {
    if (value > kTimeMaxNs / 10) return std::nullopt;
    value *= 10;
  }
  return negative ? -value : value;
}

// The events of one stream.
class Cursor final : public EventCursor {
 public:
  Cursor(const Trace& trace, uint32_t index, int64_t begin_ns, int64_t end_ns)
      : trace_(trace), index_(index), begin_ns_(begin_ns), end_ns_(end_ns) {}

  const StreamInfo& stream() const override { return trace_.streams_[index_]; }

  absl::StatusOr<std::span<const EventRecord>> NextBatch() override {
    batch_.clear();
    const std::vector<uint32_t>& events = trace_.stream_events_[index_].events;
    for (; next_ < events.size() && batch_.size() < kBatchEvents; ++next_) {
      const Trace::Event& event = trace_.events_[events[next_]];
      if (event.begin_ns < begin_ns_ || event.begin_ns >= end_ns_) continue;
      batch_.push_back({event.begin_ns, event.event_class, nullptr, events[next_]});
    }
    return std::span<const EventRecord>(batch_);
  }

  bool Decode(const EventRecord& record, std::vector<FieldValue>* values) override {
    const Trace::Event& event = trace_.events_[record.reader_word];
    values->clear();
    const std::vector<FieldClass>& fields = event.event_class->fields;
    for (size_t i = 0; i < fields.size(); ++i) {
      FieldValue& value = values->emplace_back();
      value.field = &fields[i];
      value.type = fields[i].type;
      if (i == 0) {
        value.u = static_cast<uint64_t>(event.duration_ns * kPsPerNs);
      } else {
        value.text = trace_.arguments_[event.first_argument + i - 1];
      }
    }
    return true;
  }

  std::span<const Loss> losses() const override { return {}; }  // Trace::losses() has them

 private:
  const Trace& trace_;
  const uint32_t index_;
  const int64_t begin_ns_;
  const int64_t end_ns_;
  size_t next_ = 0;
  std::vector<EventRecord> batch_;
};

absl::StatusOr<std::unique_ptr<Trace>> Trace::Open(const std::filesystem::path& path) {
  SYNCLINE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::span<const uint8_t> bytes = file.bytes();
  return Of({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.filename().string());
}

std::unique_ptr<Trace> Trace::Of(std::string_view text, std::string source) {
  bool damaged = false;
  std::unique_ptr<Trace> trace = Read(text, source, &damaged);
  if (!damaged) return trace;
  const std::string escaped = WithQuotesEscaped(text);
  return escaped.size() > text.size() ? Read(escaped, std::move(source), &damaged)
                                      : std::move(trace);
}

std::unique_ptr<Trace> Trace::Read(std::string_view text, std::string source, bool* damaged) {
  std::unique_ptr<Trace> trace(new Trace());
  trace->source_ = std::move(source);
  TextReader reader(trace.get());
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  *damaged = reader.damaged_at().has_value();
  if (reader.damaged_at().has_value()) {
    const bool ends = *reader.damaged_at() >= text.size();
    trace->Lose(ends ? LossReason::kTruncated : LossReason::kUnreadable, std::nullopt,
                ends ? std::string("the text ends in the middle")
                     : absl::StrCat("no JSON from byte ", *reader.damaged_at(),
                                    " on: what follows is not read"));
  } else if (!reader.has_events()) {
    trace->Lose(LossReason::kUnreadable, std::nullopt,
                "it is no profile of Kineto's: it has no \"traceEvents\"");
  }
  trace->Finish(reader.base_ns());
  return trace;
}

void Trace::Lose(LossReason reason, std::optional<uint64_t> count, std::string detail) {
  losses_.push_back({reason, 0, 0, count, source_, std::move(detail)});
}

std::string_view Trace::Intern(std::string_view text) {
  const auto known = interned_.find(text);
  if (known != interned_.end()) return known->second;
  const std::string_view kept = texts_.emplace_back(text);
  interned_.emplace(kept, kept);
  return kept;
}

const EventClass* Trace::ClassOf(const TextEvent& event) {
  // With their lengths: texts may contain anything.
  std::string key =
      absl::StrCat(event.category.size(), ":", event.category, event.name.size(), ":", event.name);
  for (const auto& [name, value] : event.arguments) absl::StrAppend(&key, name.size(), ":", name);
  std::unique_ptr<EventClass>& made = classes_[key];
  if (made != nullptr) return made.get();
  made = std::make_unique<EventClass>();
  made->index = static_cast<uint32_t>(classes_.size() - 1);
  made->name = event.name;
  made->attributes["category"] = event.category;
  made->fields.push_back(Field(kDurationField, FieldType::kUnsigned));
  for (const auto& [name, value] : event.arguments) {
    made->fields.push_back(Field(name, FieldType::kString));
  }
  return made.get();
}

uint32_t Trace::StreamOf(const TextEvent& event) {
  const bool device = OfDevice(event.category);
  const std::string key = (device ? "d" : "t") + event.pid + "/" + event.tid;
  const auto [known, is_new] =
      stream_numbers_.try_emplace(key, static_cast<uint32_t>(stream_events_.size()));
  if (is_new) stream_events_.push_back({event.pid, event.tid, device, {}});
  return known->second;
}

void Trace::Add(const TextEvent& event) {
  if (event.ph == "M" && event.name == "thread_name") {
    for (const auto& [name, value] : event.arguments) {
      if (name == "name") thread_names_[{event.pid, event.tid}] = value;
    }
  }
  if (event.ph != "X") return;  // arrows and marks between Kineto's own events
  if (!event.ts_ns.has_value() || !event.duration_ns.has_value() || *event.duration_ns < 0 ||
      *event.duration_ns > kDurationMaxNs) {
    ++untimed_;
    return;
  }
  if (event.category == kTraceCategory) {
    profile_begin_ns_ = *event.ts_ns;
    profile_end_ns_ = *event.ts_ns + *event.duration_ns;
    return;
  }
  Event kept;
  kept.begin_ns = *event.ts_ns;
  kept.duration_ns = *event.duration_ns;
  kept.event_class = ClassOf(event);
  kept.first_argument = static_cast<uint32_t>(arguments_.size());
  for (const auto& [name, value] : event.arguments) arguments_.push_back(Intern(value));
  stream_events_[StreamOf(event)].events.push_back(static_cast<uint32_t>(events_.size()));
  events_.push_back(kept);
}

void Trace::Finish(std::optional<int64_t> base_ns) {
  if (untimed_ > 0) {
    Lose(LossReason::kUnreadable, untimed_, "events without a time that can be");
  }
  if (base_ns.has_value() && *base_ns >= 0 && *base_ns <= kTimeMaxNs) {
    Place(*base_ns);
    return;
  }
  if (!events_.empty()) {
    Lose(LossReason::kUnreadable, events_.size(),
         "it has no \"baseTimeNanoseconds\": nothing says when its events were");
  }
  events_.clear();
  stream_events_.clear();
  profile_begin_ns_.reset();
  profile_end_ns_.reset();
}

void Trace::Place(int64_t base_ns) {
  for (Event& event : events_) event.begin_ns += base_ns;
  for (std::optional<int64_t>* ns : {&profile_begin_ns_, &profile_end_ns_}) {
    if (ns->has_value()) **ns += base_ns;
  }
  for (uint32_t i = 0; i < stream_events_.size(); ++i) {
    Stream& stream = stream_events_[i];
    std::stable_sort(stream.events.begin(), stream.events.end(), [&](uint32_t a, uint32_t b) {
      if (events_[a].begin_ns != events_[b].begin_ns) {
        return events_[a].begin_ns < events_[b].begin_ns;
      }
      return events_[a].duration_ns > events_[b].duration_ns;
    });
    StreamInfo& info = streams_.emplace_back();
    info.clock.kind = ClockKind::kRealtime;
    info.index = i;
    const auto named = thread_names_.find({stream.pid, stream.tid});
    if (stream.device) {
      info.name = absl::StrCat("GPU ", stream.pid, " stream ", stream.tid);
    } else {
      info.name = named != thread_names_.end() ? named->second : "thread " + stream.tid;
    }
    info.begin_ns = events_[stream.events.front()].begin_ns;
    for (const uint32_t event : stream.events) {
      info.end_ns = std::max(info.end_ns, events_[event].begin_ns + events_[event].duration_ns);
    }
  }
}

std::vector<const EventClass*> Trace::classes() {
  std::vector<const EventClass*> classes(classes_.size());
  for (const auto& [key, made] : classes_) classes[made->index] = made.get();
  return classes;
}

absl::StatusOr<std::unique_ptr<EventCursor>> Trace::Open(uint32_t stream_index, int64_t begin_ns,
                                                         int64_t end_ns) {
  if (stream_index >= streams_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("No stream ", stream_index, " in ", source_));
  }
  return std::make_unique<Cursor>(*this, stream_index, begin_ns, end_ns);
}

}  // namespace syncline::kineto

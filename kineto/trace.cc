// SPDX-License-Identifier: Apache-2.0
#include "kineto/trace.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/kineto_categories.h"
#include "common/status.h"
#include "common/text.h"
#include "kineto/launches.h"
#include "kineto/text_reader.h"
#include "kineto/unpack.h"

namespace syncline::kineto {
namespace {

constexpr char kDurationField[] = "duration_ps";
constexpr size_t kBatchEvents = 1024;
constexpr int64_t kTimeMaxNs = int64_t{1} << 61;  // sums of two fit
constexpr int64_t kPsPerNs = 1000;
constexpr int64_t kDurationMaxNs = kTimeMaxNs / kPsPerNs;
constexpr char kTraceCategory[] = "Trace";  // how long the profiler ran

constexpr char kOperatorField[] = "operator";
constexpr char kLaunchedField[] = "_launched_ns";
// A time that counts from 1970 lies behind 2000, one that counts from a file's own base before.
constexpr int64_t kYear2000Ns = 946'684'800'000'000'000;
constexpr std::string_view kHostLabel = "CPU";
// Guessed: no kernel waits or runs for so long outside of what the program did.
constexpr int64_t kOutsideMaxNs = 60'000'000'000;

// Categories as they were called in 2021.
constexpr std::pair<std::string_view, std::string_view> kOldCategories[] = {
    {"Kernel", "kernel"},
    {"Memcpy", "gpu_memcpy"},
    {"Memset", "gpu_memset"},
    {"Operator", "cpu_op"},
    {"Runtime", "cuda_runtime"}};

std::optional<int32_t> NumberOf(std::string_view text) {
  int32_t number = 0;
  if (!absl::SimpleAtoi(AbslView(text), &number) || number < 0) return std::nullopt;
  return number;
}

FieldClass Field(std::string name, FieldType type) {
  FieldClass field;
  field.name = field.path = std::move(name);
  field.type = type;
  field.size_bits = type == FieldType::kString ? 0 : 64;
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
      batch_.push_back({event.begin_ns, &event.of->event_class, nullptr, events[next_]});
    }
    return std::span<const EventRecord>(batch_);
  }

  bool Decode(const EventRecord& record, std::vector<FieldValue>* values) override {
    const Trace::Event& event = trace_.events_[record.reader_word];
    values->clear();
    const std::vector<FieldClass>& fields = event.of->event_class.fields;
    const auto add = [&](const FieldClass& field) -> FieldValue& {
      FieldValue& value = values->emplace_back();
      value.field = &field;
      value.type = field.type;
      return value;
    };
    add(fields[0]).u = static_cast<uint64_t>(event.duration_ns * kPsPerNs);
    const uint32_t arguments = event.of->arguments;
    for (uint32_t i = 0; i < arguments; ++i) {
      add(fields[i + 1]).text = trace_.arguments_[event.first_argument + i];
    }
    if (event.operator_event != kNoEvent) {
      add(fields[arguments + 1]).text = trace_.events_[event.operator_event].of->event_class.name;
    }
    if (event.call != kNoEvent) {
      add(fields[arguments + 2]).s = trace_.events_[event.call].begin_ns;
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
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()),
                               file.bytes().size());
  const std::string source = path.filename().string();
  if (!IsPacked(bytes)) return Of(bytes, source);
  SYNCLINE_ASSIGN_OR_RETURN(const Unpacked unpacked, Unpack(bytes));
  std::unique_ptr<Trace> trace = Of(unpacked.text, source);
  if (!unpacked.damage.empty()) {
    trace->Lose(LossReason::kTruncated, std::nullopt,
                absl::StrCat("it cannot be unpacked to its end: ", unpacked.damage));
  }
  return trace;
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
  trace->Finish(reader);
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

Trace::Kind Trace::KindOf(std::string_view category) {
  if (category == kKinetoOperator) return Kind::kOperator;
  if (IsKinetoKernel(category) || IsKinetoCopy(category)) return Kind::kWork;
  if (category == "gpu_user_annotation") return Kind::kMark;
  return IsKinetoCall(category) ? Kind::kCall : Kind::kOther;
}

const Trace::Class* Trace::ClassOf(const TextEvent& event) {
  // With their lengths: texts may contain anything.
  std::string key =
      absl::StrCat(event.category.size(), ":", event.category, event.name.size(), ":", event.name);
  for (const auto& [name, value] : event.arguments) absl::StrAppend(&key, name.size(), ":", name);
  std::unique_ptr<Class>& made = classes_[key];
  if (made != nullptr) return made.get();
  made = std::make_unique<Class>();
  made->kind = KindOf(event.category);
  EventClass& event_class = made->event_class;
  event_class.index = static_cast<uint32_t>(classes_.size() - 1);
  event_class.name = event.name;
  event_class.attributes["category"] = event.category;
  event_class.fields.push_back(Field(kDurationField, FieldType::kUnsigned));
  for (const auto& [name, value] : event.arguments) {
    if (name == "correlation") made->correlation = made->arguments;
    event_class.fields.push_back(Field(name, FieldType::kString));
    ++made->arguments;
  }
  if (made->kind == Kind::kWork) {
    event_class.fields.push_back(Field(kOperatorField, FieldType::kString));
    event_class.fields.push_back(Field(kLaunchedField, FieldType::kSigned));
  }
  return made.get();
}

uint32_t Trace::StreamOf(const TextEvent& event, Kind kind) {
  const bool device = kind == Kind::kWork || kind == Kind::kMark;
  const std::string key = absl::StrCat(kind == Kind::kWork   ? "d"
                                       : kind == Kind::kMark ? "m"
                                                             : "t",
                                       event.pid, "/", event.tid);
  const auto [known, is_new] =
      stream_numbers_.try_emplace(key, static_cast<uint32_t>(stream_events_.size()));
  if (is_new) {
    stream_events_.push_back({event.pid, event.tid, device ? kind : Kind::kOther, {}});
  }
  return known->second;
}

// What the file says of its processes and threads.
void Trace::Describe(const TextEvent& event) {
  for (const auto& [name, value] : event.arguments) {
    if (event.name == "thread_name" && name == "name") {
      thread_names_[{event.pid, event.tid}] = value;
    } else if (event.name == "process_name" && name == "name") {
      process_names_[event.pid] = value;
    } else if (event.name == "process_labels" && name == "labels") {
      labels_[event.pid] = value;
    }
  }
}

void Trace::Add(TextEvent event) {
  constexpr std::string_view kStream = "stream ";
  for (const auto& [old_name, name] : kOldCategories) {
    if (event.category == old_name) event.category = name;
  }
  if (event.tid.starts_with(kStream)) event.tid.erase(0, kStream.size());
  if (event.ph == "M") Describe(event);
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
  kept.of = ClassOf(event);
  kept.first_argument = static_cast<uint32_t>(arguments_.size());
  for (const auto& [name, value] : event.arguments) arguments_.push_back(Intern(value));
  stream_events_[StreamOf(event, kept.of->kind)].events.push_back(
      static_cast<uint32_t>(events_.size()));
  events_.push_back(kept);
}

void Trace::Finish(const TextReader& reader) {
  if (untimed_ > 0) {
    Lose(LossReason::kUnreadable, untimed_, "events without a time that can be");
  }
  rank_ = NumberOf(reader.rank());
  world_size_ = NumberOf(reader.world_size());
  const std::optional<int64_t> base_ns = reader.base_ns();
  if (base_ns.has_value() && *base_ns >= 0 && *base_ns <= kTimeMaxNs) {
    Place(*base_ns);
    return;
  }
  const auto from_1970 = [](const Event& event) { return event.begin_ns >= kYear2000Ns; };
  const auto absolute = std::count_if(events_.begin(), events_.end(), from_1970);
  if (!base_ns.has_value() && static_cast<size_t>(absolute) > events_.size() / 2) {
    const uint64_t others =
        LeaveOut([&](const Stream&, const Event& event) { return !from_1970(event); });
    if (others > 0) {
      Lose(LossReason::kUnreadable, others,
           absl::StrCat(others, " events are at times before 2000: these are wrong"));
    }
    Place(0);
    return;
  }
  if (!events_.empty()) {
    Lose(LossReason::kUnreadable, events_.size(),
         "it has no \"baseTimeNanoseconds\", and its times do not count from 1970: nothing says "
         "when its events were");
  }
  events_.clear();
  left_out_ = 0;
  stream_events_.clear();
  profile_begin_ns_.reset();
  profile_end_ns_.reset();
}

uint64_t Trace::LeaveOut(const std::function<bool(const Stream&, const Event&)>& is_wrong) {
  uint64_t left_out = 0;
  for (Stream& stream : stream_events_) {
    left_out += std::erase_if(stream.events,
                              [&](uint32_t event) { return is_wrong(stream, events_[event]); });
  }
  std::erase_if(stream_events_, [](const Stream& stream) { return stream.events.empty(); });
  left_out_ += left_out;
  return left_out;
}

void Trace::LeaveOutImpossible() {
  int64_t begin_ns = kUnknownHi;
  int64_t end_ns = kUnknownLo;
  for (const Stream& stream : stream_events_) {
    if (IsOfDevice(stream)) continue;
    for (const uint32_t index : stream.events) {
      const Event& event = events_[index];
      begin_ns = std::min(begin_ns, event.begin_ns);
      end_ns = std::max(end_ns, event.begin_ns + event.duration_ns);
    }
  }
  if (begin_ns > end_ns) return;  // of devices alone
  const uint64_t left_out = LeaveOut([&](const Stream& stream, const Event& event) {
    return IsOfDevice(stream) && (event.begin_ns < begin_ns - kOutsideMaxNs ||
                                  event.begin_ns + event.duration_ns > end_ns + kOutsideMaxNs);
  });
  if (left_out == 0) return;
  Lose(LossReason::kUnreadable, left_out,
       absl::StrCat(left_out,
                    " events of devices are more than 60 s before or after all that the "
                    "program did: their times are wrong"));
}

bool Trace::IsOfDevice(const Stream& stream) const {
  if (stream.kind != Kind::kOther) return true;
  const auto label = labels_.find(stream.pid);
  return label != labels_.end() && !label->second.empty() && label->second != kHostLabel;
}

// "GPU 0 stream 7" of the device "GPU 0"; a thread's name.
void Trace::NameStream(const Stream& stream, StreamInfo* info) const {
  const auto labelled = labels_.find(stream.pid);
  const std::string label = labelled == labels_.end() ? "" : labelled->second;
  const auto named = thread_names_.find({stream.pid, stream.tid});
  if (!IsOfDevice(stream)) {
    info->name = named != thread_names_.end() ? named->second : "thread " + stream.tid;
    return;
  }
  info->device = label.empty() || label == kHostLabel ? "GPU " + stream.pid : label;
  info->name = absl::StrCat(info->device, " stream ", stream.tid);
  if (stream.kind == Kind::kMark) info->name += " annotations";
  if (stream.kind != Kind::kOther) return;
  const EventClass& first = events_[stream.events.front()].of->event_class;
  const std::string& category = first.attributes.at("category");
  absl::StrAppend(&info->name, " ",
                  category.ends_with("_sync") ? std::string("synchronisation") : category);
}

// Whose threads have the most events.
void Trace::FindProcess() {
  std::map<std::string, size_t> events;
  for (const Stream& stream : stream_events_) {
    if (stream.kind == Kind::kOther) events[stream.pid] += stream.events.size();
  }
  size_t most = 0;
  for (const auto& [pid, count] : events) {
    const std::optional<int32_t> number = NumberOf(pid);
    const auto label = labels_.find(pid);
    const bool device = label != labels_.end() && label->second != kHostLabel;
    if (!number.has_value() || *number == 0 || device || count <= most) continue;
    most = count;
    pid_ = *number;
    const auto name = process_names_.find(pid);
    process_name_ = name == process_names_.end() ? "" : name->second;
  }
}

std::string_view Trace::CorrelationOf(const Event& event) const {
  if (!event.of->correlation.has_value()) return "";
  return arguments_[event.first_argument + *event.of->correlation];
}

void Trace::FindLaunches() {
  Launches launches;
  for (const Stream& stream : stream_events_) {
    if (stream.kind != Kind::kOther) continue;
    launches.OnThread();
    for (const uint32_t index : stream.events) {
      const Event& event = events_[index];
      const int64_t end_ns = event.begin_ns + event.duration_ns;
      if (event.of->kind == Kind::kOperator) {
        launches.OnOperator(index, event.begin_ns, end_ns);
      } else if (event.of->kind == Kind::kCall) {
        launches.OnCall(index, event.begin_ns, end_ns, CorrelationOf(event));
      }
    }
  }
  for (Event& event : events_) {
    if (event.of->kind != Kind::kWork) continue;
    const Launches::Launch launch = launches.Find(CorrelationOf(event));
    event.call = launch.call;
    event.operator_event = launch.operator_event;
  }
}

void Trace::Place(int64_t base_ns) {
  for (Event& event : events_) event.begin_ns += base_ns;
  for (std::optional<int64_t>* ns : {&profile_begin_ns_, &profile_end_ns_}) {
    if (ns->has_value()) **ns += base_ns;
  }
  LeaveOutImpossible();
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
    NameStream(stream, &info);
    info.begin_ns = events_[stream.events.front()].begin_ns;
    for (const uint32_t event : stream.events) {
      info.end_ns = std::max(info.end_ns, events_[event].begin_ns + events_[event].duration_ns);
    }
  }
  FindProcess();
  FindLaunches();
}

std::vector<const EventClass*> Trace::classes() {
  std::vector<const EventClass*> classes(classes_.size());
  for (const auto& [key, made] : classes_) {
    classes[made->event_class.index] = &made->event_class;
  }
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

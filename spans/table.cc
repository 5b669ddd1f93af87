// SPDX-License-Identifier: Apache-2.0
#include "spans/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"

namespace syncline::spans {
namespace {

constexpr size_t kBatchEvents = 1024;
constexpr uint64_t kPsPerNs = 1000;
constexpr char kUnnamedDevice[] = "device";
// A kind, and the category of what a device did of it.
constexpr std::pair<std::string_view, const char*> kDeviceKinds[] = {
    {"kernel", "kernel"}, {"copy", "gpu_memcpy"}, {"fill", "gpu_memset"}};
constexpr char kCollective[] = "collective";
constexpr char kOperator[] = "operator";

FieldClass FieldOf(std::string name, FieldType type) {
  FieldClass field;
  field.name = field.path = std::move(name);
  field.type = type;
  field.is_signed = type == FieldType::kSigned;
  field.size_bits = type == FieldType::kString ? 0 : 64;
  return field;
}

// Empty: of the program.
std::string DeviceOf(const Row& row) {
  if (!row.device.empty()) return row.device;
  const bool always = std::any_of(std::begin(kDeviceKinds), std::end(kDeviceKinds),
                                  [&](const auto& kind) { return row.kind == kind.first; });
  return always || (row.kind == kCollective && !row.stream.empty()) ? kUnnamedDevice : "";
}

// Empty: none.
std::string CategoryOf(const Row& row, bool of_device) {
  if (!of_device) return row.kind == kOperator ? "cpu_op" : "";
  for (const auto& [kind, category] : kDeviceKinds) {
    if (row.kind == kind) return category;
  }
  return row.kind == kCollective ? kCollective : "";
}

// "stream 7" of a device's number.
std::string LaneOf(const Row& row, bool of_device) {
  if (row.stream.empty()) return row.kind;
  const bool number = row.stream.find_first_not_of("0123456789") == std::string::npos;
  return of_device && number ? "stream " + row.stream : row.stream;
}

}  // namespace

// The events of one stream.
class Cursor final : public EventCursor {
 public:
  Cursor(const Process& process, uint32_t index, int64_t begin_ns, int64_t end_ns)
      : process_(process), index_(index), begin_ns_(begin_ns), end_ns_(end_ns) {}

  const StreamInfo& stream() const override { return process_.streams_[index_]; }

  absl::StatusOr<std::span<const EventRecord>> NextBatch() override {
    batch_.clear();
    const std::vector<size_t>& events = process_.stream_events_[index_];
    for (; next_ < events.size() && batch_.size() < kBatchEvents; ++next_) {
      const Process::Event& event = process_.events_[events[next_]];
      if (event.begin_ns < begin_ns_ || event.begin_ns >= end_ns_) continue;
      batch_.push_back({event.begin_ns, event.of, nullptr, events[next_]});
    }
    return std::span<const EventRecord>(batch_);
  }

  bool Decode(const EventRecord& record, std::vector<FieldValue>* values) override {
    const Process::Event& event = process_.events_[record.reader_word];
    values->clear();
    for (size_t i = 0; i < event.of->fields.size(); ++i) {
      FieldValue& value = values->emplace_back();
      value.field = &event.of->fields[i];
      value.type = value.field->type;
      if (i == 0) {
        value.u = static_cast<uint64_t>(event.duration_ns) * kPsPerNs;
        continue;
      }
      const Process::Value& kept = process_.values_[event.first_value + i - 1];
      value.s = kept.number;
      value.text = kept.text;
    }
    return true;
  }

  std::span<const Loss> losses() const override { return {}; }

 private:
  const Process& process_;
  const uint32_t index_;
  const int64_t begin_ns_;
  const int64_t end_ns_;
  size_t next_ = 0;
  std::vector<EventRecord> batch_;
};

std::string_view Process::Intern(std::string_view text) {
  const auto known = interned_.find(text);
  if (known != interned_.end()) return known->second;
  const std::string_view kept = texts_.emplace_back(text);
  interned_.emplace(kept, kept);
  return kept;
}

const EventClass* Process::ClassOf(const Row& row, const std::string& device) {
  // With lengths: texts may contain anything.
  std::string key = absl::StrCat(row.kind.size(), ":", row.kind, row.name.size(), ":", row.name,
                                 device.empty() ? "p" : "d", row.step.has_value() ? "s" : "",
                                 row.sequence.has_value() ? "q" : "");
  for (const auto& [column, value] : row.others) absl::StrAppend(&key, column.size(), ":", column);
  std::unique_ptr<EventClass>& made = classes_[key];
  if (made != nullptr) return made.get();
  made = std::make_unique<EventClass>();
  made->index = static_cast<uint32_t>(classes_.size() - 1);
  made->name = row.name;
  made->attributes["kind"] = row.kind;
  const std::string category = CategoryOf(row, !device.empty());
  if (!category.empty()) made->attributes["category"] = category;
  made->fields.push_back(FieldOf("duration_ps", FieldType::kUnsigned));
  if (row.step.has_value()) made->fields.push_back(FieldOf("step", FieldType::kSigned));
  if (row.sequence.has_value()) made->fields.push_back(FieldOf("sequence", FieldType::kSigned));
  for (const auto& [column, value] : row.others) {
    made->fields.push_back(FieldOf(column, FieldType::kString));
  }
  return made.get();
}

uint32_t Process::StreamOf(const Row& row, const std::string& device) {
  const std::string lane = LaneOf(row, !device.empty());
  const auto [known, is_new] =
      stream_numbers_.try_emplace({device, lane}, static_cast<uint32_t>(streams_.size()));
  if (is_new) {
    StreamInfo& info = streams_.emplace_back();
    info.index = known->second;
    info.device = device;
    info.name = device.empty() ? lane : absl::StrCat(device, " ", lane);
    info.clock.kind = ClockKind::kRealtime;
    stream_events_.emplace_back();
  }
  return known->second;
}

void Process::Add(const Row& row) {
  const std::string device = DeviceOf(row);
  Event event;
  event.begin_ns = row.start_ns;
  event.duration_ns = row.duration_ns;
  event.of = ClassOf(row, device);
  event.first_value = values_.size();
  if (row.step.has_value()) values_.push_back({*row.step, {}});
  if (row.sequence.has_value()) values_.push_back({*row.sequence, {}});
  for (const auto& [column, value] : row.others) values_.push_back({0, Intern(value)});
  stream_events_[StreamOf(row, device)].push_back(events_.size());
  events_.push_back(event);
}

void Process::Finish() {
  for (StreamInfo& info : streams_) {
    std::vector<size_t>& events = stream_events_[info.index];
    std::stable_sort(events.begin(), events.end(), [&](size_t a, size_t b) {
      if (events_[a].begin_ns != events_[b].begin_ns) {
        return events_[a].begin_ns < events_[b].begin_ns;
      }
      return events_[a].duration_ns > events_[b].duration_ns;
    });
    info.packets = 1;
    info.begin_ns = events_[events.front()].begin_ns;
    for (const size_t event : events) {
      info.end_ns = std::max(info.end_ns, events_[event].begin_ns + events_[event].duration_ns);
    }
  }
}

std::vector<const EventClass*> Process::classes() {
  std::vector<const EventClass*> classes(classes_.size());
  for (const auto& [key, made] : classes_) classes[made->index] = made.get();
  return classes;
}

absl::StatusOr<std::unique_ptr<EventCursor>> Process::Open(uint32_t stream_index, int64_t begin_ns,
                                                           int64_t end_ns) {
  if (stream_index >= streams_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("no stream ", stream_index));
  }
  return std::make_unique<Cursor>(*this, stream_index, begin_ns, end_ns);
}

absl::StatusOr<std::vector<std::unique_ptr<Process>>> ReadTable(std::string_view text,
                                                                Format format) {
  std::map<std::pair<int32_t, std::string>, std::unique_ptr<Process>> by_rank;
  SYNCLINE_RETURN_IF_ERROR(ReadRows(text, format, [&](const Row& row) {
    std::unique_ptr<Process>& process = by_rank[{row.rank, row.node}];
    if (process == nullptr) process = std::make_unique<Process>(row.rank, row.node);
    process->Add(row);
  }));
  if (by_rank.empty()) return absl::InvalidArgumentError("the table has no row");
  std::vector<std::unique_ptr<Process>> processes;
  for (auto& [key, process] : by_rank) {
    process->Finish();
    processes.push_back(std::move(process));
  }
  return processes;
}

}  // namespace syncline::spans

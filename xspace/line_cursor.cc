// SPDX-License-Identifier: Apache-2.0
#include "xspace/line_cursor.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/tensorflow_names.h"
#include "common/text.h"
#include "xspace/stat.h"

namespace syncline::xspace {
namespace {

constexpr size_t kBatchEvents = 1024;

}  // namespace

LineCursor::LineCursor(const Space& space, uint32_t index, int64_t begin_ns, int64_t end_ns)
    : space_(space),
      index_(index),
      line_(space.lines_[index]),
      plane_(*space.planes_[line_.plane]),
      classes_(space.ClassesOf(line_)),
      begin_ns_(begin_ns),
      end_ns_(end_ns),
      fields_(line_.bytes) {}

void LineCursor::Fill(size_t batch_max) {
  while (batch_.size() < batch_max) {
    if (!fields_.Next()) {
      done_ = true;
      return;
    }
    if (fields_.number() != kLineEvent || fields_.clipped()) continue;
    const std::span<const uint8_t> bytes = fields_.bytes();
    const Space::Head head = Space::ReadHead(bytes);
    if (!head.whole || !head.timed) continue;
    const int64_t time_ns = space_.TimeNs(line_, head.offset_ps);
    if (time_ns < begin_ns_ || time_ns >= end_ns_) continue;
    EventRecord record;
    record.time_ns = time_ns;
    record.event_class = classes_.Find(head.metadata_id);
    record.bytes = bytes.data();
    record.reader_word = bytes.size();
    batch_.push_back(record);
  }
}

void LineCursor::SortAll() {
  struct Keyed {
    int64_t offset_ps;
    int64_t duration_ps;
    EventRecord record;
  };
  std::vector<Keyed> keyed;
  for (const EventRecord& record : batch_) {
    const Space::Head head = Space::ReadHead({record.bytes, record.reader_word});
    keyed.push_back({head.offset_ps, head.duration_ps, record});
  }
  std::stable_sort(keyed.begin(), keyed.end(), [](const Keyed& a, const Keyed& b) {
    if (a.offset_ps != b.offset_ps) return a.offset_ps < b.offset_ps;
    return a.duration_ps > b.duration_ps;
  });
  for (size_t i = 0; i < keyed.size(); ++i) batch_[i] = keyed[i].record;
}

absl::StatusOr<std::span<const EventRecord>> LineCursor::NextBatch() {
  batch_.clear();
  if (done_) return std::span<const EventRecord>();
  Fill(line_.sorted ? kBatchEvents : std::numeric_limits<size_t>::max());
  if (!line_.sorted) SortAll();
  return std::span<const EventRecord>(batch_);
}

bool LineCursor::Decode(const EventRecord& record, std::vector<FieldValue>* values) {
  values->clear();
  const std::span<const uint8_t> bytes(record.bytes, record.reader_word);
  // A record of this cursor: its class is one of this plane's.
  const auto* found = static_cast<const Space::Class*>(record.event_class);
  Work work;
  FieldValue& duration = values->emplace_back();
  duration.field = &record.event_class->fields[0];
  Fields fields(bytes);
  for (size_t expected = 0; fields.Next();) {
    if (fields.number() == event_field::kDuration) {
      (*values)[0].u = static_cast<uint64_t>(std::max<int64_t>(0, fields.signed_value()));
    }
    if (fields.number() != event_field::kStat) continue;
    const Stat stat = ReadStat(fields.bytes());
    const StatKey key{stat.id, stat.kind};
    if (expected >= found->stats.size() || !(found->stats[expected] == key)) {
      const auto known = std::find(found->stats.begin(), found->stats.end(), key);
      if (known == found->stats.end()) continue;
      expected = static_cast<size_t>(known - found->stats.begin());
    }
    const size_t index = expected++;
    FieldValue& value = values->emplace_back();
    value.field = &record.event_class->fields[expected];
    value.type = value.field->type;
    if (stat.kind == stat_field::kReference) {
      const auto name = plane_.stat_names.find(static_cast<int64_t>(stat.bits));
      if (name != plane_.stat_names.end()) value.text = name->second;
    } else if (stat.kind == stat_field::kDouble) {
      value.d = std::bit_cast<double>(stat.bits);
    } else if (value.type == FieldType::kString || value.type == FieldType::kBlob) {
      value.text = stat.text;
    } else {
      value.u = stat.bits;
    }
    if (!found->is_work) continue;
    if (found->correlation == index) work.correlation = stat.bits;
    if (found->hlo_op == index) work.hlo_op = value.text;
    if (found->hlo_module == index) work.hlo_module = value.text;
    if (found->tf_op == index) work.tf_op = value.text;
  }
  if (found->is_work) AddLaunch(*found, work, values);
  return true;
}

void LineCursor::AddLaunch(const Space::Class& of, const Work& work,
                           std::vector<FieldValue>* values) {
  const auto add = [&](size_t field) -> FieldValue& {
    FieldValue& value = values->emplace_back();
    value.field = &of.fields[of.stats.size() + field];
    value.type = value.field->type;
    return value;
  };
  const Launches::Launch* const launch = space_.launches_.Find(work.correlation);
  const std::string_view name = OperatorOf(work, launch);
  if (!name.empty()) add(1).text = name;
  if (launch != nullptr) add(2).s = launch->begin_ns;
}

// As the profiler names it on the work itself; else by where the program launched it.
std::string_view LineCursor::OperatorOf(const Work& work, const Launches::Launch* launch) {
  if (!work.hlo_op.empty()) {
    if (work.hlo_module.empty()) return work.hlo_op;
    // Instructions of two modules may have the same name.
    return *names_.insert(absl::StrCat(AbslView(work.hlo_module), "/", AbslView(work.hlo_op)))
                .first;
  }
  if (const auto of = TensorFlowOperatorOf(work.tf_op)) return of->node;
  if (launch == nullptr) return "";
  const auto inside = TensorFlowOperatorOf(launch->inside);
  return inside.has_value() ? inside->node : launch->inside;
}

}  // namespace syncline::xspace

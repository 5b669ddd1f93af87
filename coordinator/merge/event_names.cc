// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/event_names.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "common/status.h"
#include "coordinator/merge/cut.h"
#include "timeline/id_fields.h"
#include "timeline/schema.h"

namespace syncline::merge {
namespace {

using timeline::EventKind;
using timeline::Field;

// Kinds of names (docs/event-schema.md) that are no event's.
constexpr uint8_t kDomain = 1;
constexpr uint8_t kFrame = 4;

bool HasIds(const timeline::NodeInput& node) {
  return std::any_of(node.readers.begin(), node.readers.end(), [](TraceReader* reader) {
    const std::vector<const EventClass*> classes = reader->classes();
    return std::any_of(classes.begin(), classes.end(),
                       [](const EventClass* one) { return timeline::HasIds(*one); });
  });
}

// Whether control blocks name all that some events speak of.
class BlockCheck {
 public:
  // `tables` know what control blocks know, and no more.
  explicit BlockCheck(const timeline::NodeTables& tables) : tables_(tables) {}

  bool Names(uint32_t owner, EventCursor* cursor, const EventRecord& record) {
    const EventKind kind = event_.Kind(record);
    if (kind == EventKind::kForeign || kind == EventKind::kCanary) return true;
    if (timeline::IsAnnouncement(kind) || !event_.Decode(cursor, record)) return true;
    if (!timeline::HasThread(kind)) {
      return tables_.FindProcess(owner, event_.U32(Field::kProcess)).has_value();
    }
    const timeline::ProcessEntry* const process = ProcessOf(owner, event_.U32(Field::kThread));
    if (process == nullptr) return false;
    return std::all_of(std::begin(timeline::kNameFields), std::end(timeline::kNameFields),
                       [&](Field field) {
                         const uint32_t id = event_.U32(field);
                         return id == 0 || process->known->names.contains(id);
                       });
  }

 private:
  const timeline::ProcessEntry* ProcessOf(uint32_t owner, uint32_t key) {
    if (last_process_ != nullptr && last_ == std::pair(owner, key)) return last_process_;
    last_process_ = nullptr;
    const auto thread = tables_.FindThread(owner, key);
    if (!thread.has_value() || !tables_.Knows(owner, key)) return nullptr;
    const timeline::ThreadEntry& entry = tables_.threads()[*thread];
    if (!entry.name_is_known) return nullptr;
    last_ = {owner, key};
    last_process_ = &tables_.processes()[entry.process];
    return last_process_;
  }

  const timeline::NodeTables& tables_;
  timeline::EventReader event_;
  std::pair<uint32_t, uint32_t> last_;
  const timeline::ProcessEntry* last_process_ = nullptr;
};

// Whether the names of what lies in the cut are known without reading the rest of the trace. Asked
// only where the cut is the smaller part of it: it costs a walk through the cut.
absl::StatusOr<bool> BlocksNameCut(const OpenedInputs& inputs, const timeline::NodeInput& node,
                                   const timeline::NodeTables& tables) {
  const std::optional<timeline::Interval>& cut = inputs.build.cut;
  const auto extent = ExtentOf(node.readers);
  if (!cut.has_value() || !extent.has_value() || node.processes.empty()) return false;
  const int64_t begin_ns = std::max(node.placement->ClockNs(cut->begin), extent->begin_ns);
  const int64_t end_ns = std::min(node.placement->ClockNs(cut->end), extent->end_ns);
  if (begin_ns < end_ns && end_ns - begin_ns > (extent->end_ns - extent->begin_ns) / 2) {
    return false;
  }
  BlockCheck check(tables);
  for (size_t i = 0; i < node.readers.size(); ++i) {
    for (const StreamInfo& stream : node.readers[i]->streams()) {
      SYNCLINE_ASSIGN_OR_RETURN(const std::unique_ptr<EventCursor> cursor,
                                node.readers[i]->Open(stream.index, begin_ns, end_ns));
      for (;;) {
        SYNCLINE_ASSIGN_OR_RETURN(const std::span<const EventRecord> batch, cursor->NextBatch());
        if (batch.empty()) break;
        const bool all = std::all_of(batch.begin(), batch.end(), [&](const EventRecord& record) {
          return check.Names(tables.owner_of_reader(i), cursor.get(), record);
        });
        if (!all) return false;
      }
    }
  }
  return true;
}

// One reader's.
class NameLook {
 public:
  NameLook(const timeline::NodeTables* tables, uint32_t owner, const EventPatterns* classes,
           const EventPatterns* names)
      : tables_(tables), owner_(owner), classes_(classes), names_(names) {}

  bool operator()(EventCursor& cursor, const EventRecord& record) {
    if (IsWantedClass(*record.event_class)) return true;
    if (!event_.Decode(&cursor, record)) return false;
    const uint32_t id = event_.U32(Field::kName);
    if (id == 0) {  // a text, or none
      const std::string_view text = event_.Text(Field::kName);
      return !text.empty() && names_->Matches(text);
    }
    const auto thread = tables_->FindThread(owner_, event_.U32(Field::kThread));
    if (!thread.has_value()) return false;
    const uint32_t process = tables_->threads()[*thread].process;
    const auto [found, is_new] = decided_.try_emplace({process, id}, false);
    if (is_new) {
      const std::string_view name = tables_->processes()[process].Name(id);
      found->second = name.data() != nullptr && names_->Matches(name);
    }
    return found->second;
  }

 private:
  bool IsWantedClass(const EventClass& event_class) {
    const auto [found, is_new] = classes_wanted_.try_emplace(&event_class, false);
    if (is_new) found->second = classes_->Matches(event_class.name);
    return found->second;
  }

  const timeline::NodeTables* tables_;
  uint32_t owner_;
  const EventPatterns* classes_;
  const EventPatterns* names_;
  timeline::EventReader event_;
  absl::flat_hash_map<const EventClass*, bool> classes_wanted_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, bool> decided_;  // by process and id
};

bool IsNamed(const EventClass& event_class) {
  const EventKind kind = timeline::KindOf(event_class.name);
  if (kind == EventKind::kForeign || timeline::IsAnnouncement(kind)) return false;
  return std::any_of(event_class.fields.begin(), event_class.fields.end(),
                     [](const FieldClass& field) { return field.name == "name"; });
}

// Whether `is_it` says so of a name in the tables that events may have.
bool AnyKnown(const std::vector<timeline::NodeTables>& all,
              absl::FunctionRef<bool(const std::string&)> is_it) {
  const auto any_of = [&](const std::unordered_map<uint32_t, timeline::KnownName>& names) {
    return std::any_of(names.begin(), names.end(), [&](const auto& entry) {
      const auto& [id, name] = entry;
      return name.kind != kDomain && name.kind != kFrame && is_it(name.text);
    });
  };
  for (const timeline::NodeTables& tables : all) {
    for (const timeline::ProcessEntry& process : tables.processes()) {
      if (any_of(process.announced)) return true;
      if (process.known != nullptr && any_of(process.known->names)) return true;
    }
  }
  return false;
}

// Of events that have it as a text, because the table of names is full.
absl::Status AddTexts(TraceReader* reader, std::set<std::string>* names) {
  timeline::EventReader event;
  const auto visit = [&](EventCursor& cursor, std::span<const EventRecord> records) {
    if (!IsNamed(*records.front().event_class)) return absl::OkStatus();
    for (const EventRecord& record : records) {
      if (!event.Decode(&cursor, record)) continue;
      const std::string_view text = event.Text(Field::kName);
      if (!text.empty()) names->emplace(text);
    }
    return absl::OkStatus();
  };
  return reader->Scan(visit).status();
}

}  // namespace

absl::StatusOr<EventNames> EventNames::Find(const OpenedInputs& inputs, unsigned threads) {
  EventNames names;
  names.inputs_ = &inputs;
  for (uint32_t i = 0; i < inputs.nodes.size(); ++i) {
    const timeline::NodeInput& node = inputs.nodes[i];
    timeline::NodeTables& tables = names.tables_.emplace_back(timeline::NodeTables::Of(node, i));
    if (!HasIds(node)) continue;
    SYNCLINE_ASSIGN_OR_RETURN(const bool named, BlocksNameCut(inputs, node, tables));
    if (named) continue;
    SYNCLINE_RETURN_IF_ERROR(tables.Scan({kUnknownLo, kUnknownHi}, threads));
  }
  return names;
}

void EventNames::MakeTexts(text::EventText::Style style) {
  texts_.clear();
  for (const timeline::NodeTables& tables : tables_) {
    texts_.emplace_back(tables, style == text::EventText::Style::kJson);
  }
}

const text::IdTexts* EventNames::TextsOf(uint32_t node, size_t reader) const {
  return texts_.empty() ? nullptr : texts_[node].OfOwner(tables_[node].owner_of_reader(reader));
}

bool EventNames::Knows(std::string_view pattern) const {
  return AnyKnown(tables_,
                  [pattern](const std::string& name) { return MatchesPattern(pattern, name); });
}

absl::StatusOr<std::set<std::string>> EventNames::All() const {
  std::set<std::string> all;
  AnyKnown(tables_, [&all](const std::string& name) {
    all.insert(name);
    return false;
  });
  for (const timeline::NodeInput& node : inputs_->nodes) {
    for (TraceReader* reader : node.readers) {
      SYNCLINE_RETURN_IF_ERROR(AddTexts(reader, &all));
    }
  }
  return all;
}

void EventNames::Want(std::string pattern) {
  patterns_.push_back(std::move(pattern));
  wanted_ = EventPatterns(patterns_);
}

bool EventNames::MayWant(const EventClass& event_class) const {
  return WantsAny() && IsNamed(event_class);
}

EventLook EventNames::LookOf(uint32_t node, size_t reader) const {
  return NameLook(&tables_[node], tables_[node].owner_of_reader(reader), &inputs_->build.events,
                  &wanted_);
}

}  // namespace syncline::merge

// SPDX-License-Identifier: Apache-2.0
#include "common/event_filter.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace syncline {
namespace {

class WantedCursor final : public EventCursor {
 public:
  WantedCursor(std::unique_ptr<EventCursor> cursor, std::shared_ptr<const ClassChoice> choice,
               EventLook look)
      : cursor_(std::move(cursor)), choice_(std::move(choice)), look_(std::move(look)) {}

  const StreamInfo& stream() const override { return cursor_->stream(); }

  absl::StatusOr<std::span<const EventRecord>> NextBatch() override {
    for (;;) {
      SYNCLINE_ASSIGN_OR_RETURN(const std::span<const EventRecord> all, cursor_->NextBatch());
      const std::span<const EventRecord> wanted = WantedOf(all);
      if (all.empty() || !wanted.empty()) return wanted;
    }
  }

  absl::StatusOr<Stretch> NextBefore(int64_t until_ns) override {
    for (;;) {
      SYNCLINE_ASSIGN_OR_RETURN(Stretch stretch, cursor_->NextBefore(until_ns));
      const bool was_empty = stretch.records.empty();
      stretch.records = WantedOf(stretch.records);
      // What stops in front of `until_ns` may go on there.
      if (was_empty || !stretch.records.empty() || stretch.next_ns >= until_ns) return stretch;
    }
  }

  void Prefetch() const override { cursor_->Prefetch(); }
  bool Decode(const EventRecord& record, std::vector<FieldValue>* values) override {
    return cursor_->Decode(record, values);
  }
  bool DecodeColumns(std::span<const EventRecord> records, ColumnSink* sink) override {
    return cursor_->DecodeColumns(records, sink);
  }
  uint64_t packet() const override { return cursor_->packet(); }
  std::span<const Loss> losses() const override { return cursor_->losses(); }

 private:
  std::span<const EventRecord> WantedOf(std::span<const EventRecord> all) {
    const auto is_wanted = [this](const EventRecord& record) {
      return choice_->IsWanted(record) && (!look_ || look_(*cursor_, record));
    };
    const auto other = std::find_if_not(all.begin(), all.end(), is_wanted);
    if (other == all.end()) return all;
    wanted_.assign(all.begin(), other);
    std::copy_if(other, all.end(), std::back_inserter(wanted_), is_wanted);
    return wanted_;
  }

  std::unique_ptr<EventCursor> cursor_;
  std::shared_ptr<const ClassChoice> choice_;
  EventLook look_;
  std::vector<EventRecord> wanted_;  // of the batch
};

}  // namespace

bool MatchesPattern(std::string_view pattern, std::string_view event_name) {
  size_t at = 0;
  size_t name_at = 0;
  size_t star = std::string_view::npos;  // the last one, and what it stands for ends at
  size_t star_end = 0;
  while (name_at < event_name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      star_end = name_at;
    } else if (at < pattern.size() && pattern[at] == event_name[name_at]) {
      ++at;
      ++name_at;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      name_at = ++star_end;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

bool EventPatterns::Matches(std::string_view event_name) const {
  return MatchesAll() ||
         std::any_of(patterns_.begin(), patterns_.end(), [event_name](const std::string& pattern) {
           return MatchesPattern(pattern, event_name);
         });
}

ClassChoice::ClassChoice(TraceReader* reader,
                         absl::FunctionRef<bool(const EventClass&)> is_wanted) {
  for (const EventClass* event_class : reader->classes()) {
    if (event_class->index >= wanted_.size()) wanted_.resize(event_class->index + 1);
    const bool wanted = is_wanted(*event_class);
    wanted_[event_class->index] = wanted ? 1 : 0;
    all_ = all_ && wanted;
  }
}

std::unique_ptr<EventCursor> KeepWanted(std::unique_ptr<EventCursor> cursor,
                                        std::shared_ptr<const ClassChoice> choice, EventLook look) {
  if (choice->all() && !look) return cursor;
  return std::make_unique<WantedCursor>(std::move(cursor), std::move(choice), std::move(look));
}

}  // namespace syncline

#include "coordinator/merge/ordered_events.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace syncline::merge {

absl::Status OrderedEvents::Open(std::optional<uint32_t> only) {
  for (uint32_t index = 0; index < inputs_.nodes.size(); ++index) {
    if (only.has_value() && *only != index) continue;
    SYNCLINE_RETURN_IF_ERROR(OpenTraces(index));
    SYNCLINE_RETURN_IF_ERROR(OpenProfiles(index));
  }
  return absl::OkStatus();
}

std::shared_ptr<const ClassChoice> OrderedEvents::WantedOf(TraceReader* reader) const {
  return std::make_shared<const ClassChoice>(reader, [this](const EventClass& event_class) {
    return inputs_.build.events.Matches(event_class.name);
  });
}

absl::Status OrderedEvents::OpenTraces(uint32_t index) {
  const timeline::NodeInput& node = inputs_.nodes[index];
  // A little more than is shown: the way back to the trace's clock is rounded.
  constexpr int64_t kSlackNs = 1000;
  const auto clock_ns = [&node](TimelineTime time, int64_t slack_ns) {
    const bool open = time.ns == kUnknownLo || time.ns == kUnknownHi;
    return open ? time.ns : node.placement->ClockNs(time) + slack_ns;
  };
  const int64_t begin_ns = clock_ns(shown_.begin, -kSlackNs);
  const int64_t end_ns = clock_ns(shown_.end, kSlackNs);
  for (TraceReader* reader : node.readers) {
    const auto wanted = WantedOf(reader);
    for (const StreamInfo& stream : reader->streams()) {
      SYNCLINE_ASSIGN_OR_RETURN(auto cursor, reader->Open(stream.index, begin_ns, end_ns));
      sources_.push_back({index, node.placement, &cursor->stream()});
      merger_.Add(KeepWanted(std::move(cursor), wanted), node.placement);
    }
  }
  return absl::OkStatus();
}

absl::Status OrderedEvents::OpenProfiles(uint32_t index) {
  const timeline::NodeInput& node = inputs_.nodes[index];
  if (node.profiles.empty()) return absl::OkStatus();
  ProfilePlacement* const placement = &profile_placements_.emplace_back(node.wall);
  for (const timeline::ProfileInput& profile : node.profiles) {
    if (profile.reader == nullptr) continue;
    const auto wanted = WantedOf(profile.reader);
    for (const StreamInfo& stream : profile.reader->streams()) {
      SYNCLINE_ASSIGN_OR_RETURN(auto cursor, profile.reader->Open(stream.index));
      sources_.push_back({index, placement, &cursor->stream()});
      cursor = std::make_unique<ProfileCursor>(std::move(cursor), node.wall, shown_, &undecided_);
      merger_.Add(KeepWanted(std::move(cursor), wanted), placement);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<const text::EventView*> OrderedEvents::Next() {
  for (;;) {
    SYNCLINE_ASSIGN_OR_RETURN(const timeline::StreamMerger::Head* head, merger_.Next());
    if (head == nullptr) return nullptr;
    if (!IsShown(head->time)) continue;
    source_ = head->source;
    cursor_ = head->cursor;
    const Source& source = sources_[source_];
    event_ = {
        head->time, inputs_.nodes[source.node].name, source.stream, head->record, head->packet, {}};
    return &event_;
  }
}

const text::EventView& OrderedEvents::Decoded() {
  if (!cursor_->Decode(*event_.record, &values_)) damaged_ = true;
  event_.values = values_;
  return event_;
}

bool OrderedEvents::IsComplete() const {
  if (damaged_ || undecided_ > 0) return false;
  for (uint32_t i = 0; i < merger_.size(); ++i) {
    if (!merger_.cursor(i)->losses().empty()) return false;
  }
  return true;
}

std::string UndecidedComplaint(uint64_t events) {
  if (events == 0) return "";
  return absl::StrCat(
      events,
      " events of TensorFlow's profiles are left out: the wall clock by which they are stamped "
      "was set, and where they lie cannot be decided");
}

}  // namespace syncline::merge

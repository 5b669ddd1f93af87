// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/ordered_events.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace syncline::merge {
namespace {

// All readers of a node, in the order of its events.
std::vector<TraceReader*> ReadersOf(const timeline::NodeInput& node) {
  std::vector<TraceReader*> readers = node.readers;
  for (const timeline::ProfileInput& profile : node.profiles) {
    if (profile.reader != nullptr) readers.push_back(profile.reader);
  }
  return readers;
}

size_t StreamsOf(const timeline::NodeInput& node) {
  size_t streams = 0;
  for (TraceReader* reader : ReadersOf(node)) streams += reader->streams().size();
  return streams;
}

}  // namespace

std::vector<StreamShare> ShareStreams(const OpenedInputs& inputs, size_t shares_max) {
  std::vector<uint64_t> weights;
  bool can_share = true;
  for (const timeline::NodeInput& node : inputs.nodes) {
    can_share = can_share && node.placement->Clone() != nullptr;
    for (TraceReader* reader : ReadersOf(node)) {
      for (const StreamInfo& stream : reader->streams()) weights.push_back(1 + stream.packets);
    }
  }
  const size_t count = std::clamp<size_t>(shares_max, 1, std::max<size_t>(weights.size(), 1));
  if (count == 1 || !can_share) return {StreamShare{}};
  uint64_t left = std::accumulate(weights.begin(), weights.end(), uint64_t{0});
  std::vector<StreamShare> shares;
  size_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    StreamShare share{next, next + 1};
    uint64_t weight = weights[next];
    // As much as its part of what is left, to the nearest stream, and one for each that follows.
    while (share.end + (count - i - 1) < weights.size() &&
           (weight + weights[share.end] / 2) * (count - i) <= left) {
      weight += weights[share.end++];
    }
    left -= weight;
    next = share.end;
    shares.push_back(share);
  }
  shares.back().end = weights.size();
  return shares;
}

absl::Status OrderedEvents::Open(std::optional<uint32_t> only) {
  for (uint32_t index = 0; index < inputs_.nodes.size(); ++index) {
    if (only.has_value() && *only != index) continue;
    const timeline::NodeInput& node = inputs_.nodes[index];
    SYNCLINE_RETURN_IF_ERROR(OpenTraces(index, node.placement));
    SYNCLINE_RETURN_IF_ERROR(OpenProfiles(index, node.wall));
  }
  return absl::OkStatus();
}

absl::Status OrderedEvents::OpenShare(StreamShare share) {
  share_ = share;
  for (uint32_t index = 0; index < inputs_.nodes.size(); ++index) {
    const timeline::NodeInput& node = inputs_.nodes[index];
    const size_t streams = StreamsOf(node);
    if (streams_met_ + streams <= share.begin || streams_met_ >= share.end) {
      streams_met_ += streams;
      continue;
    }
    placements_.push_back(node.placement->Clone());
    SYNCLINE_RETURN_IF_ERROR(OpenTraces(index, placements_.back().get()));
    if (node.wall == nullptr) continue;
    walls_.push_back(node.wall->Upon(placements_.back().get()));
    SYNCLINE_RETURN_IF_ERROR(OpenProfiles(index, &walls_.back()));
  }
  return absl::OkStatus();
}

std::shared_ptr<const ClassChoice> OrderedEvents::WantedOf(TraceReader* reader) const {
  return std::make_shared<const ClassChoice>(reader, [this](const EventClass& event_class) {
    return inputs_.build.events.Matches(event_class.name) ||
           (names_ != nullptr && names_->MayWant(event_class));
  });
}

absl::Status OrderedEvents::OpenTraces(uint32_t index, timeline::Placement* placement) {
  const timeline::NodeInput& node = inputs_.nodes[index];
  // A little more than is shown: the way back to the trace's clock is rounded.
  constexpr int64_t kSlackNs = 1000;
  const auto clock_ns = [placement](TimelineTime time, int64_t slack_ns) {
    const bool open = time.ns == kUnknownLo || time.ns == kUnknownHi;
    return open ? time.ns : placement->ClockNs(time) + slack_ns;
  };
  const int64_t begin_ns = clock_ns(shown_.begin, -kSlackNs);
  const int64_t end_ns = clock_ns(shown_.end, kSlackNs);
  for (size_t i = 0; i < node.readers.size(); ++i) {
    TraceReader* const reader = node.readers[i];
    const auto wanted = WantedOf(reader);
    const bool by_name = names_ != nullptr && names_->WantsAny();
    const text::IdTexts* const ids = names_ == nullptr ? nullptr : names_->TextsOf(index, i);
    for (const StreamInfo& stream : reader->streams()) {
      if (!TakesNextStream()) continue;
      SYNCLINE_ASSIGN_OR_RETURN(auto cursor, reader->Open(stream.index, begin_ns, end_ns));
      sources_.push_back({index, placement, &cursor->stream()});
      ids_.resize(sources_.size(), nullptr);
      ids_.back() = ids;
      merger_.Add(
          KeepWanted(std::move(cursor), wanted, by_name ? names_->LookOf(index, i) : EventLook()),
          placement);
    }
  }
  return absl::OkStatus();
}

absl::Status OrderedEvents::OpenProfiles(uint32_t index, timeline::WallPlacement* wall) {
  const timeline::NodeInput& node = inputs_.nodes[index];
  if (node.profiles.empty()) return absl::OkStatus();
  ProfilePlacement* const placement = &profile_placements_.emplace_back(wall);
  for (const timeline::ProfileInput& profile : node.profiles) {
    if (profile.reader == nullptr) continue;
    const auto wanted = WantedOf(profile.reader);
    for (const StreamInfo& stream : profile.reader->streams()) {
      if (!TakesNextStream()) continue;
      SYNCLINE_ASSIGN_OR_RETURN(auto cursor, profile.reader->Open(stream.index));
      sources_.push_back({index, placement, &cursor->stream()});
      // Of what is not wanted nothing is undecided.
      merger_.Add(std::make_unique<ProfileCursor>(KeepWanted(std::move(cursor), wanted), wall,
                                                  shown_, &undecided_),
                  placement);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<const text::EventView*> OrderedEvents::Next() {
  for (;;) {
    SYNCLINE_ASSIGN_OR_RETURN(const timeline::StreamMerger::Head* head, merger_.Next());
    if (head == nullptr) return nullptr;
    if (!shown_.Contains(head->time)) continue;
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
  event_.ids = source_ < ids_.size() ? ids_[source_] : nullptr;
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
  return absl::StrCat(events,
                      " events of profiles (TensorFlow's, Kineto's) are skipped: the wall clock of "
                      "their time stamps was set, and their times cannot be decided");
}

}  // namespace syncline::merge

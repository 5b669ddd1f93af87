// SPDX-License-Identifier: Apache-2.0
#include "analysis/against/sum_sink.h"

#include <algorithm>

#include "analysis/against/members.h"
#include "analysis/names.h"
#include "timeline/profile_lanes.h"

namespace syncline::analysis::against {
namespace {

using timeline::TrackKind;

constexpr std::string_view kKinetoOperators = "Kineto cpu_op";
constexpr std::string_view kDeviceCategories[] = {"kernel", "gpu_memcpy", "gpu_memset",
                                                  "device collective"};

bool IsOfDevice(std::string_view category) {
  return std::any_of(std::begin(kDeviceCategories), std::end(kDeviceCategories),
                     [&](std::string_view one) { return category.ends_with(one); });
}

}  // namespace

SumSink::SumSink(const Report& report, Recording* recording)
    : recording_(*recording), from_recording_(report.from_recording) {
  hints_.resize(report.nodes.size());
  for (uint32_t node = 0; node < report.nodes.size(); ++node) {
    for (const ProcessReport& process : report.nodes[node].processes) {
      const auto member = MemberOf(process, recording_);
      if (member.has_value()) members_[{node, process.name}] = *member;
    }
  }
}

void SumSink::OnText(timeline::TextId id, std::string_view text) {
  if (texts_.size() <= id) texts_.resize(id + 1);
  texts_[id] = text;
}

void SumSink::OnTrack(const timeline::Track& track) {
  if (tracks_.size() <= track.id) tracks_.resize(size_t{track.id} + 1);
  KnownTrack known;
  if (track.parent != timeline::kNoTrack && track.parent < tracks_.size()) {
    known.member = tracks_[track.parent].member;
  }
  if (track.kind == TrackKind::kProcess) {
    const auto found = members_.find({track.node, track.name});
    if (found != members_.end()) known.member = found->second;
  }
  known.kind = track.kind;
  known.node = track.node;
  known.overlapping = track.kind == TrackKind::kAsync &&
                      (track.name == "overlapped tasks" || track.name == "user events");
  if (hints_.size() <= track.node) hints_.resize(size_t{track.node} + 1);
  tracks_[track.id] = known;
}

std::optional<RowKind> SumSink::KindOf(const KnownTrack& track, timeline::TextId category) const {
  if (track.kind == TrackKind::kThread) return RowKind::kTask;
  if (track.overlapping) return RowKind::kRegion;
  if (track.kind != TrackKind::kLane) return std::nullopt;
  const std::string& text = texts_[category];
  if (IsOfDevice(text)) return RowKind::kDevice;
  if (text == timeline::kOperatorCategory || text == timeline::kJaxOperatorCategory ||
      text.starts_with(timeline::kTableCategory)) {
    return RowKind::kTask;
  }
  // A recording has the same operators as tasks.
  if (text == kKinetoOperators && !from_recording_) return RowKind::kTask;
  return std::nullopt;
}

SumSink::Adding* SumSink::AddingOf(RowKind kind, const timeline::Span& span) {
  const uint64_t key =
      (static_cast<uint64_t>(kind) << 60U) | (uint64_t{span.category} << 32U) | uint64_t{span.name};
  const auto [known, is_new] = known_.try_emplace(key, nullptr);
  if (!is_new) return known->second;
  // As the report has them: numbers in a task's name count up, in an operator's they are its name.
  const bool is_task = tracks_[span.track].kind != TrackKind::kLane;
  RowName name{kind, texts_[span.category],
               is_task ? NamePattern(texts_[span.name]) : texts_[span.name]};
  if (rows_.size() >= kNamesMax && !rows_.contains(name)) {
    recording_.names_left_out = true;
    return nullptr;
  }
  Adding& adding = rows_[std::move(name)];
  adding.sums.ns.resize(recording_.units.size());
  adding.sums.member_ns.resize(recording_.members.size());
  if (recording_.units.per == Per::kSecond) adding.calls.resize(recording_.units.size());
  known->second = &adding;
  return &adding;
}

void SumSink::OnSpanEnd(const timeline::Span& span) {
  const KnownTrack& track = tracks_[span.track];
  if (span.name == timeline::kNoText || span.clipped_begin || span.clipped_end || span.suspect) {
    return;
  }
  const std::optional<RowKind> kind = KindOf(track, span.category);
  if (!kind.has_value()) return;
  const std::optional<size_t> unit = recording_.units.At(span.begin, &hints_[track.node]);
  if (!unit.has_value()) return;
  Adding* const adding = AddingOf(*kind, span);
  if (adding == nullptr) return;
  Sums* const sums = &adding->sums;
  const int64_t ns = *kind == RowKind::kTask ? span.self_ns : span.end.ns - span.begin.ns;
  sums->ns[*unit] += ns;
  ++sums->calls;
  if (!adding->calls.empty()) ++adding->calls[*unit];
  if (track.member < sums->member_ns.size()) sums->member_ns[track.member] += ns;
}

absl::Status SumSink::Finish() {
  for (auto& [name, adding] : rows_) {
    Sums& sums = adding.sums;
    for (size_t unit = 0; unit < adding.calls.size(); ++unit) {
      if (adding.calls[unit] == 0) continue;
      sums.call_ns.push_back(sums.ns[unit] / int64_t{adding.calls[unit]});
    }
    for (int64_t& ns : sums.ns) ns = recording_.units.PerOne(ns);
    recording_.rows[name] = std::move(sums);
  }
  rows_.clear();
  known_.clear();
  return absl::OkStatus();
}

}  // namespace syncline::analysis::against

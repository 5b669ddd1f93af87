// SPDX-License-Identifier: Apache-2.0
#include "analysis/collectives.h"

#include <algorithm>
#include <map>
#include <utility>

#include "timeline/collective_kinds.h"

namespace syncline::analysis {
namespace {

using timeline::Collective;
using timeline::CollectiveMember;

struct Instants {
  NodeTime node;
  TimelineTime timeline;
};

struct Kind {
  uint64_t count = 0;
  std::vector<uint64_t> bytes;
  std::vector<LevelledDuration> spreads;
  std::vector<LevelledDuration> durations;
  LevelCounts order;
};

LevelledDuration Between(const Instants& a, const Instants& b, const Models& models) {
  if (models.Knows(a.node.clock, b.node.clock)) return Difference(models, a.node, b.node);
  return Unbounded(a.timeline, b.timeline);
}

Instants EntryOf(const CollectiveMember& member) { return {member.entered, member.entered_at}; }

void Add(const Collective& collective, uint32_t size, const Models& models, Kind* kind) {
  ++kind->count;
  if (collective.bytes.has_value()) kind->bytes.push_back(*collective.bytes);
  const auto& members = collective.members;
  if (members.size() < size) return;
  const auto [first, last] = std::minmax_element(
      members.begin(), members.end(), [](const CollectiveMember& a, const CollectiveMember& b) {
        return a.entered_at < b.entered_at;
      });
  kind->spreads.push_back(Between(EntryOf(*first), EntryOf(*last), models));
  if (members.size() > 1) kind->order.Add(LevelOfOrder(kind->spreads.back()));
  const CollectiveMember* end = nullptr;
  for (const CollectiveMember& member : members) {
    if (!member.left_at.has_value()) return;
    if (end == nullptr || *member.left_at > *end->left_at) end = &member;
  }
  kind->durations.push_back(Between(EntryOf(*first), {*end->left, *end->left_at}, models));
}

// Which ends of a collective's members may lie before another's entry, by the members' places on
// the timeline alone: cheap, and true of nearly none. (Difference() is never wider than these.)
class MayPrecede {
 public:
  MayPrecede(const Collective& collective, const Models& models) : models_(models) {
    for (const clocksync::ClockModel* model : {models.proven, models.likely}) {
      if (model == nullptr) continue;
      for (const CollectiveMember& member : collective.members) {
        latest_ns_ = std::max(latest_ns_, model->Locate(member.entered).hi.ns);
      }
    }
  }

  bool operator()(const NodeTime& left) const {
    return (models_.proven != nullptr && models_.proven->Locate(left).lo.ns < latest_ns_) ||
           (models_.likely != nullptr && models_.likely->Locate(left).lo.ns < latest_ns_);
  }

 private:
  const Models& models_;
  int64_t latest_ns_ = INT64_MIN;  // at which a member may have entered
};

// At which level a rank left before another entered.
Level ContradictionOf(const Collective& collective, const Models& models) {
  Level worst = Level::kUndecided;
  if (!timeline::EverybodyWaits(collective.name, collective.may_be_empty)) return worst;
  const MayPrecede may_precede(collective, models);
  for (const CollectiveMember& left : collective.members) {
    if (!left.left.has_value() || !may_precede(*left.left)) continue;
    for (const CollectiveMember& entered : collective.members) {
      // On one clock it is no matter of the model, but of which work is taken for whose.
      if (left.left->clock == entered.entered.clock) continue;
      const Instants exit{*left.left, *left.left_at};
      const LevelledDuration late = Between(exit, EntryOf(entered), models);
      const Level level = LevelOf(late, [](const DurationEstimate& interval) {
        return interval.bounded() && interval.lo_ns > 0;
      });
      if (level == Level::kProven) return level;
      if (level == Level::kLikely) worst = level;
    }
  }
  return worst;
}

}  // namespace

CollectiveReport SummariseCollectives(const timeline::Collectives& found, const Models& models) {
  CollectiveReport report;
  report.found = found;
  std::map<std::pair<uint32_t, std::string>, Kind> kinds;
  for (const Collective& collective : found.collectives) {
    Add(collective, found.groups[collective.group].size, models,
        &kinds[{collective.group, collective.name}]);
    const Level contradiction = ContradictionOf(collective, models);
    report.contradictions += contradiction == Level::kProven ? 1 : 0;
    report.likely_contradictions += contradiction == Level::kLikely ? 1 : 0;
  }
  for (auto& [key, kind] : kinds) {
    CollectiveKindReport row;
    row.group = key.first;
    row.name = key.second;
    row.count = kind.count;
    row.whole = kind.spreads.size();
    row.order = kind.order;
    if (kind.bytes.size() == kind.count) {
      row.bytes = Median(std::move(kind.bytes));
    }
    row.spread = Median(std::move(kind.spreads), ByEstimate());
    row.duration = Median(std::move(kind.durations), ByEstimate());
    report.kinds.push_back(std::move(row));
  }
  return report;
}

}  // namespace syncline::analysis

// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/collective_pairs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/text.h"
#include "coordinator/merge/tightest_pairs.h"
#include "timeline/collective_kinds.h"

namespace syncline::merge {
namespace {

using timeline::Collective;
using timeline::CollectiveGroup;
using timeline::CollectiveMember;

// Numbers of ranks are off by transfers that were under way when they began to be counted: a guess
// at how many there may be.
constexpr int64_t kShiftMax = 8;

// "0-3,8": the rank'th of these; nullopt where that is not known.
std::optional<int64_t> GlobalRank(const CollectiveGroup& group, int64_t rank) {
  for (const absl::string_view part : absl::StrSplit(AbslView(group.ranks), ',')) {
    const std::pair<std::string, std::string> ends = absl::StrSplit(part, '-');
    int64_t first = 0, last = 0;
    if (!absl::SimpleAtoi(ends.first, &first)) return std::nullopt;
    last = first;
    if (!ends.second.empty() && !absl::SimpleAtoi(ends.second, &last)) return std::nullopt;
    if (last < first) return std::nullopt;
    if (rank <= last - first) return first + rank;
    rank -= last - first + 1;
  }
  return std::nullopt;
}

using ProcessName = std::tuple<std::string, std::string, int64_t>;  // job, incarnation, rank

std::optional<ProcessName> ProcessOf(const CollectiveGroup& group, const CollectiveMember& member) {
  const std::optional<int64_t> rank = GlobalRank(group, member.rank);
  if (!rank.has_value()) return std::nullopt;
  return ProcessName{group.job, group.incarnation, *rank};
}

bool Waits(const Collective& collective) {
  return timeline::EverybodyWaits(collective.name, collective.may_be_empty);
}

// When each process was in a collective, to find those that were in one only.
class Busy {
 public:
  explicit Busy(const timeline::Collectives& found) {
    for (const Collective& collective : found.collectives) {
      for (const CollectiveMember& member : collective.members) {
        const auto process = ProcessOf(found.groups[collective.group], member);
        if (!process.has_value()) continue;
        const int64_t left = member.left.has_value() ? member.left->ns : kUnknownHi;
        times_[*process].push_back({member.entered.ns, left});
      }
    }
    for (auto& [process, times] : times_) {
      std::sort(times.begin(), times.end());
      int64_t last_left = kUnknownLo;
      for (const Time& time : times) {
        last_left_[process].push_back(last_left);
        last_left = std::max(last_left, time.second);
      }
    }
  }

  // Whether its process was in no other collective meanwhile, so that its end is its own.
  bool Alone(const CollectiveGroup& group, const CollectiveMember& member) const {
    const auto process = ProcessOf(group, member);
    if (!process.has_value() || !member.left.has_value()) return false;
    const std::vector<Time>& times = times_.at(*process);
    const Time mine{member.entered.ns, member.left->ns};
    const auto at = std::lower_bound(times.begin(), times.end(), mine);
    const auto index = static_cast<size_t>(at - times.begin());
    const bool next_waits = index + 1 == times.size() || times[index + 1].first > mine.second;
    return next_waits && last_left_.at(*process)[index] < mine.first;
  }

 private:
  using Time = std::pair<int64_t, int64_t>;
  std::map<ProcessName, std::vector<Time>> times_;         // by entry
  std::map<ProcessName, std::vector<int64_t>> last_left_;  // beside them: of all before
};

struct Part {
  const Collective* collective = nullptr;
  const CollectiveMember* member = nullptr;
};
using Numbered = std::map<int64_t, Part>;  // a rank's parts, by number

bool LeftBefore(const CollectiveMember& a, const CollectiveMember& b,
                const clocksync::ClockModel& model) {
  if (!a.left.has_value()) return false;
  if (!model.Knows(a.left->clock) || !model.Knows(b.entered.clock)) return false;
  const DurationEstimate later = model.Difference(*a.left, b.entered);
  return later.bounded() && later.lo_ns > 0;
}

// Whether one rank's collectives may be the other's with numbers larger by `shift`, as far as the
// model knows. What shares no number may be.
bool MayBe(const Numbered& one, const Numbered& other, int64_t shift,
           const clocksync::ClockModel& model) {
  for (const auto& [number, here] : one) {
    const auto there = other.find(number + shift);
    if (there == other.end()) continue;
    if (here.collective->name != there->second.collective->name) return false;
    if (!Waits(*here.collective) || !Waits(*there->second.collective)) continue;
    const CollectiveMember& a = *here.member;
    const CollectiveMember& b = *there->second.member;
    if (LeftBefore(a, b, model) || LeftBefore(b, a, model)) return false;
  }
  return true;
}

// The ranks of a group whose numbers are certain, by the group's first rank.
std::map<int32_t, bool> CertainRanks(const timeline::Collectives& found, uint32_t group,
                                     const clocksync::ClockModel& model) {
  std::map<int32_t, Numbered> ranks;
  for (const Collective& collective : found.collectives) {
    if (collective.group != group) continue;
    for (const CollectiveMember& member : collective.members) {
      ranks[member.rank][static_cast<int64_t>(collective.number)] = {&collective, &member};
    }
  }
  std::map<int32_t, bool> certain;
  for (const auto& [rank, parts] : ranks) {
    const Numbered& first = ranks.begin()->second;
    bool only = true;
    if (rank != ranks.begin()->first) {
      for (int64_t shift = -kShiftMax; only && shift <= kShiftMax; ++shift) {
        only = MayBe(first, parts, shift, model) == (shift == 0);
      }
    }
    certain[rank] = only;
  }
  return certain;
}

// Everybody entered before anybody left. Of all those pairs the tightest are with the last that
// entered (by estimate: which one is taken changes nothing that is true) and the first that left.
void Offer(const std::vector<const CollectiveMember*>& entered,
           const std::vector<const CollectiveMember*>& left, TightestPairs* pairs) {
  if (entered.empty() || left.empty()) return;
  const CollectiveMember& last = **std::max_element(
      entered.begin(), entered.end(),
      [](const auto* a, const auto* b) { return a->entered_at < b->entered_at; });
  const CollectiveMember& first =
      **std::min_element(left.begin(), left.end(),
                         [](const auto* a, const auto* b) { return *a->left_at < *b->left_at; });
  for (const CollectiveMember* member : left) {
    if (member->node != last.node) pairs->Offer({last.entered, *member->left});
  }
  for (const CollectiveMember* member : entered) {
    if (member->node != first.node) pairs->Offer({member->entered, *first.left});
  }
}

}  // namespace

std::vector<CausalPair> CollectivePairs(const timeline::Collectives& found,
                                        const clocksync::ClockModel& model) {
  if (!found.undecided.empty()) return {};
  const Busy busy(found);
  std::map<uint32_t, std::map<int32_t, bool>> certain;  // by group
  TightestPairs pairs;
  for (const Collective& collective : found.collectives) {
    if (!Waits(collective)) continue;
    const CollectiveGroup& group = found.groups[collective.group];
    const auto [ranks, is_new] = certain.try_emplace(collective.group);
    if (is_new) ranks->second = CertainRanks(found, collective.group, model);
    std::vector<const CollectiveMember*> entered, left;
    for (const CollectiveMember& member : collective.members) {
      if (!ranks->second.at(member.rank)) continue;
      entered.push_back(&member);
      if (busy.Alone(group, member)) left.push_back(&member);
    }
    Offer(entered, left, &pairs);
  }
  return pairs.Take();
}

}  // namespace syncline::merge

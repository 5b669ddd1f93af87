// SPDX-License-Identifier: Apache-2.0
// Collectives across ranks: whose numbers are off by how much, and which lives of a group are one.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>
#include <tuple>

#include "timeline/collective_kinds.h"
#include "timeline/collectives.h"

namespace syncline::timeline {
namespace {

// How far ranks' numbers are searched for, around none and around where ranks meet in time: a guess
// at how far one lags behind.
constexpr int64_t kShiftMax = 64;
// Between the entries of ranks that belong together: a guess.
constexpr int64_t kGapMaxNs = 100'000'000;
// Ranks that name different ones.
constexpr int32_t kNoRoot = -1;

}  // namespace

bool CollectiveMatcher::IsBefore(const Place& a, const Place& b) {
  return a.timeline.ns + a.bound_ns < b.timeline.ns - b.bound_ns;
}

bool CollectiveMatcher::Fits(const Rank& first, const Rank& other, int64_t shift, bool by_size) {
  bool any = false;
  const auto before = [](const Launch& a, const Launch& b) {  // a had surely left before b entered
    return a.left.has_value() && IsBefore(*a.left, b.entered) &&
           std::all_of(a.exchangeable.begin(), a.exchangeable.end(),
                       [&](const Launch* other) { return IsBefore(*other->left, b.entered); });
  };
  const auto differ = [](const Launch& a, const Launch& b) {
    return a.bytes && b.bytes && *a.bytes != *b.bytes && IsOfOneSize(a.name);
  };
  for (const auto& [number, launch] : first.launches) {
    const auto found =
        other.launches.find(static_cast<uint64_t>(static_cast<int64_t>(number) + shift));
    if (found == other.launches.end()) continue;
    const Launch& there = *found->second;
    if (launch->name != there.name || (by_size && differ(*launch, there))) return false;
    if ((before(*launch, there) || before(there, *launch)) &&
        EverybodyWaits(launch->name, launch->may_be_empty || there.may_be_empty)) {
      return false;
    }
    any = true;
  }
  return any;
}

// By how much numbers differ in the middle of the time that both were there; nullopt: in none.
std::optional<int64_t> CollectiveMatcher::MeetingShift(const Rank& first, const Rank& other) {
  const TimelineTime begin = std::max(first.begin, other.begin);
  const TimelineTime end = std::min(first.end, other.end);
  if (begin > end) return std::nullopt;
  const int64_t middle_ns = begin.ns + (end.ns - begin.ns) / 2;
  const auto nearest = [middle_ns](const Rank& rank) {
    const auto distance = [&](const auto& entry) {
      return std::abs(entry.second->entered.timeline.ns - middle_ns);
    };
    return std::min_element(rank.launches.begin(), rank.launches.end(),
                            [&](const auto& a, const auto& b) { return distance(a) < distance(b); })
        ->first;
  };
  return static_cast<int64_t>(nearest(other)) - static_cast<int64_t>(nearest(first));
}

// Whether it is a matter of at least half of the launches.
bool CollectiveMatcher::IsOfMost(const Rank& first, const Rank& other, int64_t shift) {
  const auto common =
      std::count_if(first.launches.begin(), first.launches.end(), [&](const auto& entry) {
        return other.launches.contains(
            static_cast<uint64_t>(static_cast<int64_t>(entry.first) + shift));
      });
  return 2 * static_cast<size_t>(common) >= std::min(first.launches.size(), other.launches.size());
}

std::optional<int64_t> CollectiveMatcher::ShiftOf(const Rank& first, const Rank& other) {
  std::set<int64_t> shifts;
  for (const int64_t centre : {int64_t{0}, MeetingShift(first, other).value_or(0)}) {
    for (int64_t off = -kShiftMax; off <= kShiftMax; ++off) shifts.insert(centre + off);
  }
  // No number is negative.
  shifts.erase(shifts.upper_bound(static_cast<int64_t>(other.launches.begin()->first)),
               shifts.end());
  const auto only = [&](bool by_size) {
    std::optional<int64_t> found;
    for (const int64_t shift : shifts) {
      if (!Fits(first, other, shift, by_size)) continue;
      if (found.has_value()) return std::optional<int64_t>();
      found = shift;
    }
    return found;
  };
  if (Fits(first, other, 0, /*by_size=*/true)) return 0;
  const bool believed = Fits(first, other, 0, /*by_size=*/false);
  const std::optional<int64_t> by_size = only(true);
  if (by_size.has_value() && (!believed || IsOfMost(first, other, *by_size))) return by_size;
  return believed ? 0 : only(false);
}

// The ends of those that, with their own, would leave before another rank has entered, and do not
// with one of a work beside theirs.
CollectiveMatcher::Exits CollectiveMatcher::ExchangedExits(const Numbered& ranks) {
  std::map<int64_t, Place> last_in;  // by number
  for (const auto& [rank, shift] : ranks) {
    for (const auto& [number, launch] : rank->launches) {
      if (!EverybodyWaits(launch->name, launch->may_be_empty)) continue;
      const int64_t as_first = static_cast<int64_t>(number) - shift;
      Place& last = last_in.try_emplace(as_first, launch->entered).first->second;
      const auto sure = [](const Place& at) { return at.timeline.ns - at.bound_ns; };
      if (sure(last) < sure(launch->entered)) last = launch->entered;
    }
  }
  Exits exits;
  for (const auto& [rank, shift] : ranks) {
    const auto can_leave = [&, off = shift](const Launch& launch, const Place& at) {
      const auto last = last_in.find(static_cast<int64_t>(*launch.sequence) - off);
      return last == last_in.end() || !IsBefore(at, last->second);
    };
    for (const auto& [number, launch] : rank->launches) {
      if (launch->exchangeable.empty() || exits.contains(launch) ||
          can_leave(*launch, *launch->left)) {
        continue;
      }
      for (const Launch* other : launch->exchangeable) {
        if (!other->sequence || exits.contains(other) || !can_leave(*launch, *other->left) ||
            !can_leave(*other, *launch->left)) {
          continue;
        }
        exits.emplace(launch, *other->left);
        exits.emplace(other, *launch->left);
        break;
      }
    }
  }
  return exits;
}

std::optional<int32_t> CollectiveMatcher::RootOf(const Process& process, const Launch& launch) {
  if (!launch.root.has_value() || launch.root->group != process.groups[*launch.group].facts.name) {
    return std::nullopt;
  }
  return launch.root->rank;
}

void CollectiveMatcher::Join(std::vector<Rank> ranks, uint32_t group, Collectives* result) {
  std::sort(ranks.begin(), ranks.end(),
            [](const Rank& a, const Rank& b) { return a.rank < b.rank; });
  Numbered numbered;
  for (const Rank& rank : ranks) {
    const std::optional<int64_t> shift = ShiftOf(ranks.front(), rank);
    if (shift.has_value()) {
      numbered.emplace_back(&rank, *shift);
    } else {
      rank.AddTo(&result->undecided);
    }
  }
  const Exits exchanged = ExchangedExits(numbered);
  std::map<uint64_t, Collective> by_number;
  for (const auto& [rank, shift] : numbered) {
    for (const auto& [number, launch] : rank->launches) {
      const auto as_first = static_cast<uint64_t>(static_cast<int64_t>(number) - shift);
      Collective& collective = by_number[as_first];
      collective.group = group;
      collective.number = as_first;
      collective.name = launch->name;
      if (launch->bytes.has_value()) collective.bytes = launch->bytes;
      collective.may_be_empty |= launch->may_be_empty;
      if (const std::optional<int32_t> root = RootOf(*rank->process, *launch); root.has_value()) {
        collective.root = collective.root.value_or(*root) == *root ? *root : kNoRoot;
      }
      CollectiveMember member;
      member.node = rank->process->node;
      member.rank = rank->rank;
      member.entered = launch->entered.node;
      member.entered_at = launch->entered.timeline;
      const auto other = exchanged.find(launch);
      const std::optional<Place> left = other == exchanged.end() ? launch->left : other->second;
      if (left.has_value()) {
        member.left = left->node;
        member.left_at = left->timeline;
      }
      collective.members.push_back(member);
    }
  }
  for (auto& [number, collective] : by_number) {
    if (collective.root == kNoRoot) collective.root.reset();
    result->collectives.push_back(std::move(collective));
  }
}

// The group's launches in this process; those that cannot be told apart are undecided.
CollectiveMatcher::Rank CollectiveMatcher::RankOf(const Process& process, size_t group,
                                                  Collectives* result) {
  Rank rank{&process, process.groups[group].rank, {}, {kUnknownHi}, {kUnknownLo}, {kUnknownLo}};
  const Launch* last = nullptr;
  for (const Launch& launch : process.launches) {
    if (launch.group != group || launch.refused) continue;
    if (!launch.sequence || !rank.launches.emplace(*launch.sequence, &launch).second) {
      result->undecided.push_back(launch.entered.timeline);
      continue;
    }
    rank.begin = std::min(rank.begin, launch.entered.timeline);
    rank.end = std::max(rank.end, launch.left.value_or(launch.entered).timeline);
    last = &launch;
  }
  rank.open_until = rank.end;
  if (last == nullptr || last->left.has_value()) return rank;
  TimelineTime until = process.until;
  for (const Launch& launch : process.launches) {
    const bool next_life =
        launch.group.has_value() && *launch.group > group &&
        process.groups[*launch.group].facts.name == process.groups[group].facts.name;
    if (next_life) until = std::min(until, launch.entered.timeline);
  }
  rank.open_until = std::max(rank.open_until, until);
  return rank;
}

bool CollectiveMatcher::Shares(const Life& life, int32_t rank) {
  return std::any_of(life.begin(), life.end(),
                     [rank](const Rank& other) { return other.rank == rank; });
}

// Sorts ranks of one name into the group's lives.
std::vector<CollectiveMatcher::Life> CollectiveMatcher::LivesOf(std::vector<Rank> ranks,
                                                                Collectives* result) {
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const Rank& a, const Rank& b) { return a.begin < b.begin; });
  std::vector<Life> lives;
  for (Rank& rank : ranks) {
    std::vector<size_t> fitting, meeting;
    for (size_t i = 0; i < lives.size(); ++i) {
      const bool meets = std::any_of(lives[i].begin(), lives[i].end(), [&](const Rank& other) {
        return other.Meets(rank) || other.Awaits(rank);
      });
      if (!meets || Shares(lives[i], rank.rank)) continue;
      meeting.push_back(i);
      if (ShiftOf(lives[i].front(), rank)) fitting.push_back(i);
    }
    if (fitting.size() > 1) {  // two jobs that look alike
      rank.AddTo(&result->undecided);
      continue;
    }
    const std::vector<size_t>& likely = fitting.empty() ? meeting : fitting;
    Life& life = likely.empty() ? lives.emplace_back() : lives[likely.front()];
    life.push_back(std::move(rank));
  }
  // A collective or two may be over on one rank before another enters, where no work says when.
  for (size_t i = 1; i < lives.size(); ++i) {
    Life& earlier = lives[i - 1];
    const bool apart = std::none_of(lives[i].begin(), lives[i].end(),
                                    [&](const Rank& rank) { return Shares(earlier, rank.rank); });
    const int64_t gap_ns = lives[i].front().begin.ns - earlier.front().end.ns;
    if (!apart || gap_ns > kGapMaxNs || ShiftOf(earlier.front(), lives[i].front()) != 0) continue;
    std::move(lives[i].begin(), lives[i].end(), std::back_inserter(earlier));
    lives.erase(lives.begin() + static_cast<ptrdiff_t>(i--));
  }
  return lives;
}

Collectives CollectiveMatcher::Match() {
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  std::map<Key, std::pair<CollectiveGroup, std::vector<Rank>>> groups;
  Collectives result;
  for (Process& process : processes_) {
    if (process.groups.empty()) continue;  // nothing says that it has any
    AttributeLaunches(&process);
    GiveWorks(&process);
    for (const Launch& launch : process.launches) {
      if (!launch.group.has_value()) result.undecided.push_back(launch.entered.timeline);
    }
    for (size_t g = 0; g < process.groups.size(); ++g) {
      Number(&process, g);
      const CollectiveGroup& facts = process.groups[g].facts;
      if (facts.size == 0) {  // only called, never announced
        for (const Launch& launch : process.launches) {
          if (launch.group != g || launch.refused) continue;
          result.undecided.push_back(launch.entered.timeline);
        }
        continue;
      }
      auto& [common, ranks] = groups[{facts.job, facts.incarnation, facts.name, facts.ranks}];
      common = facts;
      Rank rank = RankOf(process, g, &result);
      if (!rank.launches.empty()) ranks.push_back(std::move(rank));
    }
  }
  for (auto& [key, group] : groups) {
    size_t number = 0;
    for (Life& life : LivesOf(std::move(group.second), &result)) {
      CollectiveGroup facts = group.first;
      if (++number > 1) {
        if (facts.description.empty()) facts.description = "group " + facts.name;
        facts.description += " (" + std::to_string(number) + ")";
      }
      result.groups.push_back(std::move(facts));
      Join(std::move(life), static_cast<uint32_t>(result.groups.size() - 1), &result);
    }
  }
  return result;
}

void KeepEndedIn(const Interval& cut, Collectives* found) {
  const auto ended = [](const Collective& collective) {
    TimelineTime end{kUnknownLo};
    for (const CollectiveMember& member : collective.members) {
      end = std::max(end, member.left_at.value_or(member.entered_at));
    }
    return end;
  };
  std::erase_if(found->collectives,
                [&](const Collective& collective) { return !cut.Contains(ended(collective)); });
  std::erase_if(found->undecided, [&](TimelineTime entered) { return !cut.Contains(entered); });
}

void KeepEnteredBefore(TimelineTime end, Collectives* found) {
  const auto is_late = [end](const CollectiveMember& member) { return member.entered_at >= end; };
  std::erase_if(found->collectives, [&](const Collective& collective) {
    return std::all_of(collective.members.begin(), collective.members.end(), is_late);
  });
  std::erase_if(found->undecided, [end](TimelineTime entered) { return entered >= end; });
}

}  // namespace syncline::timeline

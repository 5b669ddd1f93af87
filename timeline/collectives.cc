#include "timeline/collectives.h"

#include <algorithm>
#include <tuple>

namespace syncline::timeline {
namespace {

// How far ranks' numbers are searched for: a guess at transfers that were under way.
constexpr int64_t kShiftMax = 64;
// How far back a group's number may lie behind what another thread has said before: a guess.
constexpr uint64_t kThreadsApartMax = 64;

struct Kind {
  std::string_view launch;
  std::string_view work;  // Gloo's name; empty: not known
};
constexpr Kind kKinds[] = {
    {"allreduce", "all_reduce"},
    {"allreduce_coalesced", "all_reduce"},
    {"broadcast", "broadcast"},
    {"allgather", "all_gather"},
    {"allgather_base", "all_gather"},
    {"allgather_coalesced", "all_gather"},
    {"allgather_into_tensor_coalesced", "all_gather"},
    {"all_gather_single", "all_gather"},
    {"reduce", "reduce"},
    {"reduce_scatter", ""},
    {"reduce_scatter_base", ""},
    {"reduce_scatter_tensor_coalesced", ""},
    {"reduce_scatter_single", ""},
    {"gather", "gather"},
    {"scatter", "scatter"},
    {"alltoall", "all_to_all"},
    {"alltoall_base", "all_to_all"},
    {"barrier", "barrier"},
};

std::string_view WorkOf(std::string_view launch) {
  for (const Kind& kind : kKinds) {
    if (kind.launch == launch) return kind.work;
  }
  return {};
}

std::string_view WithoutUnderscores(std::string_view name) {
  while (!name.empty() && name.front() == '_') name.remove_prefix(1);
  while (!name.empty() && name.back() == '_') name.remove_suffix(1);
  return name;
}

}  // namespace

std::string_view CollectiveOfLaunch(std::string_view task) {
  constexpr std::string_view kPrefix = "c10d::";
  if (!task.starts_with(kPrefix)) return {};
  const std::string_view name = WithoutUnderscores(task.substr(kPrefix.size()));
  for (const Kind& kind : kKinds) {
    if (kind.launch == name) return kind.launch;
  }
  return {};
}

std::string_view CollectiveOfWork(std::string_view task) {
  constexpr std::string_view kPrefix = "gloo:";
  if (!task.starts_with(kPrefix)) return {};
  for (const Kind& kind : kKinds) {
    if (!kind.work.empty() && kind.work == task.substr(kPrefix.size())) return kind.work;
  }
  return {};
}

uint32_t CollectiveMatcher::AddProcess(uint32_t node) {
  processes_.emplace_back().node = node;
  return static_cast<uint32_t>(processes_.size() - 1);
}

CollectiveMatcher::Group* CollectiveMatcher::FindGroup(Process* process, std::string_view name) {
  const auto found = std::find_if(process->groups.rbegin(), process->groups.rend(),
                                  [&](const Group& group) { return group.facts.name == name; });
  return found == process->groups.rend() ? nullptr : &*found;
}

// Numbers only go up; threads may say theirs a little later than they have read them.
bool CollectiveMatcher::LivesAnew(const Group& group, uint32_t thread, uint64_t sequence) {
  const auto said = group.numbers.find(thread);
  if (said != group.numbers.end() && sequence < said->second) return true;
  return group.highest > kThreadsApartMax && sequence < group.highest - kThreadsApartMax;
}

// Of the launches since it was last heard of, the last `sequence` are the new life's.
CollectiveMatcher::Group* CollectiveMatcher::Revive(Process* process, const Group& before,
                                                    uint64_t sequence) {
  const std::vector<Launch>& launches = process->launches;
  size_t begin = launches.size();
  const size_t heard = std::max(before.snapshots.back().position, process->eras.back());
  for (; sequence > 0 && begin > heard && !launches[begin - 1].sequence; --sequence) --begin;
  process->eras.push_back(begin);
  Group group;
  group.facts = before.facts;
  group.rank = before.rank;
  return &process->groups.emplace_back(std::move(group));
}

void CollectiveMatcher::Announce(Process* process, Group* group, uint32_t thread,
                                 uint64_t sequence) {
  group->snapshots.push_back(
      {process->launches.size(), group->transfers.size(), sequence, process->eras.size() - 1});
  group->highest = std::max(group->highest, sequence);
  group->numbers[thread] = sequence;
}

void CollectiveMatcher::OnGroup(uint32_t process, uint32_t thread, GroupState state) {
  Process& at = processes_[process];
  Group* group = FindGroup(&at, state.group.name);
  if (group == nullptr) {
    group = &at.groups.emplace_back();
  } else if (LivesAnew(*group, thread, state.sequence) ||
             (group->facts.size > 0 && group->facts.ranks != state.group.ranks)) {
    group = Revive(&at, *group, state.sequence);
  }
  group->facts = std::move(state.group);
  group->rank = state.rank;
  Announce(&at, group, thread, state.sequence);
}

void CollectiveMatcher::OnCall(uint32_t process, uint32_t thread, std::string_view group,
                               std::string_view name, uint64_t sequence, uint64_t bytes,
                               const Place& place) {
  Process& at = processes_[process];
  Launch launch;
  launch.name = name;
  launch.entered = place;
  if (bytes > 0) launch.bytes = bytes;
  launch.may_be_empty = bytes == 0;
  launch.sequence = sequence;
  Group* found = FindGroup(&at, group);
  if (found == nullptr) {
    found = &at.groups.emplace_back();
    found->facts.name = group;
  } else if (LivesAnew(*found, thread, sequence)) {
    found = Revive(&at, *found, sequence);
  }
  launch.group = static_cast<size_t>(found - at.groups.data());
  Announce(&at, found, thread, sequence);
  at.called[thread] = at.launches.size();
  at.launches.push_back(std::move(launch));
}

void CollectiveMatcher::OnTransfer(uint32_t process, std::string_view group) {
  Process& at = processes_[process];
  if (Group* found = FindGroup(&at, group)) found->transfers.push_back(at.launches.size());
}

void CollectiveMatcher::OnOperators(uint32_t process, uint32_t thread) {
  processes_[process].called.erase(thread);
}

void CollectiveMatcher::OnLaunch(uint32_t process, uint32_t thread, std::string_view name,
                                 const Place& place) {
  Process& at = processes_[process];
  const auto called = at.called.find(thread);
  if (called != at.called.end()) {
    Launch& launch = at.launches[called->second];
    launch.name = name;
    launch.entered = place;
    at.called.erase(called);
    return;
  }
  Launch launch;
  launch.name = name;
  launch.entered = place;
  at.launches.push_back(std::move(launch));
}

void CollectiveMatcher::OnWorkBegin(uint32_t process, uint32_t thread, std::string_view name) {
  Process& at = processes_[process];
  at.works.erase(thread);
  size_t& next = at.oldest[std::string(name)];
  for (; next < at.launches.size(); ++next) {
    Launch& launch = at.launches[next];
    if (launch.worked_at || WorkOf(launch.name) != name) continue;
    launch.worked_at = true;
    at.works[thread] = next++;
    return;
  }
}

void CollectiveMatcher::OnWorkEnd(uint32_t process, uint32_t thread, const Place& place) {
  Process& at = processes_[process];
  const auto work = at.works.find(thread);
  if (work == at.works.end()) return;
  at.launches[work->second].left = place;
  at.works.erase(work);
}

// Gives the launches without a call to the group whose number grew by as many.
void CollectiveMatcher::AttributeLaunches(Process* process, size_t era) {
  std::vector<Launch>& launches = process->launches;
  const size_t era_begin = process->eras[era];
  const bool is_last = era + 1 == process->eras.size();
  const size_t era_end = is_last ? launches.size() : process->eras[era + 1];
  const auto announced = [era](const Group& group) {
    return std::any_of(group.snapshots.begin(), group.snapshots.end(),
                       [era](const Snapshot& snapshot) { return snapshot.era == era; });
  };
  std::vector<size_t> groups;  // that live then
  for (size_t g = 0; g < process->groups.size(); ++g) {
    if (announced(process->groups[g])) groups.push_back(g);
  }
  if (groups.empty()) return;
  // Where all groups were announced at once.
  std::vector<std::vector<Snapshot>> rows;
  for (const Snapshot& first : process->groups[groups[0]].snapshots) {
    if (first.era != era) continue;
    std::vector<Snapshot> row = {first};
    for (size_t g = 1; g < groups.size(); ++g) {
      const std::vector<Snapshot>& snapshots = process->groups[groups[g]].snapshots;
      const auto found = std::find_if(snapshots.begin(), snapshots.end(), [&](const Snapshot& s) {
        return s.position == first.position && s.era == era;
      });
      if (found != snapshots.end()) row.push_back(*found);
    }
    if (row.size() == groups.size()) rows.push_back(std::move(row));
  }
  std::optional<size_t> usual;  // the one group that PyTorch itself uses
  bool several = false;
  const auto give = [&](size_t begin, size_t end, size_t group) {
    for (size_t i = begin; i < end; ++i) {
      if (!launches[i].sequence.has_value() && !launches[i].group.has_value()) {
        launches[i].group = groups[group];
      }
    }
  };
  if (groups.size() == 1) give(era_begin, era_end, 0);
  for (size_t r = 1; r < rows.size() && groups.size() > 1; ++r) {
    const size_t begin = rows[r - 1][0].position;
    const size_t end = rows[r][0].position;
    uint64_t without = 0;
    std::vector<uint64_t> with(groups.size(), 0);
    for (size_t i = begin; i < end; ++i) {
      if (!launches[i].sequence.has_value()) ++without;
      if (!launches[i].sequence.has_value() || !launches[i].group) continue;
      const auto place = std::find(groups.begin(), groups.end(), *launches[i].group);
      if (place != groups.end()) ++with[static_cast<size_t>(place - groups.begin())];
    }
    if (without == 0) continue;
    std::vector<size_t> grown;
    for (size_t g = 0; g < groups.size(); ++g) {
      const uint64_t transfers = rows[r][g].transfers - rows[r - 1][g].transfers;
      const uint64_t known = with[g] + transfers;
      if (rows[r][g].sequence - rows[r - 1][g].sequence > known) grown.push_back(g);
    }
    if (grown.size() != 1) {
      several = several || grown.size() > 1;
      continue;
    }
    if (usual.has_value() && *usual != grown[0]) several = true;
    usual = grown[0];
    give(begin, end, grown[0]);
  }
  if (!usual.has_value() || several || rows.empty()) return;
  give(era_begin, rows.front()[0].position, *usual);
  give(rows.back()[0].position, era_end, *usual);
}

// Counts on from the announcements; where they disagree (events were lost), from the later one.
void CollectiveMatcher::Number(Process* process, size_t index) {
  Group& group = process->groups[index];
  std::vector<size_t> mine;
  for (size_t i = 0; i < process->launches.size(); ++i) {
    if (process->launches[i].group == index) mine.push_back(i);
  }
  // Two ranks share all transfers of their group; of more ranks each has its own.
  const bool counts_transfers = group.facts.size <= 2;
  for (size_t s = 0; s < group.snapshots.size(); ++s) {
    const Snapshot& snapshot = group.snapshots[s];
    const uint64_t base = snapshot.sequence - (counts_transfers ? 0 : snapshot.transfers);
    uint64_t number = base;
    size_t transfer = snapshot.transfers;
    const auto from = std::lower_bound(mine.begin(), mine.end(), snapshot.position);
    const bool last = s + 1 == group.snapshots.size();
    const size_t until = last ? process->launches.size() : group.snapshots[s + 1].position;
    for (auto it = from; it != mine.end() && *it < until; ++it) {
      for (; transfer < group.transfers.size() && group.transfers[transfer] <= *it; ++transfer) {
        if (counts_transfers) ++number;
      }
      process->launches[*it].sequence = number++;
    }
    if (s != 0) continue;
    number = base;
    for (auto it = from; it != mine.begin() && number > 0;) {
      process->launches[*--it].sequence = --number;
    }
  }
}

bool CollectiveMatcher::Fits(const Rank& first, const Rank& other, int64_t shift) {
  bool any = false;
  const auto before = [](const Launch& a, const Launch& b) {  // a had left before b entered
    return a.left.has_value() &&
           a.left->timeline.ns + a.left->bound_ns < b.entered.timeline.ns - b.entered.bound_ns;
  };
  for (const auto& [number, launch] : first.launches) {
    const auto found =
        other.launches.find(static_cast<uint64_t>(static_cast<int64_t>(number) + shift));
    if (found == other.launches.end()) continue;
    const Launch& there = *found->second;
    if (launch->name != there.name || before(*launch, there) || before(there, *launch)) {
      return false;
    }
    any = true;
  }
  return any;
}

std::optional<int64_t> CollectiveMatcher::ShiftOf(const Rank& first, const Rank& other) {
  if (Fits(first, other, 0)) return 0;
  std::optional<int64_t> found;
  for (int64_t shift = -kShiftMax; shift <= kShiftMax; ++shift) {
    if (!Fits(first, other, shift)) continue;
    if (found.has_value()) return std::nullopt;
    found = shift;
  }
  return found;
}

void CollectiveMatcher::Join(std::vector<Rank> ranks, uint32_t group, Collectives* result) {
  std::sort(ranks.begin(), ranks.end(),
            [](const Rank& a, const Rank& b) { return a.rank < b.rank; });
  std::map<uint64_t, Collective> by_number;
  for (const Rank& rank : ranks) {
    const std::optional<int64_t> shift = ShiftOf(ranks.front(), rank);
    if (!shift.has_value()) {
      result->undecided += rank.launches.size();
      continue;
    }
    for (const auto& [number, launch] : rank.launches) {
      const auto as_first = static_cast<uint64_t>(static_cast<int64_t>(number) - *shift);
      Collective& collective = by_number[as_first];
      collective.group = group;
      collective.number = as_first;
      collective.name = launch->name;
      if (launch->bytes.has_value()) collective.bytes = launch->bytes;
      collective.may_be_empty |= launch->may_be_empty;
      CollectiveMember member;
      member.node = rank.process->node;
      member.rank = rank.rank;
      member.entered = launch->entered.node;
      member.entered_at = launch->entered.timeline;
      if (launch->left.has_value()) {
        member.left = launch->left->node;
        member.left_at = launch->left->timeline;
      }
      collective.members.push_back(member);
    }
  }
  for (auto& [number, collective] : by_number) {
    result->collectives.push_back(std::move(collective));
  }
}

// The group's launches in this process; those that cannot be told apart are undecided.
CollectiveMatcher::Rank CollectiveMatcher::RankOf(const Process& process, size_t group,
                                                  Collectives* result) {
  Rank rank{&process, process.groups[group].rank, {}, {kUnknownHi}, {kUnknownLo}};
  for (const Launch& launch : process.launches) {
    if (launch.group != group) continue;
    if (!launch.sequence || !rank.launches.emplace(*launch.sequence, &launch).second) {
      ++result->undecided;
      continue;
    }
    rank.begin = std::min(rank.begin, launch.entered.timeline);
    rank.end = std::max(rank.end, launch.entered.timeline);
  }
  return rank;
}

// Sorts ranks of one name into the group's lives.
std::vector<CollectiveMatcher::Life> CollectiveMatcher::LivesOf(std::vector<Rank> ranks) {
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const Rank& a, const Rank& b) { return a.begin < b.begin; });
  std::vector<Life> lives;
  for (Rank& rank : ranks) {
    Life* best = nullptr;
    int most = 0;
    for (Life& life : lives) {
      bool is_in = false;
      bool meets = false;
      for (const Rank& other : life) {
        is_in |= other.rank == rank.rank;
        meets |= other.Meets(rank);
      }
      if (is_in) continue;
      const int likely = (ShiftOf(life.front(), rank) ? 2 : 0) + (meets ? 1 : 0);
      if (likely <= most) continue;
      best = &life;
      most = likely;
    }
    if (best == nullptr) best = &lives.emplace_back();
    best->push_back(std::move(rank));
  }
  return lives;
}

Collectives CollectiveMatcher::Match() {
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  std::map<Key, std::pair<CollectiveGroup, std::vector<Rank>>> groups;
  Collectives result;
  for (Process& process : processes_) {
    if (process.groups.empty()) continue;  // nothing says that it has any
    for (size_t era = 0; era < process.eras.size(); ++era) AttributeLaunches(&process, era);
    for (const Launch& launch : process.launches) {
      if (!launch.group.has_value()) ++result.undecided;
    }
    for (size_t g = 0; g < process.groups.size(); ++g) {
      Number(&process, g);
      const CollectiveGroup& facts = process.groups[g].facts;
      if (facts.size == 0) {  // only called, never announced
        result.undecided += static_cast<uint64_t>(
            std::count_if(process.launches.begin(), process.launches.end(),
                          [g](const Launch& launch) { return launch.group == g; }));
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
    for (Life& life : LivesOf(std::move(group.second))) {
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

}  // namespace syncline::timeline

#include "timeline/collectives.h"

#include <algorithm>
#include <tuple>

namespace syncline::timeline {
namespace {

// How far ranks' numbers are searched for: a guess at transfers that were under way.
constexpr int64_t kShiftMax = 64;

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
  for (Group& group : process->groups) {
    if (group.facts.name == name) return &group;
  }
  return nullptr;
}

void CollectiveMatcher::OnGroup(uint32_t process, GroupState state) {
  Process& at = processes_[process];
  Group* group = FindGroup(&at, state.group.name);
  if (group == nullptr) {
    group = &at.groups.emplace_back();
    group->facts = std::move(state.group);
    group->rank = state.rank;
  }
  group->snapshots.push_back({at.launches.size(), group->transfers.size(), state.sequence});
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
  if (Group* found = FindGroup(&at, group)) {
    launch.group = static_cast<size_t>(found - at.groups.data());
    found->snapshots.push_back({at.launches.size(), found->transfers.size(), sequence});
  }
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
void CollectiveMatcher::AttributeLaunches(Process* process) {
  std::vector<Group>& groups = process->groups;
  std::vector<Launch>& launches = process->launches;
  // Where all groups were announced at once.
  std::vector<std::vector<Snapshot>> rows;
  for (const Snapshot& first : groups.empty() ? std::vector<Snapshot>() : groups[0].snapshots) {
    std::vector<Snapshot> row = {first};
    for (size_t g = 1; g < groups.size(); ++g) {
      const auto found =
          std::find_if(groups[g].snapshots.begin(), groups[g].snapshots.end(),
                       [&](const Snapshot& s) { return s.position == first.position; });
      if (found != groups[g].snapshots.end()) row.push_back(*found);
    }
    if (row.size() == groups.size()) rows.push_back(std::move(row));
  }
  std::optional<size_t> usual;  // the one group that PyTorch itself uses
  bool several = false;
  const auto give = [&](size_t begin, size_t end, size_t group) {
    for (size_t i = begin; i < end; ++i) {
      if (!launches[i].sequence.has_value() && !launches[i].group.has_value()) {
        launches[i].group = group;
      }
    }
  };
  if (groups.size() == 1) give(0, launches.size(), 0);
  for (size_t r = 1; r < rows.size() && groups.size() > 1; ++r) {
    const size_t begin = rows[r - 1][0].position;
    const size_t end = rows[r][0].position;
    uint64_t without = 0;
    std::vector<uint64_t> with(groups.size(), 0);
    for (size_t i = begin; i < end; ++i) {
      if (!launches[i].sequence.has_value()) ++without;
      if (launches[i].sequence.has_value() && launches[i].group) ++with[*launches[i].group];
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
  give(0, rows.front()[0].position, *usual);
  give(rows.back()[0].position, launches.size(), *usual);
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

Collectives CollectiveMatcher::Match() {
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  std::map<Key, std::pair<CollectiveGroup, std::vector<Rank>>> groups;
  Collectives result;
  for (Process& process : processes_) {
    AttributeLaunches(&process);
    for (const Launch& launch : process.launches) {
      if (!launch.group.has_value()) ++result.undecided;
    }
    for (size_t g = 0; g < process.groups.size(); ++g) {
      Number(&process, g);
      const Group& group = process.groups[g];
      Rank rank{&process, group.rank, {}};
      for (const Launch& launch : process.launches) {
        if (launch.group == g && launch.sequence.has_value()) {
          rank.launches.emplace(*launch.sequence, &launch);
        }
      }
      const CollectiveGroup& facts = group.facts;
      auto& [common, ranks] = groups[{facts.job, facts.incarnation, facts.name, facts.ranks}];
      common = facts;
      if (!rank.launches.empty()) ranks.push_back(std::move(rank));
    }
  }
  for (auto& [key, group] : groups) {
    if (group.second.empty()) continue;
    result.groups.push_back(group.first);
    Join(std::move(group.second), static_cast<uint32_t>(result.groups.size() - 1), &result);
  }
  return result;
}

}  // namespace syncline::timeline

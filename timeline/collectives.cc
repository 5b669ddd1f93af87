// SPDX-License-Identifier: Apache-2.0
#include "timeline/collectives.h"

#include <algorithm>
#include <set>

#include "timeline/collective_kinds.h"

namespace syncline::timeline {
namespace {

// How far back a group's number may lie behind what another thread has said before: a guess.
constexpr uint64_t kThreadsApartMax = 64;
// No group gets there; more is damage.
constexpr uint64_t kNumberMax = uint64_t{1} << 62;

}  // namespace

uint32_t CollectiveMatcher::AddProcess(uint32_t node) {
  processes_.emplace_back().node = node;
  return static_cast<uint32_t>(processes_.size() - 1);
}

CollectiveMatcher::Group* CollectiveMatcher::FindGroup(Process* process, std::string_view name) {
  const auto found = std::find_if(process->groups.rbegin(), process->groups.rend(),
                                  [&](const Group& group) { return group.facts.name == name; });
  return found == process->groups.rend() ? nullptr : &*found;
}

// What is not announced yet has only a name.
CollectiveMatcher::Group* CollectiveMatcher::GroupOf(Process* process, std::string_view name) {
  Group* group = FindGroup(process, name);
  if (group == nullptr) {
    group = &process->groups.emplace_back();
    group->facts.name = name;
  }
  return group;
}

// Numbers only go up; threads may say theirs a little later than they have read them. `used`: the
// number is about to be taken, and the thread's last one was.
bool CollectiveMatcher::LivesAnew(const Group& group, uint32_t thread, uint64_t sequence,
                                  bool used) {
  const auto said = group.said.find(thread);
  if (said != group.said.end()) {
    const auto& [last, call] = said->second;
    if (sequence < last || (sequence == last && used && call.has_value())) return true;
  }
  return group.highest > kThreadsApartMax && sequence < group.highest - kThreadsApartMax;
}

// Of a call whose number is called with again: whether nothing came of it.
bool CollectiveMatcher::IsRefused(const Process& process, uint32_t thread, size_t launch) {
  const auto called = process.called.find(thread);
  if (called != process.called.end() && called->second == launch) return true;
  const Works works = WorksOf(process.launches[launch].name, 1);
  if (process.works.empty() || works.name.empty()) return false;  // another backend's are not seen
  for (auto work = process.works.rbegin(); work != process.works.rend(); ++work) {
    if (work->position <= launch) break;
    if (work->name == works.name) return false;
  }
  return true;
}

void CollectiveMatcher::Announce(Process* process, Group* group, uint32_t thread, uint64_t sequence,
                                 std::optional<size_t> call) {
  group->snapshots.push_back({process->launches.size(), group->transfers.size(), sequence});
  group->highest = std::max(group->highest, sequence);
  group->said[thread] = {sequence, call};
}

void CollectiveMatcher::OnGroup(uint32_t process, uint32_t thread, GroupState state) {
  if (state.sequence > kNumberMax) return;
  Process& at = processes_[process];
  Group* group = FindGroup(&at, state.group.name);
  if (group == nullptr || LivesAnew(*group, thread, state.sequence, /*used=*/false) ||
      (group->facts.size > 0 && !group->guessed && group->facts.ranks != state.group.ranks)) {
    group = &at.groups.emplace_back();
  }
  group->guessed = false;
  group->facts = std::move(state.group);
  group->rank = state.rank;
  Announce(&at, group, thread, state.sequence, std::nullopt);
}

void CollectiveMatcher::OnCall(uint32_t process, uint32_t thread, std::string_view group,
                               std::string_view name, uint64_t sequence, uint64_t bytes,
                               const Place& place) {
  if (sequence > kNumberMax) return;
  Process& at = processes_[process];
  Launch launch;
  launch.name = CollectiveCalled(name);
  launch.entered = place;
  if (bytes > 0) launch.bytes = bytes;
  launch.may_be_empty = bytes == 0;
  launch.sequence = sequence;
  Group* found = GroupOf(&at, group);
  bool used = true;
  if (const auto said = found->said.find(thread); said != found->said.end()) {
    const Group::Said& last = said->second;
    used = last.sequence != sequence || !last.call || !IsRefused(at, thread, *last.call);
    if (!used) at.launches[*last.call].refused = true;
  }
  if (LivesAnew(*found, thread, sequence, used)) {
    Group next;
    next.facts = found->facts;
    next.rank = found->rank;
    next.guessed = true;
    found = &at.groups.emplace_back(std::move(next));
  }
  launch.group = static_cast<size_t>(found - at.groups.data());
  Announce(&at, found, thread, sequence, at.launches.size());
  at.called[thread] = at.launches.size();
  at.launches.push_back(std::move(launch));
}

void CollectiveMatcher::OnRoot(uint32_t process, uint32_t thread, std::string_view group,
                               int32_t root) {
  std::map<uint32_t, Root>& roots = processes_[process].roots;
  if (root < 0) {
    roots.erase(thread);
  } else {
    roots[thread] = {std::string(group), root};
  }
}

void CollectiveMatcher::OnTransfer(uint32_t process, std::string_view group) {
  Process& at = processes_[process];
  GroupOf(&at, group)->transfers.push_back(at.launches.size());
}

void CollectiveMatcher::OnOperators(uint32_t process, uint32_t thread) {
  processes_[process].called.erase(thread);
}

void CollectiveMatcher::OnLaunch(uint32_t process, uint32_t thread, std::string_view name,
                                 const Place& place) {
  Process& at = processes_[process];
  const auto called = at.called.find(thread);
  const bool is_called = called != at.called.end();
  Launch& launch = is_called ? at.launches[called->second] : at.launches.emplace_back();
  if (is_called) at.called.erase(called);
  launch.name = name;
  launch.entered = place;
  launch.launched = true;
  const auto root = at.roots.find(thread);
  if (name == kBroadcast && root != at.roots.end()) launch.root = root->second;
}

void CollectiveMatcher::OnWorkBegin(uint32_t process, uint32_t thread, std::string_view name) {
  Process& at = processes_[process];
  at.working[thread] = at.works.size();
  Work& begun = at.works.emplace_back();
  begun.thread = thread;
  begun.name = name;
  begun.position = at.launches.size();
}

void CollectiveMatcher::OnWorkEnd(uint32_t process, uint32_t thread, const Place& place) {
  Process& at = processes_[process];
  const auto work = at.working.find(thread);
  if (work == at.working.end()) return;
  at.works[work->second].end = place;
  at.works[work->second].begun_by_end = at.works.size();
  at.working.erase(work);
}

// Gives the launches without a call to groups.
void CollectiveMatcher::AttributeLaunches(Process* process) {
  std::set<std::string_view> names, growing;
  std::vector<size_t> announced;
  for (size_t g = 0; g < process->groups.size(); ++g) {
    const Group& group = process->groups[g];
    if (group.facts.size == 0) continue;
    announced.push_back(g);
    names.insert(group.facts.name);
    for (size_t s = 1; s < group.snapshots.size(); ++s) {
      if (!GrowsByItself(*process, g, group.snapshots[s - 1], group.snapshots[s])) continue;
      growing.insert(group.facts.name);
      break;
    }
  }
  if (names.size() == 1) return GiveAll(process, *names.begin());
  if (names.size() == announced.size()) return GiveByGrowth(process, announced);
  // Some were made anew, and did not grow from one announcement to the next.
  if (growing.size() == 1) GiveAll(process, *growing.begin());
}

// Whether its number grew by more than what the program has asked for.
bool CollectiveMatcher::GrowsByItself(const Process& process, size_t group, const Snapshot& from,
                                      const Snapshot& to) {
  uint64_t known = to.transfers - from.transfers;
  for (size_t i = from.position; i < to.position; ++i) {
    const Launch& launch = process.launches[i];
    known += launch.group == group && !launch.refused ? 1 : 0;
  }
  return to.sequence > from.sequence && to.sequence - from.sequence > known;
}

// To the lives of one group, one after the other. What was launched since one was last heard of
// belongs to the next one, as far back as that one's first number says.
void CollectiveMatcher::GiveAll(Process* process, std::string_view name) {
  std::vector<Launch>& launches = process->launches;
  size_t end = launches.size();
  for (size_t g = process->groups.size(); g-- > 0;) {
    const Group& group = process->groups[g];
    if (group.facts.name != name) continue;
    const auto before = std::find_if(
        process->groups.rbegin() + static_cast<ptrdiff_t>(process->groups.size() - g),
        process->groups.rend(), [name](const Group& other) { return other.facts.name == name; });
    size_t begin = 0;
    if (before != process->groups.rend()) {
      const Snapshot& last = before->snapshots.back();
      const uint64_t transfers = before->transfers.size() - last.transfers;
      uint64_t back = group.snapshots[0].sequence;
      back -= std::min(back, group.facts.size <= 2 ? transfers : 0);
      begin = group.snapshots[0].position;
      for (size_t i = begin; back > 0 && i-- > last.position;) {
        if (launches[i].group.has_value()) continue;
        begin = i;
        --back;
      }
    }
    for (size_t i = begin; i < end; ++i) {
      if (!launches[i].group.has_value()) launches[i].group = g;
    }
    end = begin;
  }
}

// To the group whose number grew by as many. `groups`: each with a name of its own.
void CollectiveMatcher::GiveByGrowth(Process* process, const std::vector<size_t>& groups) {
  std::vector<Launch>& launches = process->launches;
  // Where all groups were announced at once.
  std::vector<std::vector<Snapshot>> rows;
  if (groups.empty()) return;
  for (const Snapshot& first : process->groups[groups[0]].snapshots) {
    std::vector<Snapshot> row = {first};
    for (size_t g = 1; g < groups.size(); ++g) {
      const std::vector<Snapshot>& snapshots = process->groups[groups[g]].snapshots;
      const auto found = std::find_if(snapshots.begin(), snapshots.end(), [&](const Snapshot& s) {
        return s.position == first.position;
      });
      if (found != snapshots.end()) row.push_back(*found);
    }
    if (row.size() == groups.size()) rows.push_back(std::move(row));
  }
  std::optional<size_t> usual;  // the one group that PyTorch itself uses
  bool several = false;
  const auto give = [&](size_t begin, size_t end, size_t group) {
    for (size_t i = begin; i < end; ++i) {
      if (!launches[i].group.has_value()) launches[i].group = groups[group];
    }
  };
  for (size_t r = 1; r < rows.size(); ++r) {
    const size_t begin = rows[r - 1][0].position;
    const size_t end = rows[r][0].position;
    const bool any = std::any_of(launches.begin() + static_cast<ptrdiff_t>(begin),
                                 launches.begin() + static_cast<ptrdiff_t>(end),
                                 [](const Launch& launch) { return !launch.group.has_value(); });
    if (!any) continue;
    std::vector<size_t> grown;
    for (size_t g = 0; g < groups.size(); ++g) {
      if (GrowsByItself(*process, groups[g], rows[r - 1][g], rows[r][g])) grown.push_back(g);
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

// Counts on from the announcements. Between two that disagree (events were lost, or not recorded),
// launches without a call have no number.
void CollectiveMatcher::Number(Process* process, size_t index) {
  Group& group = process->groups[index];
  std::vector<size_t> mine;
  for (size_t i = 0; i < process->launches.size(); ++i) {
    if (process->launches[i].group == index && !process->launches[i].refused) mine.push_back(i);
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
    std::vector<size_t> counted;  // that no call numbered
    for (auto it = from; it != mine.end() && *it < until; ++it) {
      for (; transfer < group.transfers.size() && group.transfers[transfer] <= *it; ++transfer) {
        if (counts_transfers) ++number;
      }
      if (!process->launches[*it].sequence.has_value()) counted.push_back(*it);
      process->launches[*it].sequence = number++;
    }
    if (!last) {
      const Snapshot& next = group.snapshots[s + 1];
      if (counts_transfers) number += next.transfers - std::min(next.transfers, transfer);
      if (number + (counts_transfers ? 0 : next.transfers) != next.sequence) {
        for (const size_t i : counted) process->launches[i].sequence.reset();
      }
    }
    if (s != 0) continue;
    number = base;
    for (auto it = from; it != mine.begin() && number > 0;) {
      process->launches[*--it].sequence = --number;
    }
  }
}

}  // namespace syncline::timeline

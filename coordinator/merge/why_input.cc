// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/why_input.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "timeline/collective_kinds.h"

namespace syncline::merge {
namespace {

namespace why = analysis::why;

using JobKey = std::pair<std::string, std::string>;  // job and incarnation

struct Ranks {
  std::map<int32_t, why::CollectedProcess*> of;
  // Of a rank that two processes claim: the second one.
  std::map<int32_t, const why::CollectedProcess*> also;
};

// A rank's own helpers launch nothing, or next to nothing.
constexpr uint64_t kHelperPercentMax = 10;

std::string FactOf(const why::CollectedProcess& process, const std::string& key) {
  const auto found = process.facts.find(key);
  return found == process.facts.end() ? "" : found->second;
}

int32_t NumberOf(const why::CollectedProcess& process, const std::string& key) {
  int32_t number = -1;
  return absl::SimpleAtoi(FactOf(process, key), &number) ? number : -1;
}

// Loaders' workers and launchers carry a rank's number, too: the rank is who launches collectives,
// or else who steps an optimizer.
bool IsRatherTheRank(const why::CollectedProcess& a, const why::CollectedProcess& b) {
  return std::pair(a.launches(), a.steps()) > std::pair(b.launches(), b.steps());
}

bool WorkAsOne(const why::CollectedProcess& rank, const why::CollectedProcess& other) {
  const bool launching = rank.launches() > 0;
  const uint64_t own = launching ? rank.launches() : rank.steps();
  const uint64_t others = launching ? other.launches() : other.steps();
  return others * 100 >= own * kHelperPercentMax;
}

// "0-2,8" -> 0, 1, 2, 8.
std::vector<int32_t> RanksOf(const timeline::CollectiveGroup& group) {
  std::vector<int32_t> ranks;
  for (const absl::string_view part : absl::StrSplit(group.ranks, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(part, '-');
    int32_t first = 0;
    if (!absl::SimpleAtoi(ends.first, &first)) return {};
    int32_t last = first;
    if (!ends.second.empty() && !absl::SimpleAtoi(ends.second, &last)) return {};
    for (int64_t rank = first; rank <= last && ranks.size() < group.size; ++rank) {
      ranks.push_back(static_cast<int32_t>(rank));
    }
  }
  return ranks;
}

// Of each node, when a rank entered a collective, in the node's clock: the global rank.
using Entries = std::map<std::pair<uint32_t, int64_t>, int32_t>;

Entries EntriesOf(const timeline::Collectives& found) {
  Entries entries;
  for (const timeline::Collective& collective : found.collectives) {
    const std::vector<int32_t> global = RanksOf(found.groups[collective.group]);
    for (const timeline::CollectiveMember& member : collective.members) {
      if (member.rank < 0 || static_cast<size_t>(member.rank) >= global.size()) continue;
      entries[{member.node, member.entered.ns}] = global[static_cast<size_t>(member.rank)];
    }
  }
  return entries;
}

// As its environment says; else as its process group does (torch.multiprocessing sets no RANK): by
// the first launch of its that is a collective's entry.
int32_t RankOf(const why::CollectedProcess& process, const Entries& entries) {
  const int32_t number = NumberOf(process, "rank");
  if (number >= 0) return number;
  for (const why::CollectedThread& thread : process.threads) {
    if (thread.launches == 0) continue;
    for (const why::TaskSpan& span : thread.spans) {
      const auto found = entries.find({process.node, span.begin_ns});
      if (found != entries.end()) return found->second;
    }
  }
  return 0;
}

std::map<JobKey, Ranks> FindRanks(why::Collected* collected, const Entries& entries) {
  std::map<JobKey, Ranks> jobs;
  for (why::CollectedProcess& process : collected->processes) {
    if (process.launches() == 0 && process.steps() == 0) continue;
    Ranks& ranks = jobs[{FactOf(process, "job"), FactOf(process, "incarnation")}];
    const int32_t number = RankOf(process, entries);
    why::CollectedProcess*& rank = ranks.of[number];
    if (rank == nullptr) {
      rank = &process;
      continue;
    }
    why::CollectedProcess* other = &process;
    if (IsRatherTheRank(*other, *rank)) std::swap(rank, other);
    if (WorkAsOne(*rank, *other)) ranks.also[number] = other;
  }
  return jobs;
}

// 2, 3, 8 -> "2-3, 8".
std::string RangesOf(const std::set<int32_t>& numbers) {
  std::vector<std::string> ranges;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const int32_t first = *at;
    int32_t last = first;
    for (++at; at != numbers.end() && *at == last + 1; ++at) last = *at;
    ranges.push_back(first == last ? absl::StrCat(first) : absl::StrCat(first, "-", last));
  }
  return absl::StrJoin(ranges, ", ");
}

// "train.py" of "/usr/bin/python3 -u /home/ann/train.py --lr 1"; else the program's name.
std::string CommandOf(const std::string& command_line) {
  const std::vector<std::string> words = absl::StrSplit(command_line, ' ', absl::SkipEmpty());
  const auto name = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  for (const std::string& word : words) {
    if (word.ends_with(".py")) return name(word);
  }
  return words.empty() ? "" : name(words[0]);
}

class JobBuilder {
 public:
  JobBuilder(const WhySource& source, const JobKey& key, const Ranks& ranks)
      : inputs_(*source.inputs),
        built_(*source.built),
        evidence_(*source.evidence),
        scheduling_(*source.scheduling),
        models_(inputs_.models()),
        ranks_(ranks) {
    job_.job = key.first;
    job_.incarnation = key.second;
    job_.input.job = key.first;
    job_.input.clock_bounds_hold = inputs_.bounds_hold;
    job_.input.names = source.collected->names;
  }

  WhyJob Build() {
    for (const auto& [rank, process] : ranks_.of) AddRank(rank, process);
    for (const timeline::Collective& collective : built_.collectives.collectives) {
      Add(built_.collectives.groups[collective.group], collective, {});
    }
    AddTransfers();
    for (why::RankInput& rank : job_.input.ranks) {
      std::sort(rank.collectives.begin(), rank.collectives.end(),
                [](const why::CollectiveEntry& a, const why::CollectiveEntry& b) {
                  return std::tuple(a.entered_ns, a.group, a.number) <
                         std::tuple(b.entered_ns, b.group, b.number);
                });
    }
    if (unrelated_) {
      for (why::RankInput& rank : job_.input.ranks) {
        for (why::CollectiveEntry& entry : rank.collectives) entry.timeline_ns.reset();
      }
    }
    FindMissing();
    for (const auto& [rank, other] : ranks_.also) {
      const why::CollectedProcess& process = *ranks_.of.at(rank);
      job_.conflict = absl::StrCat("rank ", rank, ": ", PlaceOf(process), " and ", PlaceOf(*other));
    }
    return std::move(job_);
  }

 private:
  timeline::Placement& PlacementOf(uint32_t node) const { return *inputs_.facts[node].placement; }

  std::string PlaceOf(const why::CollectedProcess& process) const {
    return absl::StrCat("pid ", process.key.pid, " on ", inputs_.nodes[process.node].name);
  }

  void AddRank(int32_t number, why::CollectedProcess* process) {
    why::RankInput& rank = job_.input.ranks.emplace_back();
    places_[number] = job_.input.ranks.size() - 1;
    rank.rank = number;
    rank.node = inputs_.nodes[process->node].name;
    rank.pid = process->key.pid;
    job_.processes.push_back(process->key);
    rank.command = CommandOf(FactOf(*process, "command line"));
    rank.accelerators = process->accelerators;
    rank.places = std::move(process->places);
    timeline::Placement& placement = PlacementOf(process->node);
    if (inputs_.build.window.has_value()) {
      rank.window = {placement.ClockNs(inputs_.build.window->begin),
                     placement.ClockNs(inputs_.build.window->end)};
    }
    const auto add_holes = [&](const std::vector<timeline::Interval>& holes) {
      for (const timeline::Interval& hole : holes) {
        rank.holes.push_back({placement.ClockNs(hole.begin), placement.ClockNs(hole.end)});
      }
    };
    add_holes(process->holes);
    for (why::CollectedThread& thread : process->threads) {
      if (thread.launches > 0) add_holes(thread.holes);
      rank.threads.push_back({thread.tid, std::move(thread.spans)});
    }
    std::sort(rank.holes.begin(), rank.holes.end());
    AddEnd(*process, &rank);
    AddEvidence(*process, &rank);
    AddScheduling(*process, &rank);
  }

  void AddEnd(const why::CollectedProcess& process, why::RankInput* rank) const {
    for (const timeline::ProcessResult& one : built_.nodes[process.node].processes) {
      if (one.key != process.key || !one.ended_ns.has_value() || one.coverage.empty()) continue;
      rank->ended = why::OwnInterval{one.coverage.back().end_ns, *one.ended_ns};
    }
  }

  // Of evidence::Process, or of evidence::ProcessIdentity.
  template <class Process>
  static bool IsThis(const Process& one, const ProcessKey& key) {
    return one.own_pid == key.pid && one.start_ticks == key.start_ticks &&
           static_cast<uint64_t>(one.pid_namespace_inode) == key.pid_namespace;
  }

  void AddEvidence(const why::CollectedProcess& process, why::RankInput* rank) const {
    if (!evidence_[process.node].has_value()) return;
    const evidence::Evidence& evidence = *evidence_[process.node];
    rank->evidence = &evidence;
    for (uint32_t i = 0; i < evidence.processes.size(); ++i) {
      if (IsThis(evidence.processes[i], process.key)) rank->evidence_process = i;
    }
  }

  void AddScheduling(const why::CollectedProcess& process, why::RankInput* rank) const {
    if (!scheduling_[process.node].has_value()) return;
    const evidence::Scheduling& scheduling = *scheduling_[process.node];
    for (uint32_t i = 0; i < scheduling.processes.size(); ++i) {
      if (!IsThis(scheduling.processes[i], process.key)) continue;
      rank->scheduling = &scheduling;
      rank->scheduling_process = i;
    }
  }

  why::NameId NameOf(const std::string& name) {
    const auto [found, is_new] =
        names_.try_emplace(name, static_cast<why::NameId>(job_.input.names.size()));
    if (is_new) job_.input.names.push_back(name);
    return found->second;
  }

  struct TransferSide {
    bool send = false;
    const timeline::TransferThreads* threads = nullptr;
  };

  void SetTransfer(const TransferSide& side, why::CollectiveEntry* entry) {
    entry->transfer = true;
    entry->sends = side.send;
    entry->tid = side.threads->tid;
    entry->waited_tid = side.threads->waited_tid;
    entry->waited_ns = side.threads->waited_ns.value_or(0);
    if (entry->left_ns.has_value() && !side.threads->waited_ns.has_value()) {
      job_.input.waits_unknown = true;
    }
  }

  void AddTransfers() {
    const timeline::Transfers& found = built_.transfers;
    auto group = static_cast<uint32_t>(built_.collectives.groups.size());
    std::vector<uint64_t> numbers(found.channels.size());
    for (const timeline::Transfer& transfer : found.transfers) {
      const timeline::Channel& channel = found.channels[transfer.channel];
      const std::array<TransferSide, 2> sides = {TransferSide{true, &transfer.send_threads},
                                                 TransferSide{false, &transfer.receive_threads}};
      timeline::Collective pair;
      pair.group = group + transfer.channel;
      pair.number = numbers[transfer.channel]++;
      pair.name = why::kTransferName;
      pair.members.push_back({transfer.send_node, channel.source, transfer.send_begin,
                              transfer.sent_at, transfer.sent, std::nullopt});
      pair.members.push_back({transfer.receive_node, channel.destination, transfer.posted,
                              transfer.posted_at, transfer.received, std::nullopt});
      Add(channel.group, pair, sides);
    }
    group += static_cast<uint32_t>(found.channels.size());
    for (const timeline::LooseEnd& end : found.loose) {
      timeline::Collective alone;
      alone.group = group++;
      alone.name = why::kTransferName;
      alone.members.push_back({0, end.rank, end.begin, end.begin_at, end.end, std::nullopt});
      Add(end.group, alone, std::array{TransferSide{end.send, &end.threads}});
    }
  }

  void Add(const timeline::CollectiveGroup& group, const timeline::Collective& collective,
           std::span<const TransferSide> sides) {
    if (group.job != job_.job || group.incarnation != job_.incarnation) return;
    const std::vector<int32_t> global = RanksOf(group);
    std::vector<std::pair<size_t, const timeline::CollectiveMember*>> members;
    for (const timeline::CollectiveMember& member : collective.members) {
      if (member.rank < 0 || static_cast<size_t>(member.rank) >= global.size()) continue;
      const auto place = places_.find(global[static_cast<size_t>(member.rank)]);
      if (place == places_.end()) continue;
      members.emplace_back(place->second, &member);
      why::CollectiveEntry entry;
      entry.group = collective.group;
      entry.number = collective.number;
      entry.name = NameOf(collective.name);
      if (collective.bytes.has_value()) entry.bytes = static_cast<int64_t>(*collective.bytes);
      entry.entered_ns = member.entered.ns;
      if (member.left.has_value()) entry.left_ns = member.left->ns;
      if (!sides.empty()) {
        SetTransfer(sides[static_cast<size_t>(&member - collective.members.data())], &entry);
        entry.loose = sides.size() < 2;
      }
      if (inputs_.bounds_hold) entry.timeline_ns = member.entered_at.ns;
      job_.input.ranks[place->second].collectives.push_back(entry);
    }
    const size_t wanted = sides.empty() ? group.size : 2;
    if (members.size() == wanted && wanted > 1) AddArrival(collective, members);
  }

  // Index into the job's ranks. Members are by rank in the group.
  static std::optional<size_t> RootOf(
      const timeline::Collective& collective,
      const std::vector<std::pair<size_t, const timeline::CollectiveMember*>>& members) {
    if (collective.name != timeline::kBroadcast) return std::nullopt;
    if (!std::is_sorted(members.begin(), members.end())) return std::nullopt;
    if (!collective.root.has_value()) return std::nullopt;
    const auto root = static_cast<size_t>(*collective.root);
    if (root >= members.size()) return std::nullopt;
    return members[root].first;
  }

  void AddArrival(
      const timeline::Collective& collective,
      const std::vector<std::pair<size_t, const timeline::CollectiveMember*>>& members) {
    if (!inputs_.bounds_hold) return;  // not even the estimate is worth a word
    const auto by_entry = [](const auto& a, const auto& b) {
      return a.second->entered_at < b.second->entered_at;
    };
    const auto [first, last] = std::minmax_element(members.begin(), members.end(), by_entry);
    why::Arrival arrival;
    arrival.group = collective.group;
    arrival.number = collective.number;
    // Of two ranks that broadcast over Gloo, or send and receive, each waits for the other.
    arrival.everybody_waits = timeline::EverybodyWaits(collective.name, collective.may_be_empty) ||
                              collective.name == why::kTransferName ||
                              (collective.name == timeline::kBroadcast && members.size() == 2);
    if (!arrival.everybody_waits) arrival.root = RootOf(collective, members);
    arrival.last = last->first;
    arrival.spread_ns = last->second->entered_at.ns - first->second->entered_at.ns;
    arrival.level = analysis::Level::kProven;
    for (const auto& [place, member] : members) {
      if (member != last->second) {
        arrival.level = std::max(arrival.level, LevelOfLast(*member, *last->second));
      }
    }
    job_.input.arrivals.push_back(arrival);
  }

  // At which level `last` entered behind `member`.
  analysis::Level LevelOfLast(const timeline::CollectiveMember& member,
                              const timeline::CollectiveMember& last) {
    if (!models_.Knows(member.entered.clock, last.entered.clock)) {
      unrelated_ = true;
      return analysis::Level::kUndecided;
    }
    const analysis::LevelledDuration behind =
        analysis::Difference(models_, member.entered, last.entered);
    if (behind.bounded()) {
      const int64_t bound_ns = std::max(behind.hi_ns - behind.est_ns, behind.est_ns - behind.lo_ns);
      job_.input.clock_bound_ns = std::max(job_.input.clock_bound_ns.value_or(0), bound_ns);
    }
    unrelated_ = unrelated_ || !behind.bounded();
    return analysis::LevelOfOrder(behind);
  }

  void FindMissing() {
    std::set<int32_t> missing;
    for (const timeline::CollectiveGroup& group : built_.collectives.groups) {
      if (group.job != job_.job || group.incarnation != job_.incarnation) continue;
      for (const int32_t rank : RanksOf(group)) {
        if (!places_.contains(rank)) missing.insert(rank);
      }
    }
    for (const auto& [rank, process] : ranks_.of) {
      for (int32_t other = 0; other < NumberOf(*process, "world size"); ++other) {
        if (!places_.contains(other)) missing.insert(other);
      }
    }
    job_.missing_ranks = RangesOf(missing);
  }

  const OpenedInputs& inputs_;
  const timeline::BuiltTimeline& built_;
  const std::deque<std::optional<evidence::Evidence>>& evidence_;
  const std::deque<std::optional<evidence::Scheduling>>& scheduling_;
  const analysis::Models models_;
  const Ranks& ranks_;
  std::map<int32_t, size_t> places_;  // of each rank in input.ranks
  std::map<std::string, why::NameId> names_;
  bool unrelated_ = false;  // two ranks' clocks, by no bound
  WhyJob job_;
};

}  // namespace

std::vector<WhyJob> WhyJobsOf(const WhySource& source) {
  std::vector<WhyJob> jobs;
  for (const auto& [key, ranks] :
       FindRanks(source.collected, EntriesOf(source.built->collectives))) {
    jobs.push_back(JobBuilder(source, key, ranks).Build());
  }
  return jobs;
}

}  // namespace syncline::merge

// SPDX-License-Identifier: Apache-2.0
// Which work of a backend's thread is which launch's.
#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "timeline/collective_kinds.h"
#include "timeline/collectives.h"

namespace syncline::timeline {
namespace {

// A group of which more works than this, or launches, are left over, is not understood: more than
// can be under way when the recording begins or ends.
constexpr size_t kLeftOverMax = 16;
constexpr size_t kLeftOverOneIn = 20;
// Where groups have threads of their own, which is whose is tried out on so many works, and given
// up for so many threads times groups.
constexpr size_t kWorksTried = 4096;
constexpr size_t kWorkersTried = 128;
// A launch that waits so long, at the next launch or at the end, while its group's threads have
// nothing to do waits for a work that was lost: a thread takes what there is, as soon as it gets a
// processor.
constexpr int64_t kIdleNs = 20'000'000;

}  // namespace

// The launches that wait for works, as time goes on.
class CollectiveMatcher::Queues {
 public:
  // Since when a group's threads have nothing to do; of those that it lacks nobody knows.
  using Idle = std::map<size_t, TimelineTime>;

  explicit Queues(const Process& process) : process_(process) {}

  // Takes in what was launched before `position`. With `idle`: and drops before each what waits for
  // works that were lost.
  void GoTo(size_t position, const Idle* idle = nullptr) {
    for (; next_ < position; ++next_) {
      const Launch& launch = process_.launches[next_];
      // Without a group nobody can tell who works at it.
      if (!launch.group.has_value() || launch.refused || !launch.launched) continue;
      const Works works = WorksOf(launch.name, process_.groups[*launch.group].facts.size);
      if (works.name.empty()) continue;
      if (idle != nullptr) DropLost(*launch.group, launch.entered.timeline, *idle);
      if (!works.count.has_value()) unclear_.insert({*launch.group, works.name});
      auto& queue = waiting_[works.name][*launch.group];
      for (size_t i = 0; i < works.count.value_or(1); ++i) queue.push_back(next_);
    }
  }
  // Of one group the next launch; nullopt when none waits.
  std::optional<size_t> Take(std::string_view name, size_t group) {
    auto& queues = waiting_[name];
    const auto queue = queues.find(group);
    if (queue == queues.end()) return std::nullopt;
    const size_t launch = queue->second.front();
    queue->second.pop_front();
    if (queue->second.empty()) queues.erase(queue);
    return launch;
  }
  // Whose launch it may be: of whom a launch waits, the one with the latest launch first.
  std::vector<size_t> Candidates(std::string_view name) {
    std::vector<std::pair<size_t, size_t>> latest;
    for (const auto& [group, queue] : waiting_[name]) latest.push_back({queue.back(), group});
    std::sort(latest.rbegin(), latest.rend());
    std::vector<size_t> groups;
    for (const auto& [launch, group] : latest) groups.push_back(group);
    return groups;
  }
  size_t WaitingOf(std::string_view name, size_t group) {
    const auto& queues = waiting_[name];
    const auto queue = queues.find(group);
    return queue == queues.end() ? 0 : queue->second.size();
  }
  size_t DroppedOf(std::string_view name, size_t group) {
    const auto found = dropped_.find({group, name});
    return found == dropped_.end() ? 0 : found->second;
  }
  // Whether what waits has waited longer than it should have, by `now`.
  bool AreLate(TimelineTime now, const Idle& idle) const {
    for (const auto& [name, queues] : waiting_) {
      for (const auto& [group, queue] : queues) {
        if (IsLate(queue.front(), group, now, idle)) return true;
      }
    }
    return false;
  }
  size_t Waiting() const {
    size_t launches = 0;
    for (const auto& [name, queues] : waiting_) {
      for (const auto& [group, queue] : queues) launches += queue.size();
    }
    return launches;
  }
  bool IsClear(size_t group, std::string_view name) const {
    return !unclear_.contains({group, name});
  }

 private:
  bool IsLate(size_t launch, size_t group, TimelineTime now, const Idle& idle) const {
    const auto since = idle.find(group);
    if (since == idle.end()) return false;
    const TimelineTime entered = process_.launches[launch].entered.timeline;
    const TimelineTime waits_since = std::max(entered, since->second);
    return now > waits_since && now.ns - waits_since.ns >= kIdleNs;
  }
  void DropLost(size_t group, TimelineTime now, const Idle& idle) {
    for (auto& [name, queues] : waiting_) {
      const auto queue = queues.find(group);
      if (queue == queues.end()) continue;
      while (!queue->second.empty() && IsLate(queue->second.front(), group, now, idle)) {
        queue->second.pop_front();
        ++dropped_[{group, name}];
      }
      if (queue->second.empty()) queues.erase(queue);
    }
  }

  const Process& process_;
  size_t next_ = 0;
  std::map<std::pair<size_t, std::string_view>, size_t> dropped_;
  std::map<std::string_view, std::map<size_t, std::deque<size_t>>> waiting_;  // by work, by group
  std::set<std::pair<size_t, std::string_view>> unclear_;  // nobody knows how many works
};

// A first guess: where several groups wait, the one that has just launched is the likely one; where
// only one does, it is that.
CollectiveMatcher::Workers CollectiveMatcher::GuessWorkers(const Process& process) {
  constexpr size_t kSure = 4;
  Queues queues(process);
  std::map<uint32_t, std::map<size_t, size_t>> votes;  // by thread, by group
  for (const Work& work : process.works) {
    queues.GoTo(work.position);
    const std::vector<size_t> candidates = queues.Candidates(work.name);
    if (candidates.empty()) continue;
    votes[work.thread][candidates.front()] += candidates.size() == 1 ? kSure : 1;
    queues.Take(work.name, candidates.front());
  }
  Workers workers;
  for (const auto& [thread, counts] : votes) {
    const auto most =
        std::max_element(counts.begin(), counts.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    workers[thread] = most->first;
  }
  return workers;
}

// How many of the first works find no launch that waits, and how many launches no work.
size_t CollectiveMatcher::MisfitsOf(const Process& process, const Workers& workers) {
  Queues queues(process);
  size_t misfits = 0;
  const size_t count = std::min(process.works.size(), kWorksTried);
  for (const Work& work : std::span(process.works).first(count)) {
    queues.GoTo(work.position);
    const auto group = workers.find(work.thread);
    if (group != workers.end() && !queues.Take(work.name, group->second)) ++misfits;
  }
  return misfits + queues.Waiting();
}

// A group's threads work for no other: which thread is whose is what leaves least over.
CollectiveMatcher::Workers CollectiveMatcher::WorkersOf(const Process& process) {
  std::set<size_t> groups;
  for (const Launch& launch : process.launches) {
    if (launch.group.has_value()) groups.insert(*launch.group);
  }
  Workers best = GuessWorkers(process);
  if (groups.size() < 2 || groups.size() * best.size() > kWorkersTried) return best;
  size_t least = MisfitsOf(process, best);
  for (bool better = true; better && least > 0;) {
    better = false;
    const Workers before = best;
    for (const auto& [thread, guess] : before) {
      for (const size_t group : groups) {
        Workers other = best;
        other[thread] = group;
        const size_t misfits = MisfitsOf(process, other);
        if (misfits >= least) continue;
        best = std::move(other);
        least = misfits;
        better = true;
      }
    }
  }
  return best;
}

// Sets when launches were left.
void CollectiveMatcher::GiveWorks(Process* process) {
  const Workers workers = WorkersOf(*process);
  // At the end some may be under way. Where one waits too long there, works were lost: this one's,
  // or that of one before, whose launch got the next one's.
  if (!GiveWorks(process, workers, /*some_lost=*/false)) {
    GiveWorks(process, workers, /*some_lost=*/true);
  }
}

// False, and nothing is given, where works may have been lost and `some_lost` does not say so.
bool CollectiveMatcher::GiveWorks(Process* process, const Workers& workers, bool some_lost) {
  struct Tally {
    size_t given = 0;
    size_t left_over = 0;
  };
  Queues queues(*process);
  Queues::Idle idle;
  std::map<std::pair<size_t, std::string_view>, Tally> tallies;  // by group and work
  Given given;
  for (size_t i = 0; i < process->works.size(); ++i) {
    const Work& work = process->works[i];
    queues.GoTo(work.position, some_lost ? &idle : nullptr);
    const auto group = workers.find(work.thread);
    if (group == workers.end()) continue;
    if (work.end.has_value()) {
      TimelineTime& since = idle.try_emplace(group->second, work.end->timeline).first->second;
      since = std::max(since, work.end->timeline);
    }
    Tally& tally = tallies[{group->second, work.name}];
    const std::optional<size_t> launch = queues.Take(work.name, group->second);
    ++(launch.has_value() ? tally.given : tally.left_over);
    if (launch.has_value()) given.emplace_back(*launch, i);
  }
  queues.GoTo(process->launches.size(), some_lost ? &idle : nullptr);
  if (!some_lost && queues.AreLate(process->until, idle)) return false;
  const auto understood = [&](size_t group, std::string_view name) {
    const Tally& tally = tallies[{group, name}];
    const size_t without = queues.WaitingOf(name, group) + queues.DroppedOf(name, group);
    const size_t left_over = std::max(tally.left_over, without);
    return queues.IsClear(group, name) &&
           left_over <= std::max(kLeftOverMax, tally.given / kLeftOverOneIn);
  };
  std::map<size_t, size_t> ended;  // how many works of each launch
  for (const auto& [number, i] : given) {
    Launch& launch = process->launches[number];
    const Work& work = process->works[i];
    if (!work.end.has_value() || !understood(*launch.group, work.name)) continue;
    ++ended[number];
    if (!launch.left || launch.left->timeline < work.end->timeline) launch.left = work.end;
  }
  for (const auto& [number, works] : ended) {
    Launch& launch = process->launches[number];
    const size_t size = process->groups[*launch.group].facts.size;
    if (works < WorksOf(launch.name, size).count) launch.left.reset();
  }
  FindExchangeable(process, given);
  return true;
}

// Works of one kind that were going on at once, for launches that both waited when the first of
// them began: which thread has taken which, the order of their begins tells only mostly.
void CollectiveMatcher::FindExchangeable(Process* process, const Given& given) {
  for (size_t i = 0; i < given.size(); ++i) {
    Launch& launch = process->launches[given[i].first];
    const Work& work = process->works[given[i].second];
    const size_t size = process->groups[*launch.group].facts.size;
    if (!launch.left.has_value() || WorksOf(launch.name, size).count != 1) continue;
    for (size_t j = i + 1; j < given.size() && given[j].second < work.begun_by_end; ++j) {
      Launch& other = process->launches[given[j].first];
      const Work& beside = process->works[given[j].second];
      if (other.left.has_value() && other.group == launch.group && beside.name == work.name &&
          beside.thread != work.thread && given[j].first < work.position) {
        launch.exchangeable.push_back(&other);
        other.exchangeable.push_back(&launch);
      }
    }
  }
}

}  // namespace syncline::timeline

// SPDX-License-Identifier: Apache-2.0
#include "analysis/scheduling.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace syncline::analysis {
namespace {

using evidence::Pause;
using evidence::Scheduling;
using evidence::SchedulingLoss;
using evidence::Turn;
using evidence::Who;

struct Stretch {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// The window without its losses.
class Known {
 public:
  Known(const std::vector<SchedulingLoss>& losses, Stretch window) : window_(window) {
    for (const SchedulingLoss& loss : losses) {
      const Stretch inside = Clipped({loss.from_ns, loss.until_ns});
      if (inside.begin_ns < inside.end_ns) lost_.push_back(inside);
    }
    std::sort(lost_.begin(), lost_.end(),
              [](const Stretch& a, const Stretch& b) { return a.begin_ns < b.begin_ns; });
    size_t kept = 0;
    for (const Stretch& loss : lost_) {
      if (kept > 0 && loss.begin_ns <= lost_[kept - 1].end_ns) {
        lost_[kept - 1].end_ns = std::max(lost_[kept - 1].end_ns, loss.end_ns);
      } else {
        lost_[kept++] = loss;
      }
    }
    lost_.resize(kept);
  }

  // How much of it is known.
  int64_t Of(Stretch stretch) const {
    const Stretch inside = Clipped(stretch);
    if (inside.begin_ns >= inside.end_ns) return 0;
    int64_t ns = inside.end_ns - inside.begin_ns;
    for (auto loss = FirstBehind(inside.begin_ns);
         loss != lost_.end() && loss->begin_ns < inside.end_ns; ++loss) {
      ns -= std::min(loss->end_ns, inside.end_ns) - std::max(loss->begin_ns, inside.begin_ns);
    }
    return ns;
  }
  bool Whole(Stretch stretch) const {
    return stretch.begin_ns < stretch.end_ns && Of(stretch) == stretch.end_ns - stretch.begin_ns;
  }
  bool Has(int64_t ns) const { return Of({ns, ns + 1}) == 1; }
  int64_t lost_ns() const {
    int64_t ns = 0;
    for (const Stretch& loss : lost_) ns += loss.end_ns - loss.begin_ns;
    return ns;
  }

 private:
  Stretch Clipped(Stretch stretch) const {
    return {std::max(stretch.begin_ns, window_.begin_ns), std::min(stretch.end_ns, window_.end_ns)};
  }
  std::vector<Stretch>::const_iterator FirstBehind(int64_t ns) const {
    return std::partition_point(lost_.begin(), lost_.end(),
                                [ns](const Stretch& loss) { return loss.end_ns <= ns; });
  }

  Stretch window_;
  std::vector<Stretch> lost_;  // in order, apart from each other
};

// Which takers are one.
using TakerKey = std::tuple<CpuTaker::Kind, uint32_t, int32_t, std::string, std::string>;
using Takers = std::map<TakerKey, int64_t>;

std::vector<CpuTaker> ListOf(const Takers& takers) {
  std::vector<CpuTaker> all;
  for (const auto& [key, ns] : takers) {
    CpuTaker& taker = all.emplace_back();
    std::tie(taker.kind, taker.process, taker.pid, taker.name, taker.process_name) = key;
    taker.ns = ns;
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const CpuTaker& a, const CpuTaker& b) { return a.ns > b.ns; });
  return all;
}

int64_t Unnamed(const SchedulingTimes& times, const std::vector<CpuTaker>& takers) {
  int64_t ns = times.ready_ns;
  for (const CpuTaker& taker : takers) ns -= taker.ns;
  return ns;
}

// One thread, turn by turn.
struct Watched {
  ThreadScheduling thread;
  // Who had the CPU, by evidence::Who; named when all are added up.
  std::map<std::pair<Who::Kind, uint32_t>, int64_t> takers;
  int64_t until_ns = 0;  // nothing before it counts again
  int32_t cpu = -1;      // where it ran last
};

class Adding {
 public:
  Adding(const Scheduling& scheduling, Stretch window)
      : scheduling_(scheduling), known_(scheduling.losses, window), window_(window) {
    watched_.resize(scheduling.threads.size());
    for (size_t i = 0; i < watched_.size(); ++i) {
      const evidence::ScheduledThread& thread = scheduling.threads[i];
      watched_[i].thread.tid = thread.shown_tid();
      watched_[i].thread.name = thread.name;
    }
    for (const Turn& turn : scheduling.turns) Add(turn);
  }

  NodeScheduling Take() {
    NodeScheduling node;
    node.window_ns = window_ns();
    node.complete = scheduling_.ended;
    node.lost_ns = known_.lost_ns();
    for (const SchedulingLoss& loss : scheduling_.losses) {
      const bool inside = loss.from_ns < window_.end_ns && loss.until_ns > window_.begin_ns;
      if (inside) node.lost_events += loss.count;
    }
    node.cost_ns = scheduling_.cost_ns;
    node.notes = scheduling_.notes;
    for (const evidence::ProcessIdentity& process : scheduling_.processes) {
      const int32_t pid = process.own_pid != 0 ? process.own_pid : process.pid;
      node.processes.push_back({.process = {0, static_cast<uint64_t>(process.pid_namespace_inode),
                                            process.own_pid, process.start_ticks},
                                .pid = pid,
                                .name = process.name});
    }
    std::vector<Takers> takers(node.processes.size());
    for (size_t i = 0; i < watched_.size(); ++i) {
      const uint32_t process = scheduling_.threads[i].process;
      AddTo(process, &watched_[i], &takers[process], &node.processes[process]);
    }
    for (size_t i = 0; i < node.processes.size(); ++i) {
      node.processes[i].takers = ListOf(takers[i]);
      std::stable_sort(node.processes[i].threads.begin(), node.processes[i].threads.end(),
                       [](const ThreadScheduling& a, const ThreadScheduling& b) {
                         return a.times.running_ns + a.times.ready_ns >
                                b.times.running_ns + b.times.ready_ns;
                       });
    }
    return node;
  }

 private:
  int64_t window_ns() const { return std::max<int64_t>(0, window_.end_ns - window_.begin_ns); }

  void Add(const Turn& turn) {
    Watched& watched = watched_[turn.thread];
    ThreadScheduling& thread = watched.thread;
    // Turns do not overlap; those of a damaged file may.
    const auto part = [&](int64_t begin_ns, int64_t end_ns) {
      return Stretch{std::max(begin_ns, watched.until_ns), end_ns};
    };
    const Stretch pause = part(turn.from_ns(), turn.ready_from_ns());
    const Stretch ready = part(turn.ready_from_ns(), turn.run_from_ns());
    const Stretch ran = part(turn.run_from_ns(), turn.until_ns);
    AddPause(turn.pause, known_.Of(pause), &thread.times);
    const int64_t ready_ns = known_.Of(ready);
    thread.times.ready_ns += ready_ns;
    thread.longest_ready_ns = std::max(thread.longest_ready_ns, ready_ns);
    const bool whole = ready_ns == turn.ready_ns && known_.Whole(ready);
    if (whole) AddTakers(turn, &watched);
    thread.times.running_ns += known_.Of(ran);
    if (turn.pause == Pause::kPreempted) thread.preemptions += known_.Has(turn.ready_from_ns());
    if (turn.ran_ns > 0) {
      const bool begin_seen = turn.pause != Pause::kUnknown || turn.ready_ns > 0;
      const bool counts = begin_seen && known_.Has(turn.run_from_ns());
      thread.turns += counts;
      thread.migrations += counts && watched.cpu >= 0 && watched.cpu != turn.cpu;
      watched.cpu = turn.cpu;
    }
    watched.until_ns = std::max(watched.until_ns, turn.until_ns);
  }

  static void AddPause(Pause pause, int64_t ns, SchedulingTimes* times) {
    switch (pause) {
      case Pause::kSlept:
        times->asleep_ns += ns;
        return;
      case Pause::kUninterruptible:
        times->uninterruptible_ns += ns;
        return;
      case Pause::kStopped:
        times->stopped_ns += ns;
        return;
      case Pause::kPreempted:
      case Pause::kUnknown:
        return;  // they have none
    }
  }

  // No more than the wait, whatever a damaged file says.
  void AddTakers(const Turn& turn, Watched* watched) const {
    int64_t left_ns = turn.ready_ns;
    for (uint32_t i = 0; i < turn.takers; ++i) {
      const evidence::Taker& taker = scheduling_.takers[turn.first_taker + i];
      const int64_t ns = std::min(taker.ns, left_ns);
      left_ns -= ns;
      watched->takers[{taker.who.kind, taker.who.index}] += ns;
    }
  }

  // Of none: who it was is not known.
  bool Name(const std::pair<Who::Kind, uint32_t>& who, uint32_t process, TakerKey* key) const {
    switch (who.first) {
      case Who::Kind::kUnknown:
      case Who::Kind::kInterrupt:
        return false;
      case Who::Kind::kIdle:
        *key = {CpuTaker::Kind::kNobody, 0, 0, "", ""};
        return true;
      case Who::Kind::kThread: {
        const uint32_t of = scheduling_.threads[who.second].process;
        const bool own = of == process;
        *key = {own ? CpuTaker::Kind::kOwnThreads : CpuTaker::Kind::kRecorded, own ? 0 : of, 0, "",
                ""};
        return true;
      }
      case Who::Kind::kOther: {
        const evidence::OtherThread& other = scheduling_.others[who.second];
        if (other.name.empty() && other.process_name.empty()) return false;  // of a damaged line
        *key = {CpuTaker::Kind::kOther, 0, other.pid, other.name, other.process_name};
        return true;
      }
    }
    return false;
  }

  void AddTo(uint32_t number, Watched* watched, Takers* of_process, ProcessScheduling* process) {
    ThreadScheduling& thread = watched->thread;
    Takers takers;
    for (const auto& [who, ns] : watched->takers) {
      TakerKey key;
      if (ns == 0 || !Name(who, number, &key)) continue;
      takers[key] += ns;
      (*of_process)[key] += ns;
    }
    thread.takers = ListOf(takers);
    thread.times.unknown_ns = window_ns() - thread.times.known_ns();
    process->times += thread.times;
    process->turns += thread.turns;
    process->preemptions += thread.preemptions;
    process->migrations += thread.migrations;
    process->threads.push_back(std::move(thread));
  }

  const Scheduling& scheduling_;
  const Known known_;
  const Stretch window_;
  std::vector<Watched> watched_;  // beside Scheduling::threads
};

}  // namespace

SchedulingTimes& SchedulingTimes::operator+=(const SchedulingTimes& other) {
  running_ns += other.running_ns;
  ready_ns += other.ready_ns;
  uninterruptible_ns += other.uninterruptible_ns;
  asleep_ns += other.asleep_ns;
  stopped_ns += other.stopped_ns;
  unknown_ns += other.unknown_ns;
  return *this;
}

int64_t ThreadScheduling::unnamed_ns() const { return Unnamed(times, takers); }
int64_t ProcessScheduling::unnamed_ns() const { return Unnamed(times, takers); }

NodeScheduling SchedulingOf(const evidence::Scheduling& scheduling, int64_t begin_ns,
                            int64_t end_ns) {
  return Adding(scheduling, {begin_ns, end_ns}).Take();
}

NodeScheduling Named(NodeScheduling scheduling, uint32_t node,
                     std::span<const timeline::ProcessResult> processes) {
  scheduling.node = node;
  for (ProcessScheduling& scheduled : scheduling.processes) {
    for (const timeline::ProcessResult& process : processes) {
      ProcessKey key = process.key;
      key.node = 0;
      if (key != scheduled.process) continue;
      scheduled.name = process.name;
      scheduled.part = process.part;
      scheduled.rank = process.rank;
    }
  }
  return scheduling;
}

}  // namespace syncline::analysis

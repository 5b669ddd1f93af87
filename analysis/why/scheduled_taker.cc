// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/scheduled_taker.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "analysis/why/takers.h"
#include "analysis/why/task_names.h"

namespace syncline::analysis::why {
namespace {

using evidence::Scheduling;
using evidence::Who;

// Somebody by name, as one that had the CPU.
using Key = std::tuple<Taker::Kind, int32_t, std::string>;  // kind, pid, name

Key KeyOf(std::span<const RankInput> job, const RankInput& rank, const Who& who) {
  const Scheduling& scheduling = *rank.scheduling;
  int32_t pid = 0;
  std::string name;
  if (who.kind == Who::Kind::kThread) {
    const evidence::ScheduledThread& thread = scheduling.threads[who.index];
    pid = scheduling.processes[thread.process].pid;
    name = thread.name;
  } else if (who.kind == Who::Kind::kOther) {
    const evidence::OtherThread& other = scheduling.others[who.index];
    pid = other.pid;
    name = other.process_name.empty() ? other.name : other.process_name;
    if (other.of_parent()) {
      // A child, known by its parent alone: of the rank itself or of its loader it is the rank's.
      const Taker::Kind parent = KindOfProcess(job, rank, pid);
      const Taker::Kind kind = parent == Taker::Kind::kOwnThread ? Taker::Kind::kOwnLoader : parent;
      if (pid <= 0) return {Taker::Kind::kUnknown, 0, ""};
      return {kind, pid, other.name + " of " + other.process_name};
    }
  } else {
    return {who.kind == Who::Kind::kIdle ? Taker::Kind::kNobody : Taker::Kind::kUnknown, 0, ""};
  }
  if (pid <= 0) return {Taker::Kind::kUnknown, 0, ""};
  return {KindOfProcess(job, rank, pid), pid, name};
}

// Of [begin, end), what lies in the steps; these are in order and apart from each other.
int64_t InSteps(std::span<const OwnInterval> steps, int64_t begin_ns, int64_t end_ns) {
  auto step = std::partition_point(steps.begin(), steps.end(),
                                   [&](const OwnInterval& one) { return one.end_ns <= begin_ns; });
  int64_t inside_ns = 0;
  for (; step != steps.end() && step->begin_ns < end_ns; ++step) {
    inside_ns += std::min(step->end_ns, end_ns) - std::max(step->begin_ns, begin_ns);
  }
  return inside_ns;
}

}  // namespace

std::vector<const evidence::Turn*> DriverTurns(const RankInput& rank, int32_t driver_tid) {
  std::vector<const evidence::Turn*> turns;
  if (rank.scheduling == nullptr) return turns;
  for (const evidence::Turn& turn : rank.scheduling->turns) {
    const evidence::ScheduledThread& thread = rank.scheduling->threads[turn.thread];
    if (thread.process != rank.scheduling_process || thread.shown_tid() != driver_tid) continue;
    turns.push_back(&turn);
  }
  return turns;
}

std::optional<Taker> ScheduledTakerOf(std::span<const RankInput> job, const RankInput& rank,
                                      int32_t driver_tid, std::span<const OwnInterval> steps) {
  if (rank.scheduling == nullptr || steps.empty()) return std::nullopt;
  double waited_ns = 0;
  std::map<std::pair<Who::Kind, uint32_t>, double> by_who;
  for (const evidence::Turn* const turn : DriverTurns(rank, driver_tid)) {
    if (turn->ready_ns <= 0) continue;
    const int64_t inside_ns = InSteps(steps, turn->ready_from_ns(), turn->run_from_ns());
    if (inside_ns <= 0) continue;
    // Of a wait that is cut by a step's end in proportion: who had the CPU when is not kept.
    const double part = static_cast<double>(inside_ns) / static_cast<double>(turn->ready_ns);
    waited_ns += static_cast<double>(inside_ns);
    for (uint32_t i = 0; i < turn->takers; ++i) {
      const evidence::Taker& taker = rank.scheduling->takers[turn->first_taker + i];
      by_who[{taker.who.kind, taker.who.index}] += part * static_cast<double>(taker.ns);
    }
  }
  double known_ns = 0;
  std::map<Key, double> had_ns;
  for (const auto& [who, ns] : by_who) {
    const Key key = KeyOf(job, rank, {who.first, who.second});
    if (std::get<0>(key) == Taker::Kind::kUnknown) continue;
    had_ns[key] += ns;
    known_ns += ns;
  }
  if (waited_ns <= 0 || known_ns * 2 < waited_ns) return std::nullopt;
  std::map<Taker::Kind, double> by_kind;
  for (const auto& [key, ns] : had_ns) by_kind[std::get<0>(key)] += ns;
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto most = std::max_element(by_kind.begin(), by_kind.end(), less);
  Taker best;
  best.kind = most->first;
  best.by_scheduler = true;
  best.cpu_ns = static_cast<int64_t>(most->second / static_cast<double>(steps.size()));
  double largest_ns = -1;
  for (const auto& [key, ns] : had_ns) {
    if (std::get<0>(key) != best.kind || ns <= largest_ns) continue;
    largest_ns = ns;
    best.pid = std::get<1>(key);
    best.name = std::get<2>(key);
  }
  best.transfers = best.kind == Taker::Kind::kOwnThread && IsTransferThread(best.name);
  return best;
}

std::optional<Taker> WhoTook(const JobInput& input, const JudgedRank& rank) {
  const auto exact = ScheduledTakerOf(input.ranks, *rank.input, rank.driver_tid, rank.steps);
  if (exact.has_value()) return exact;
  return TakerOf(input.ranks, *rank.input, rank.driver_tid, rank.samples, rank.steps.size());
}

}  // namespace syncline::analysis::why

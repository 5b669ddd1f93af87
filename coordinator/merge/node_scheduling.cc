// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/node_scheduling.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analysis/scheduling.h"
#include "common/process_part.h"
#include "coordinator/merge/node_file.h"

namespace syncline::merge {
namespace {

using evidence::Pause;
using evidence::Scheduling;
using evidence::Who;
using timeline::ScheduledTurn;
using State = timeline::ThreadState::State;

constexpr NodeFile kFile = {evidence::kSchedulingFileName, "when the node's threads ran",
                            "scheduler's trace"};

ProcessKey KeyOf(const evidence::ProcessIdentity& process) {
  return {0, static_cast<uint64_t>(process.pid_namespace_inode), process.own_pid,
          process.start_ticks};
}

// "rank 1", "loader worker 0 of rank 1"; of a process of no known part "train (pid 26)".
std::string NameOf(const evidence::ProcessIdentity& process, const timeline::NodeInput& node) {
  for (const timeline::KnownProcess& known : node.processes) {
    ProcessKey key = known.key;
    key.node = 0;
    if (key != KeyOf(process)) continue;
    std::string part = PartText({known.part, known.rank, known.worker_id});
    if (part.empty() && known.rank >= 0) part = absl::StrCat("rank ", known.rank);
    if (!part.empty()) return part;
  }
  const int32_t pid = process.own_pid != 0 ? process.own_pid : process.pid;
  return absl::StrCat(process.name, " (pid ", pid, ")");
}

std::string NameOf(const evidence::OtherThread& other) {
  const bool says_process = !other.process_name.empty() && other.process_name != other.name;
  if (other.pid == 0) {
    return says_process ? absl::StrCat(other.name, " of ", other.process_name) : other.name;
  }
  return absl::StrCat(other.name, says_process ? absl::StrCat(" of ", other.process_name) : "",
                      " (pid ", other.pid, ")");
}

// Texts of who had a CPU or woke a thread: nobody, an interrupt, the recorded threads, the others.
class Names {
 public:
  Names(const Scheduling& scheduling, const timeline::NodeInput& node,
        std::vector<std::string>* names)
      : first_other_(kFirstThread + static_cast<uint32_t>(scheduling.threads.size())) {
    *names = {"no one", "an interrupt"};
    std::vector<std::string> processes;
    for (const auto& process : scheduling.processes) processes.push_back(NameOf(process, node));
    for (const evidence::ScheduledThread& thread : scheduling.threads) {
      names->push_back(
          absl::StrCat(thread.name, " ", thread.shown_tid(), " of ", processes[thread.process]));
    }
    for (const evidence::OtherThread& other : scheduling.others) names->push_back(NameOf(other));
  }

  uint32_t Of(const Who& who) const {
    switch (who.kind) {
      case Who::Kind::kUnknown:
        return timeline::kNoName;
      case Who::Kind::kIdle:
        return 0;
      case Who::Kind::kInterrupt:
        return 1;
      case Who::Kind::kThread:
        return kFirstThread + who.index;
      case Who::Kind::kOther:
        return first_other_ + who.index;
    }
    return timeline::kNoName;
  }

 private:
  static constexpr uint32_t kFirstThread = 2;
  uint32_t first_other_;
};

State StateOf(Pause pause) {
  switch (pause) {
    case Pause::kUninterruptible:
      return State::kUninterruptible;
    case Pause::kStopped:
      return State::kStopped;
    default:
      return State::kAsleep;
  }
}

ScheduledTurn Made(const evidence::Turn& turn, const Names& names) {
  const bool paused = turn.pause != Pause::kPreempted && turn.pause != Pause::kUnknown;
  return {.until_ns = turn.until_ns,
          .ran_ns = turn.ran_ns,
          .ready_ns = turn.ready_ns,
          .pause_ns = paused ? turn.pause_ns : 0,
          .pause = StateOf(turn.pause),
          .cpu = turn.cpu,
          .waker = names.Of(turn.waker),
          .first_taker = turn.first_taker,
          .takers = static_cast<uint8_t>(turn.takers)};
}

std::optional<Scheduling> ReadNode(const std::string& node, OpenedInputs* inputs) {
  return ReadNodeFile(node, kFile, evidence::ParseScheduling, inputs);
}

}  // namespace

std::deque<std::optional<Scheduling>> ReadScheduling(OpenedInputs* inputs) {
  std::deque<std::optional<Scheduling>> all;
  for (const timeline::NodeInput& node : inputs->nodes) all.push_back(ReadNode(node.name, inputs));
  return all;
}

timeline::SchedulingSeries SchedulingSeriesOf(const Scheduling& scheduling,
                                              const timeline::NodeInput& node) {
  timeline::SchedulingSeries series;
  const Names names(scheduling, node, &series.names);
  for (const evidence::Taker& taker : scheduling.takers) {
    series.takers.push_back({names.Of(taker.who), taker.ns});
  }
  for (const evidence::ScheduledThread& thread : scheduling.threads) {
    series.threads.push_back(
        {KeyOf(scheduling.processes[thread.process]), thread.shown_tid(), thread.name, {}});
  }
  for (const evidence::Turn& turn : scheduling.turns) {
    series.threads[turn.thread].turns.push_back(Made(turn, names));
  }
  for (const evidence::SchedulingLoss& loss : scheduling.losses) {
    series.losses.push_back({.reason = LossReason::kDiscardedEvents,
                             .begin_ns = loss.from_ns,
                             .end_ns = loss.until_ns,
                             .count = loss.count,
                             .source = "scheduler's trace",
                             .detail = "the kernel had no room for so many events of a CPU"});
  }
  return series;
}

void AddScheduling(timeline::Interval counted, bool draw, OpenedInputs* inputs) {
  if (inputs->run.empty()) return;
  for (size_t i = 0; i < inputs->nodes.size(); ++i) {
    // One node's at a time: as text it is larger than what becomes of it.
    const std::optional<Scheduling> scheduling = ReadNode(inputs->nodes[i].name, inputs);
    if (!scheduling.has_value()) continue;
    if (draw) inputs->nodes[i].scheduling = SchedulingSeriesOf(*scheduling, inputs->nodes[i]);
    const timeline::Placement* placement = inputs->facts[i].placement;
    if (placement == nullptr || !inputs->build.window.has_value()) continue;
    inputs->facts[i].scheduling = analysis::SchedulingOf(
        *scheduling, placement->ClockNs(counted.begin), placement->ClockNs(counted.end));
  }
}

}  // namespace syncline::merge

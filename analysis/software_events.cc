// SPDX-License-Identifier: Apache-2.0
#include "analysis/software_events.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/hot_code.h"
#include "analysis/names.h"

namespace syncline::analysis {
namespace {

using evidence::kSoftwareKinds;
using evidence::SoftwareEvent;
using evidence::SoftwareKind;
using evidence::SoftwareTotals;

constexpr double kZ95 = 1.96;
constexpr int64_t kTurnNs = 100'000'000;  // the agent's
constexpr int kTextIdBits = 32;
static_assert(sizeof(timeline::TextId) * 8 == kTextIdBits);
using PerKind = std::array<double, kSoftwareKinds>;

size_t Number(SoftwareKind kind) { return static_cast<size_t>(kind); }

std::array<uint64_t, kSoftwareKinds> ByKind(const SoftwareTotals& totals) {
  return {totals.minor_faults, totals.major_faults, totals.blocked, totals.preempted, 0};
}

// What each event of a thread is multiplied with, and whether they then add up to the kernel's
// count.
struct Scale {
  PerKind of;
  std::array<bool, kSoftwareKinds> adds_up{};
};

// Of a thread that was watched in some turns only. `by_time`: where the kernel counts nothing.
Scale ScaleByTime(double by_time) {
  Scale scale;
  scale.of.fill(by_time);
  return scale;
}

void ScaleByCount(const PerKind& counted, const std::array<uint64_t, kSoftwareKinds>& kernels,
                  bool kernel, Scale* scale) {
  for (size_t kind = 0; kind < kSoftwareKinds; ++kind) {
    // Without the kernel's own faults the counts are not of the same faults.
    const bool faults =
        kind == Number(SoftwareKind::kMinorFault) || kind == Number(SoftwareKind::kMajorFault);
    if (kind == Number(SoftwareKind::kMoved) || (faults && !kernel)) continue;
    if (counted[kind] > 0 && kernels[kind] > 0) {
      scale->of[kind] = static_cast<double>(kernels[kind]) / counted[kind];
      scale->adds_up[kind] = true;
    }
  }
}

}  // namespace

void SoftwarePlaces::Add(const SoftwareInput& input) {
  const evidence::CodeSamples& code = *input.code;
  const evidence::SoftwareEvents& software = code.software;
  if (!software.known) return;
  SoftwareNode& node = nodes_.emplace_back();
  node.node = input.node;
  node.kernel = software.kernel;
  bool partly = true;
  if (software.watched.has_value()) {
    node.watched_ns = software.watched->watched_ns;
    node.all_ns = software.watched->all_ns;
    node.cost_ns = software.watched->cost_ns;
    partly = node.watched_ns < node.all_ns;
  }
  std::vector<PerKind> counted(code.threads.size(), PerKind{});
  for (const SoftwareEvent& event : software.events) {
    counted[event.thread][Number(event.kind)] += static_cast<double>(event.count);
  }
  std::vector<bool> incomplete(code.threads.size(), partly);
  for (const evidence::SoftwareLoss& loss : software.losses) {
    node.lost += loss.count;
    incomplete[loss.thread] = true;
  }
  // Chance chose turns that stand for more or less time than there was.
  const bool projected = partly && node.watched_ns >= 0 && software.watched->projected_ns > 0;
  const double by_time = projected ? static_cast<double>(node.all_ns) /
                                         static_cast<double>(software.watched->projected_ns)
                                   : 1;
  std::vector<Scale> scale(code.threads.size(), ScaleByTime(by_time));
  for (const SoftwareTotals& totals : software.totals) {
    const auto kernels = ByKind(totals);
    if (incomplete[totals.thread]) {
      ScaleByCount(counted[totals.thread], kernels, software.kernel, &scale[totals.thread]);
    }
    for (size_t kind = 0; kind < kSoftwareKinds; ++kind) {
      node.counted[kind] += counted[totals.thread][kind];
      node.kernels[kind] += kernels[kind];
    }
  }
  for (const SoftwareEvent& event : software.events) {
    if (event.at_ns < input.begin_ns || event.at_ns >= input.end_ns) continue;
    Thread& thread = threads_[KeyOf(input.node, code, code.threads[event.thread])];
    thread.adds_up = scale[event.thread].adds_up;
    const double factor = scale[event.thread].of[Number(event.kind)];
    const double count = static_cast<double>(event.count) * factor;
    Placed placed{.at_ns = event.at_ns, .kind = event.kind, .count = count};
    // One that stands for itself is no sample.
    if (event.count > 1 || factor != 1) placed.half_width_squared = count * count * kZ95 * kZ95;
    placed.away_ns = static_cast<double>(event.away_ns) * count;
    thread.events.push_back(placed);
  }
  for (const evidence::CodeThread& thread : code.threads) {
    Thread& known = threads_[KeyOf(input.node, code, thread)];
    const int64_t from_ns = std::max(thread.from_ns, input.begin_ns);
    // Its number may have been another thread's of the process before.
    known.from_ns = known.until_ns == 0 ? from_ns : std::min(known.from_ns, from_ns);
    known.until_ns = input.end_ns;
    std::stable_sort(known.events.begin(), known.events.end(),
                     [](const Placed& a, const Placed& b) { return a.at_ns < b.at_ns; });
  }
}

void SoftwarePlaces::OnTrack(const timeline::Track& track) {
  if (track.kind != timeline::TrackKind::kThread) return;
  const auto found = threads_.find(ThreadKey{track.process, track.tid});
  if (found == threads_.end()) return;
  if (by_track_.size() <= track.id) by_track_.resize(track.id + 1);
  by_track_[track.id] = &found->second;
}

// Spans end before those that they lie in, so that they mostly come from the innermost on; of late
// ones the depth tells.
void SoftwarePlaces::OnSpanEnd(const timeline::Span& span) {
  if (span.track >= by_track_.size() || by_track_[span.track] == nullptr) return;
  Thread& thread = *by_track_[span.track];
  thread.has_tasks = true;
  if (span.node_end.ns <= thread.from_ns || span.node_begin.ns >= thread.until_ns) return;
  ++thread.calls[uint64_t{span.category} << kTextIdBits | span.name];
  auto at = std::lower_bound(
      thread.events.begin(), thread.events.end(), span.node_begin.ns,
      [](const Placed& event, int64_t begin_ns) { return event.at_ns < begin_ns; });
  for (; at != thread.events.end() && at->at_ns < span.node_end.ns; ++at) {
    if (at->name != timeline::kNoText && at->depth >= span.depth) continue;
    at->depth = span.depth;
    at->category = span.category;
    at->name = span.name;
  }
}

namespace {

// Where a thread is watched in some turns only, chance chooses turns: what a task has in one of
// them comes together. Where the thread's events of a kind add up to the kernel's count, it is the
// task's part of them that may be wrong, by what the tasks have in each turn; else also how many
// there are in all, by what the task has in each of the `turns`.
class TurnSpread {
 public:
  TurnSpread(const std::array<bool, kSoftwareKinds>& adds_up, double turns)
      : adds_up_(adds_up), turns_(std::max(turns, 2.0)) {}

  // By time.
  void Add(SoftwareTask* task, size_t kind, int64_t at_ns, SoftwareCount one) {
    if (at_ns / kTurnNs != turn_) Close();
    turn_ = at_ns / kTurnNs;
    of_task_[{task, kind}] += one.count;
    of_all_[kind] += one.count;
    sums_[{task, kind}].notes += one.half_width;
  }
  // Adds to each task's half width, which is a square yet, as the one before.
  void Finish() {
    Close();
    for (const auto& [key, sums] : sums_) {
      const auto& [task, kind] = key;
      const double squares = adds_up_[kind] ? SquaresOfPart(sums, all_[kind]) : SquaresOfAll(sums);
      task->kinds[kind].half_width += std::max(sums.notes, kZ95 * kZ95 * squares);
    }
  }

 private:
  struct Sums {
    double count = 0;
    double notes = 0;     // as far as each note is chosen by itself
    double squares = 0;   // of the counts of turns
    double products = 0;  // of them and those of all tasks
  };

  static double SquaresOfPart(const Sums& sums, const Sums& all) {
    const double part = sums.count / all.count;
    return sums.squares - 2 * part * sums.products + part * part * all.squares;
  }
  // A turn may lie in two of kTurnNs: a third of its square is then missed, on average.
  double SquaresOfAll(const Sums& sums) const {
    return 1.5 * sums.squares - sums.count * sums.count / turns_;
  }

  void Close() {
    for (const auto& [key, count] : of_task_) {
      Sums& sums = sums_[key];
      sums.count += count;
      sums.squares += count * count;
      sums.products += count * of_all_[key.second];
    }
    for (size_t kind = 0; kind < kSoftwareKinds; ++kind) {
      all_[kind].count += of_all_[kind];
      all_[kind].squares += of_all_[kind] * of_all_[kind];
    }
    of_task_.clear();
    of_all_ = {};
  }

  const std::array<bool, kSoftwareKinds> adds_up_;
  const double turns_;  // in which it was watched
  int64_t turn_ = -1;
  std::map<std::pair<SoftwareTask*, size_t>, double> of_task_;
  PerKind of_all_{};
  std::map<std::pair<SoftwareTask*, size_t>, Sums> sums_;
  std::array<Sums, kSoftwareKinds> all_{};
};

}  // namespace

SoftwareReport SoftwarePlaces::Take(const std::vector<std::string>& texts) const {
  using Key = std::tuple<SoftwareTask::Where, std::string, std::string>;
  std::map<Key, SoftwareTask> tasks;
  std::map<timeline::TextId, std::string> patterns;
  const auto task_of = [&](timeline::TextId category, timeline::TextId name) {
    const auto [pattern, added] = patterns.try_emplace(name);
    if (added) pattern->second = NamePattern(texts[name]);
    return Key{SoftwareTask::Where::kTask, texts[category], pattern->second};
  };
  for (const auto& [key, thread] : threads_) {
    const auto outside =
        thread.has_tasks ? SoftwareTask::Where::kOutside : SoftwareTask::Where::kWithoutTasks;
    const auto node = std::find_if(
        nodes_.begin(), nodes_.end(),
        [node = key.process.node](const SoftwareNode& one) { return one.node == node; });
    const bool partly = node != nodes_.end() && node->watched_ns < node->all_ns;
    const int64_t watched_ns = partly ? node->watched_ns : 0;
    TurnSpread spread(thread.adds_up,
                      static_cast<double>(watched_ns) / static_cast<double>(kTurnNs));
    for (const Placed& event : thread.events) {
      const bool in_task = event.name != timeline::kNoText;
      SoftwareTask& task =
          tasks[in_task ? task_of(event.category, event.name) : Key{outside, "", ""}];
      SoftwareCount& count = task.kinds[Number(event.kind)];
      count.count += event.count;
      count.away_ns += event.away_ns;
      if (partly) {
        spread.Add(&task, Number(event.kind), event.at_ns,
                   {event.count, event.half_width_squared, 0});
      } else {
        count.half_width += event.half_width_squared;
      }
    }
    spread.Finish();
    for (const auto& [names, calls] : thread.calls) {
      const auto category = static_cast<timeline::TextId>(names >> kTextIdBits);
      tasks[task_of(category, static_cast<timeline::TextId>(names))].calls += calls;
    }
  }
  SoftwareReport report{.nodes = nodes_, .tasks = {}};
  for (auto& [key, task] : tasks) {
    std::tie(task.where, task.domain, task.name) = key;
    for (SoftwareCount& count : task.kinds) count.half_width = std::sqrt(count.half_width);
    report.tasks.push_back(std::move(task));
  }
  const auto weight = [](const SoftwareTask& task) {
    return std::pair(
        task.Of(SoftwareKind::kMinorFault).count,
        task.Of(SoftwareKind::kBlocked).count + task.Of(SoftwareKind::kPreempted).count);
  };
  std::stable_sort(
      report.tasks.begin(), report.tasks.end(),
      [&](const SoftwareTask& a, const SoftwareTask& b) { return weight(a) > weight(b); });
  return report;
}

}  // namespace syncline::analysis

// SPDX-License-Identifier: Apache-2.0
#include "analysis/software_events.h"

#include <algorithm>
#include <cmath>
#include <map>
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
constexpr int kTextIdBits = 32;
static_assert(sizeof(timeline::TextId) * 8 == kTextIdBits);

size_t Number(SoftwareKind kind) { return static_cast<size_t>(kind); }

std::array<uint64_t, kSoftwareKinds> ByKind(const SoftwareTotals& totals) {
  return {totals.minor_faults, totals.major_faults, totals.blocked, totals.preempted, 0};
}

// Until when what happened is known of all threads: what is between two records of a thread whose
// ring overran is not.
int64_t KnownUntil(const evidence::SoftwareEvents& software) {
  int64_t until_ns = software.watched.has_value() ? software.watched->until_ns : 0;
  struct Lost {
    int64_t at_ns = INT64_MAX;  // the first time
    int64_t before_ns = 0;      // the last record before that
  };
  std::map<uint32_t, Lost> lost;  // by thread
  for (const evidence::SoftwareLoss& loss : software.losses) {
    Lost& of_thread = lost[loss.thread];
    of_thread.at_ns = std::min(of_thread.at_ns, loss.at_ns);
  }
  for (const SoftwareEvent& event : software.events) {
    const auto found = lost.find(event.thread);
    if (found == lost.end() || event.at_ns >= found->second.at_ns) continue;
    found->second.before_ns = std::max(found->second.before_ns, event.at_ns);
  }
  for (const auto& [thread, one] : lost) until_ns = std::min(until_ns, one.before_ns);
  return until_ns;
}

}  // namespace

void SoftwarePlaces::Add(const SoftwareInput& input) {
  const evidence::CodeSamples& code = *input.code;
  const evidence::SoftwareEvents& software = code.software;
  if (!software.known) return;
  SoftwareNode& node = nodes_.emplace_back();
  node.node = input.node;
  node.kernel = software.kernel;
  if (software.watched.has_value()) {
    node.watched_ns = software.watched->watched_ns;
    node.all_ns = software.watched->all_ns;
    node.cost_ns = software.watched->cost_ns;
  }
  for (const evidence::SoftwareLoss& loss : software.losses) node.lost += loss.count;
  const int64_t until_ns = std::min(input.end_ns, KnownUntil(software));
  node.table_ns = std::max<int64_t>(0, until_ns - input.begin_ns);
  std::vector<bool> watched(code.threads.size(), false);
  for (const SoftwareTotals& totals : software.totals) {
    watched[totals.thread] = true;
    const auto kernels = ByKind(totals);
    for (size_t kind = 0; kind < kSoftwareKinds; ++kind) node.kernels[kind] += kernels[kind];
  }
  for (const SoftwareEvent& event : software.events) {
    watched[event.thread] = true;
    if (event.at_ns < input.begin_ns || event.at_ns >= until_ns) continue;
    Thread& thread = threads_[KeyOf(input.node, code, code.threads[event.thread])];
    const auto count = static_cast<double>(event.count);
    if (event.kind == SoftwareKind::kMinorFault) note_max_ = std::max(note_max_, count);
    Placed placed{.at_ns = event.at_ns, .kind = event.kind, .count = count};
    // One that stands for itself is no sample.
    if (event.count > 1) placed.half_width_squared = count * count * kZ95 * kZ95;
    placed.away_ns = static_cast<double>(event.away_ns);
    thread.events.push_back(placed);
  }
  for (size_t i = 0; i < code.threads.size(); ++i) {
    const evidence::CodeThread& thread = code.threads[i];
    if (!watched[i]) continue;
    Thread& known = threads_[KeyOf(input.node, code, thread)];
    const int64_t from_ns = std::max(thread.from_ns, input.begin_ns);
    // Its number may have been another thread's of the process before.
    known.from_ns = known.until_ns == 0 ? from_ns : std::min(known.from_ns, from_ns);
    known.until_ns = until_ns;
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
    for (const Placed& event : thread.events) {
      const bool in_task = event.name != timeline::kNoText;
      SoftwareTask& task =
          tasks[in_task ? task_of(event.category, event.name) : Key{outside, "", ""}];
      SoftwareCount& count = task.kinds[Number(event.kind)];
      count.count += event.count;
      count.away_ns += event.away_ns;
      count.half_width += event.half_width_squared;
    }
    for (const auto& [names, calls] : thread.calls) {
      const auto category = static_cast<timeline::TextId>(names >> kTextIdBits);
      tasks[task_of(category, static_cast<timeline::TextId>(names))].calls += calls;
    }
  }
  SoftwareReport report{.nodes = nodes_, .tasks = {}};
  for (auto& [key, task] : tasks) {
    std::tie(task.where, task.domain, task.name) = key;
    for (SoftwareCount& count : task.kinds) count.half_width = std::sqrt(count.half_width);
    SoftwareCount& minor = task.kinds[Number(SoftwareKind::kMinorFault)];
    minor.half_width = std::max(minor.half_width, note_max_);
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

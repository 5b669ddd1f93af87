// SPDX-License-Identifier: Apache-2.0
#include "timeline/coverage.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace syncline::timeline {
namespace {

constexpr int64_t kGateSlackNs = 1'000'000;  // gates are moved at an instant, give or take
constexpr const char* kPaused = "paused by the program (__itt_pause)";
// It may have ended meanwhile, or become another program: nobody knows when.
constexpr const char* kPausedForGood = "paused by the program (__itt_pause), and not resumed";
constexpr const char* kReplaced =
    "the process became another program (exec): that one's events are not in this recording";
constexpr const char* kUnflushed =
    "LTTng exited, or did not finish in time, before it had written the process's later events";

std::string WhyUncovered(const KnownProcess* known, uint64_t counted_lost) {
  if (known != nullptr && known->came_too_late) {
    return "started during the window and exited, or found too late to be recorded";
  }
  if (known != nullptr && known->became_another_program) return kReplaced;
  if (known != nullptr && !known->why_missed.empty()) return known->why_missed;
  if (counted_lost == 0) return "the process made no recordable call in the window";
  return absl::StrCat("LTTng recorded none of the process's calls: it counted ", counted_lost,
                      " that were lost");
}

}  // namespace

// Where the trace is read from its middle, `on` was not met.
void Coverage::Begin(const NodeEvent& event) {
  const KnownProcess* const known = parts_.tables.processes()[event.process].known;
  const bool began_unread = !parts_.read.from_the_start() &&
                            StateOf(event.process).intervals.empty() &&
                            event.kind != EventKind::kOn && event.kind != EventKind::kResume;
  const bool earlier = began_unread && known != nullptr && known->on_ns.has_value() &&
                       *known->on_ns < event.at.node.ns;
  Cover(event.process, earlier ? context_.At(*known->on_ns) : event.at);
}

void Coverage::On(const NodeEvent& event) {
  Process& process = StateOf(event.process);
  switch (event.kind) {
    case EventKind::kOn:
    case EventKind::kResume:
      ApplyPendingEnd(event.process);
      Cover(event.process, event.at);
      break;
    case EventKind::kOff:
      process.counted_events = event.fields.U64(Field::kEvents);
      process.counted_lost = event.fields.U64(Field::kLost);
      process.cost =
          DurationEstimate{.est_ns = static_cast<int64_t>(event.fields.U64(Field::kCostNs))};
      [[fallthrough]];
    case EventKind::kPause:
      // Paused and then switched off: coverage ended at the pause.
      if (!process.pending_end.has_value()) {
        process.pending_end = event.at;
        process.pauses = event.kind == EventKind::kPause;
      }
      process.end_known = true;
      break;
    default:
      break;
  }
}

void Coverage::Cover(uint32_t index, const Moment& moment) {
  TrackTable::Process& process = parts_.tracks->ProcessAt(index);
  if (process.covered_since.has_value()) return;
  process.covered_since = moment;
  StateOf(index).end_known = false;
  process.async->CoverageBegins(moment);
  for (const uint32_t thread : process.threads) {
    parts_.tracks->threads()[thread].spans->CoverageBegins(moment);
  }
}

void Coverage::Uncover(uint32_t index, const Moment& moment) {
  TrackTable::Process& process = parts_.tracks->ProcessAt(index);
  if (!process.covered_since.has_value()) return;
  for (const uint32_t number : parts_.tracks->ThreadsOf(&process)) {
    TrackTable::Thread& thread = parts_.tracks->threads()[number];
    parts_.losses->Settle(&thread);
    thread.spans->CoverageEnds(moment);
  }
  process.async->CoverageEnds(moment);
  Process& state = StateOf(index);
  if (std::exchange(state.pauses, false)) state.paused_behind.push_back(state.intervals.size());
  state.intervals.push_back({process.covered_since->node.ns, moment.node.ns});
  process.covered_since.reset();
}

void Coverage::ApplyPendingEnd(uint32_t index) {
  Process& process = StateOf(index);
  if (!process.pending_end.has_value()) return;
  const Moment end = *process.pending_end;
  process.pending_end.reset();
  Uncover(index, end);
}

// Where a process's coverage ends whose `off` was not found.
Moment Coverage::EndWithoutOff(uint32_t index) {
  const TrackTable::Process& met = parts_.tracks->ProcessAt(index);
  const KnownProcess* known = parts_.tables.processes()[index].known;
  const Moment last = met.last.value_or(*met.covered_since);
  if (known == nullptr || !known->off_ns.has_value() || *known->off_ns < last.node.ns) return last;
  const int64_t extent_ns = parts_.ledger->extent().value_or(ClockInterval{}).end_ns;
  const int64_t traced_ns =  // a part may lack its last event
      parts_.read.whole() ? last.node.ns : std::max(last.node.ns, extent_ns);
  const bool all_found =  // what the process counted is of all its events
      parts_.read.whole() && known->counted_lost == 0u && known->counted_events == met.found_events;
  Process& process = StateOf(index);
  process.cut_off = context_.node.unflushed && !all_found && *known->off_ns > traced_ns;
  if (process.cut_off) return context_.At(traced_ns);
  process.end_known = true;
  return context_.At(*known->off_ns);
}

void Coverage::FinishProcess(uint32_t index) {
  Process& process = StateOf(index);
  const TrackTable::Process& met = parts_.tracks->ProcessAt(index);
  const KnownProcess* known = parts_.tables.processes()[index].known;
  if (!met.covered_since.has_value() && process.intervals.empty() && known != nullptr &&
      known->on_ns.has_value()) {
    Cover(index, context_.At(*known->on_ns));
  }
  if (process.pending_end.has_value()) {
    ApplyPendingEnd(index);
  } else if (met.covered_since.has_value()) {
    Uncover(index, EndWithoutOff(index));
  }
  if (known != nullptr) {
    if (!process.counted_events.has_value()) process.counted_events = known->counted_events;
    if (!process.counted_lost.has_value()) process.counted_lost = known->counted_lost;
    if (known->cost.has_value()) process.cost = known->cost;  // the event has no interval
  }
  PushHoles(index);
  LoseInProcess(index);
}

// Where the program paused its own recording.
void Coverage::LosePauses(uint32_t index, const ClockInterval& window) {
  const Process& process = StateOf(index);
  for (const size_t i : process.paused_behind) {
    const bool last = i + 1 == process.intervals.size();
    const int64_t begin_ns = std::max(window.begin_ns, process.intervals[i].end_ns);
    const int64_t end_ns =
        std::min(window.end_ns, last ? window.end_ns : process.intervals[i + 1].begin_ns);
    if (begin_ns >= end_ns) continue;
    parts_.ledger->Add({LossReason::kNotCovered, begin_ns, end_ns, std::nullopt,
                        parts_.tracks->ProcessAt(index).name, last ? kPausedForGood : kPaused},
                       /*draw_on_node=*/false);
  }
}

// What a process that was recorded could not hand to the tracer: before its first event, where the
// process knows how many calls these were, and else at any time until its last. (That nothing of a
// process was recorded is a loss of its own.)
void Coverage::LoseInProcess(uint32_t index) {
  const Process& process = StateOf(index);
  const uint64_t lost = process.counted_lost.value_or(0);
  if (lost == 0 || process.intervals.empty()) return;
  const KnownProcess* known = parts_.tables.processes()[index].known;
  const bool told = known != nullptr && known->asked_ns.has_value() && known->on_ns.has_value();
  const uint64_t before = told ? std::min(lost, known->lost_before_on) : 0;
  const uint64_t later = lost - before;
  const int64_t last_ns = process.end_known ? process.intervals.back().end_ns : kUnknownHi;
  Loss loss{LossReason::kLostInProcess,           kUnknownLo, last_ns, lost,
            parts_.tracks->ProcessAt(index).name, ""};
  if (told) loss.begin_ns = before > 0 ? *known->asked_ns : *known->on_ns;
  if (told && later == 0) loss.end_ns = *known->on_ns;
  loss.detail =
      before == 0 ? "events that the process could not hand to the tracer"
      : later == 0
          ? "calls before LTTng recorded the process's first event"
          : absl::StrCat(before, " calls before LTTng recorded the process's first event; ", later,
                         " later events that it could not hand to the tracer");
  // What the process counted is of the whole recording.
  if (context_.options.cut.has_value()) loss.count.reset();
  parts_.ledger->Add(loss, /*draw_on_node=*/false);
}

void Coverage::PushHoles(uint32_t index) {
  const Process& process = StateOf(index);
  const TrackTable::Process& met = parts_.tracks->ProcessAt(index);
  const KnownProcess* known = parts_.tables.processes()[index].known;
  const auto hole = [&](int64_t begin_ns, int64_t end_ns, const std::string& detail) {
    if (begin_ns >= end_ns) return;
    parts_.ledger->PushHole(
        met.track, {LossReason::kNotCovered, begin_ns, end_ns, std::nullopt, met.name, detail});
  };
  const std::vector<ClockInterval>& covered = process.intervals;
  for (size_t i = 1; i < covered.size(); ++i) {
    hole(covered[i - 1].end_ns, covered[i].begin_ns, "paused by the program, or switched off");
  }
  if (!context_.options.window.has_value()) return;
  const ClockInterval window = context_.Window();
  LosePauses(index, window);
  const bool covers = std::any_of(covered.begin(), covered.end(), [&](const ClockInterval& one) {
    return one.begin_ns < window.end_ns && one.end_ns >= window.begin_ns;
  });
  const bool replaced = known != nullptr && known->became_another_program;
  if (!covers) {
    const std::string why = WhyUncovered(known, process.counted_lost.value_or(0));
    hole(window.begin_ns, window.end_ns, why);
    if (known != nullptr && (known->expected || replaced)) LoseAll(*known, met.name, why);
    return;
  }
  hole(window.begin_ns, std::min(window.end_ns, covered.front().begin_ns),
       "a process is recorded from its first call that LTTng records");
  const int64_t last_ns = std::max(window.begin_ns, covered.back().end_ns);
  const char* const lost = process.cut_off ? kUnflushed : replaced ? kReplaced : nullptr;
  const bool ended = known != nullptr && known->ended_ns.has_value();
  hole(last_ns, window.end_ns,
       lost != nullptr ? lost
       : ended         ? "the process ended"
       : process.end_known
           ? "switched off, or the program paused it"
           : "no data after the last event: the process ended, or stayed inside one call");
  const std::vector<size_t>& paused = process.paused_behind;
  const bool told = std::count(paused.begin(), paused.end(), covered.size() - 1) > 0;
  if (lost == nullptr || told || last_ns >= window.end_ns) return;
  parts_.ledger->Add(
      {LossReason::kNotCovered, last_ns, window.end_ns, std::nullopt, met.name, lost},
      /*draw_on_node=*/false);
}

void Coverage::LoseAll(const KnownProcess& known, const std::string& name, const std::string& why) {
  const ClockInterval window = context_.Window();
  // There may be thousands of short-lived processes: they are one loss.
  parts_.ledger->Add({LossReason::kNotCovered, window.begin_ns, window.end_ns, std::nullopt,
                      known.came_too_late ? "short-lived processes" : name, why},
                     /*draw_on_node=*/false);
}

void Coverage::LoseUntracked() {
  if (!context_.options.window.has_value()) return;
  std::set<const KnownProcess*> tracked;
  for (const ProcessEntry& entry : parts_.tables.processes()) tracked.insert(entry.known);
  for (const KnownProcess& known : context_.node.processes) {
    if (!known.expected || tracked.count(&known) != 0) continue;
    ProcessEntry entry;
    entry.key = known.key;
    entry.known = &known;
    LoseAll(known, parts_.tracks->NameOfProcess(entry),
            WhyUncovered(&known, known.counted_lost.value_or(0)));
  }
}

void Coverage::FinishNode() {
  LoseBehindGate();
  LoseSilently();
}

// The gate may have been closed before the window's end, by the agent's lease or for lack of disk.
void Coverage::LoseBehindGate() {
  const NodeInput& node = context_.node;
  if (!context_.options.window.has_value() || !node.closed_ns.has_value()) return;
  const int64_t end_ns = context_.Window().end_ns;
  // The model that placed the window's end then was another one than this.
  const int64_t doubt_ns = 2 * node.placement->BoundNs(end_ns).value_or(0);
  if (end_ns - *node.closed_ns <= std::max(kGateSlackNs, doubt_ns)) return;
  parts_.ledger->Add({LossReason::kNotCovered, *node.closed_ns, end_ns, std::nullopt, node.name,
                      absl::StrCat("the agent stopped recording early",
                                   node.why_closed.empty() ? "" : ": ", node.why_closed)},
                     /*draw_on_node=*/true);
}

// The process counted more events than were found, beyond what the tracer owns up to.
void Coverage::LoseSilently() {
  if (!parts_.read.whole()) return;  // what the processes counted is of all their events
  // A whole packet or file is missing: it explains any number.
  if (!parts_.ledger->counts_are_known()) return;
  uint64_t missing = 0;
  std::string who;
  for (uint32_t i = 0; i < parts_.tracks->processes().size(); ++i) {
    const TrackTable::Process& met = parts_.tracks->processes()[i];
    const std::optional<uint64_t> counted = StateOf(i).counted_events;
    if (met.track == kNoTrack || !counted.has_value() || *counted <= met.found_events) continue;
    missing += *counted - met.found_events;
    absl::StrAppend(&who, who.empty() ? "" : ", ", met.name);
  }
  if (missing <= parts_.ledger->declared()) return;
  parts_.ledger->Add({LossReason::kSilent, 0, 0, missing - parts_.ledger->declared(), who,
                      "the processes counted more events than the trace holds"},
                     /*draw_on_node=*/true);
}

}  // namespace syncline::timeline

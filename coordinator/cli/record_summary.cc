// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/record_summary.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/receipt.h"
#include "common/duration_text.h"
#include "common/process_part.h"
#include "coordinator/cli/parse.h"
#include "coordinator/cli/terminal.h"
#include "coordinator/record/translate.h"
#include "export/report/receipt_text.h"

namespace syncline::cli {
namespace {

constexpr size_t kReceiptColumns = 100;
constexpr size_t kNodesNamed = 4;

using recording::NodeRecord;
using recording::NodeState;

// "+120 µs ± 9.81 µs", relative to `base_ns` of the timeline.
std::string InstantText(const TimelineEstimate& instant, int64_t base_ns) {
  if (!instant.bounded()) return "unknown";
  const int64_t late_ns = instant.est.ns - base_ns;
  return absl::StrCat(SignedDurationText(late_ns), " ± ", DurationText(instant.bound_ns()));
}

// The largest distance between two nodes' achieved instants, with its bound.
std::string SkewText(const std::vector<TimelineEstimate>& instants) {
  std::optional<TimelineEstimate> first;
  std::optional<TimelineEstimate> last;
  size_t known = 0;
  for (const TimelineEstimate& instant : instants) {
    if (!instant.bounded()) continue;
    ++known;
    if (!first || instant.est.ns < first->est.ns) first = instant;
    if (!last || instant.est.ns > last->est.ns) last = instant;
  }
  if (known < 2) return "";
  return absl::StrCat(DurationText(last->est.ns - first->est.ns), " ± ",
                      DurationText(first->bound_ns() + last->bound_ns()));
}

// What the columns STARTED and STOPPED are compared with, and how far apart the nodes were.
void PrintSkew(const recording::Recording& recording, const std::vector<TimelineEstimate>& starts,
               const std::vector<TimelineEstimate>& stops, std::ostream& out) {
  out << "STARTED, STOPPED: compared with the requested instant, on the clock of "
      << Printable(recording.reference.node) << "; +: later, -: earlier\n";
  const std::string start_skew = SkewText(starts);
  const std::string stop_skew = SkewText(stops);
  if (start_skew.empty()) return;
  out << "\nfrom the first node to the last: start " << start_skew;
  if (!stop_skew.empty()) out << ", stop " << stop_skew;
  out << '\n';
}

uint64_t EventsOf(const NodeRecord& node) {
  uint64_t events = 0;
  for (const recording::ProcessRecord& process : node.processes) events += process.events;
  return events;
}

size_t CoveredOf(const NodeRecord& node) {
  return static_cast<size_t>(std::count_if(node.processes.begin(), node.processes.end(),
                                           [&](const recording::ProcessRecord& process) {
                                             return recording::CoversWindow(node, process);
                                           }));
}

// Nodes that are not complete, and what else makes the recording incomplete: true whoever asks.
void PrintStates(const Context& context, const record::Recorded& recorded,
                 const std::filesystem::path& directory) {
  const recording::Recording& recording = recorded.recording;
  for (const NodeRecord& node : recording.nodes) {
    if (node.state == NodeState::kComplete) continue;
    const std::string why = node.state == NodeState::kIncomplete && node.failure.empty()
                                ? record::DescribeLoss(node)
                                : node.failure;
    PrintNote(context, "warning", node.name,
              absl::StrCat(recording::NodeStateName(node.state), ": ", why),
              node.state == NodeState::kLeft && !recorded.gone_from.contains(node.name)
                  ? absl::StrCat("`syncline fetch ", directory.string(), "` collects it")
                  : "");
  }
  if (recording::NothingToTrace(recording)) {
    PrintNote(context, "warning", "", recording::kNothingToTrace, "");
  }
  if (recording.window.stop_reason == "coordinator lost") {
    PrintNote(context, "warning", "",
              "the recording command ended early: clocks were compared only until then, and bounds "
              "grow from there (200 ppm of the time since); the stop skew in the report shows how "
              "far",
              "");
  }
}

// What a `fetch` brought: what was not here `before`.
std::string FetchedText(const recording::Recording& before, const recording::Recording& after) {
  std::vector<std::string> from;
  uint64_t bytes = 0;
  bool wanted = false;
  for (size_t i = 0; i < std::min(before.nodes.size(), after.nodes.size()); ++i) {
    const NodeRecord& was = before.nodes[i];
    const NodeRecord& is = after.nodes[i];
    if (was.state == NodeState::kMissing || was.fetched.complete) continue;
    wanted = true;
    if (!is.fetched.complete) continue;
    from.push_back(Printable(is.name));
    bytes += is.fetched.bytes;
  }
  if (!wanted) return "nothing was left to fetch: all its data is here";
  if (from.empty()) return "nothing more was fetched";
  const size_t nodes = from.size();
  if (nodes > kNodesNamed) from.resize(kNodesNamed);
  std::string text =
      absl::StrCat("fetched ", FormatSize(bytes), " from ", absl::StrJoin(from, ", "));
  if (nodes > kNodesNamed) absl::StrAppend(&text, " and ", nodes - kNodesNamed, " more");
  return text;
}

// A rank that hangs inside one task looks like one that has nothing to do. One line a node: a job
// may have forked hundreds.
void PrintIdle(const Context& context, const recording::Recording& recording) {
  for (const NodeRecord& node : recording.nodes) {
    std::vector<const recording::ProcessRecord*> idle;
    for (const recording::ProcessRecord& process : node.processes) {
      if (!process.present_at_prepare || recording::CoversWindow(node, process) ||
          recording::MissedWindow(node, process)) {
        continue;
      }
      idle.push_back(&process);
    }
    if (idle.empty()) continue;
    PrintNote(context, "warning", node.name,
              absl::StrCat(record::NameSome(idle), " made no recordable call in the window: ",
                           idle.size() == 1 ? "it was" : "each was",
                           " idle, or inside one call all the time"),
              "");
  }
}

// The nodes, and what came from all of them together.
void PrintNodes(const Table& table, const recording::Recording& recording, std::ostream& out) {
  table.Print(out);
  uint64_t bytes = 0;
  size_t nodes = 0;
  for (const NodeRecord& node : recording.nodes) {
    bytes += node.fetched.bytes;
    nodes += node.fetched.bytes > 0 ? 1 : 0;
  }
  if (nodes == 0) return;
  out << "fetched: " << FormatSize(bytes) << " from " << nodes
      << (nodes == 1 ? " node\n" : " nodes\n");
}

// Parts of a job need no command, except children: those of one command are one row.
std::string ReceiptName(const std::string& node, const recording::ProcessRecord& process) {
  const std::string part = PartText({process.part, process.rank});
  if (process.part == kPartChild) {
    return absl::StrCat(node, " · ", part, " · ", process.command_line);
  }
  if (!part.empty()) return absl::StrCat(node, " · ", part, " · ", process.own_pid);
  return absl::StrCat(node, " · ", process.own_pid, " · ", process.command_line);
}

// Its overhead, by the processes' own measurements. Those that tell nothing are not named here.
void PrintReceipt(const recording::Recording& recording, std::ostream& out) {
  std::vector<analysis::NodeReceipt> nodes;
  for (const NodeRecord& node : recording.nodes) {
    if (node.stop.gate_end_monotonic_ns == 0) continue;
    const recording::Volume volume = recording::VolumeOf(node);
    analysis::NodeReceipt& receipt = nodes.emplace_back();
    receipt.name = node.name;
    receipt.trace_bytes = volume.bytes;
    receipt.discarded_events = volume.discarded_events;
    receipt.lost_packets = volume.lost_packets;
    receipt.kineto = node.fetched.kineto_profiles > 0;
    receipt.tensorflow_profiler = node.fetched.profiles > node.fetched.kineto_profiles;
    for (const recording::ProcessRecord& process : node.processes) {
      if (process.on_monotonic_ns == 0) continue;
      const int64_t end_ns = process.off_monotonic_ns != 0 ? process.off_monotonic_ns
                                                           : node.stop.gate_end_monotonic_ns;
      receipt.processes.push_back(
          {.name = ReceiptName(node.name, process),
           .part = process.part,
           .job = process.job,
           .rank = process.rank,
           .events = process.events,
           .covered_ns = std::max<int64_t>(0, end_ns - process.on_monotonic_ns),
           .cost = recording::CostOf(process)});
    }
  }
  const recording::Window& window = recording.window;
  const std::string text = report::ReceiptText(
      nodes, window.end_timeline_ns - window.begin_timeline_ns, kReceiptColumns, 0);
  if (!text.empty()) out << "\noverhead of the recording:\n" << text;
}

}  // namespace

TimelineEstimate AchievedInstant(const clocksync::ClockModel& model, uint32_t index,
                                 const recording::Gate& gate) {
  const ClockId clock{index, ClockKind::kRaw};
  if (gate.gate_end_monotonic_raw_ns == 0 || !model.Knows(clock)) return {};
  const TimelineEstimate begin = model.Locate({clock, gate.gate_begin_monotonic_raw_ns});
  TimelineEstimate end = model.Locate({clock, gate.gate_end_monotonic_raw_ns});
  end.lo = begin.lo;
  return end;
}

int PrintSummary(const Context& context, const record::Recorded& recorded,
                 const std::filesystem::path& directory) {
  const recording::Recording& recording = recorded.recording;
  Table table({"NODE", "STATE", "STARTED", "STOPPED", "PROCESSES", "EVENTS", "SIZE"});
  std::vector<TimelineEstimate> starts;
  std::vector<TimelineEstimate> stops;
  for (uint32_t i = 0; i < recording.nodes.size(); ++i) {
    const NodeRecord& node = recording.nodes[i];
    if (node.state == NodeState::kMissing) {
      table.AddRow({node.name, recording::NodeStateName(node.state)});
      continue;
    }
    starts.push_back(AchievedInstant(recorded.clocks.model, i, node.start));
    stops.push_back(AchievedInstant(recorded.clocks.model, i, node.stop));
    // What its processes counted comes with the answer to Stop.
    const bool left = node.state == NodeState::kLeft;
    const bool counted = !left || node.stop.gate_end_monotonic_ns != 0;
    table.AddRow(
        {node.name, recording::NodeStateName(node.state), InstantText(starts.back(), 0),
         InstantText(stops.back(), recording.window.end_timeline_ns),
         counted ? absl::StrCat(CoveredOf(node), " of ", node.processes.size()) : "unknown",
         counted ? FormatCount(EventsOf(node)) : "unknown",
         left ? "-" : FormatSize(node.fetched.bytes)});
  }
  std::ostream& out = *context.out;
  if (!context.quiet) {
    out << "recording " << recording.recording_id << ": "
        << DurationText(recording.window.end_timeline_ns) << ", " << recording.window.stop_reason
        << "\n\n";
    PrintNodes(table, recording, out);
    if (!starts.empty()) PrintSkew(recording, starts, stops, out);
    PrintReceipt(recording, out);
  }
  PrintStates(context, recorded, directory);
  PrintIdle(context, recording);
  for (const NodeRecord& node : recording.nodes) {
    const std::string begun = recording::DescribeBegun(node);
    if (!begun.empty()) PrintNote(context, "note", node.name, begun, "");
  }
  for (const clocksync::ClockEvent& event : recorded.clocks.events) {
    const bool absent =
        std::any_of(recording.nodes.begin(), recording.nodes.end(), [&](const NodeRecord& node) {
          return node.name == event.node && node.state != NodeState::kComplete &&
                 !node.fetched.complete;
        });
    if (absent) continue;  // that it has no clock either goes without saying
    PrintNote(context, "note", event.node, absl::StrCat("clock: ", event.text), "");
  }
  out << directory.string() << '\n';
  return recording::IsComplete(recording) ? kDone : kIncomplete;
}

int PrintFetchSummary(const Context& context, const recording::Recording& before,
                      const record::Recorded& recorded, const std::filesystem::path& directory) {
  const recording::Recording& recording = recorded.recording;
  std::ostream& out = *context.out;
  const bool complete = recording::IsComplete(recording);
  if (!context.quiet) {
    const auto whole =
        std::count_if(recording.nodes.begin(), recording.nodes.end(),
                      [](const NodeRecord& node) { return node.state == NodeState::kComplete; });
    out << "recording " << recording.recording_id << ": " << FetchedText(before, recording) << '\n'
        << (complete ? "it is complete" : "it is not complete") << ": " << whole << " of "
        << recording.nodes.size() << (recording.nodes.size() == 1 ? " node" : " nodes")
        << "; `syncline report " << directory.string() << "` says what was recorded\n";
  }
  PrintStates(context, recorded, directory);
  out << directory.string() << '\n';
  return complete ? kDone : kIncomplete;
}

}  // namespace syncline::cli

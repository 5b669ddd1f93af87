// SPDX-License-Identifier: Apache-2.0
// What of its window a node and its processes have.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "coordinator/recording/recording.h"

namespace syncline::recording {
namespace {

bool BeganInWindow(const ProcessRecord& process) {
  return process.has_control_block && !process.present_at_prepare;
}

// By the node's MONOTONIC; the gate was moved in both clocks. Where nobody said when the window was
// to end, it ended when the gate closed.
int64_t WindowEndNs(const NodeRecord& node) {
  const Gate& stop = node.stop;
  if (stop.requested_monotonic_raw_ns == 0) return stop.gate_end_monotonic_ns;
  return stop.requested_monotonic_raw_ns +
         (stop.gate_begin_monotonic_ns - stop.gate_begin_monotonic_raw_ns);
}

}  // namespace

bool CoversWindow(const NodeRecord& node, const ProcessRecord& process) {
  if (process.on_monotonic_ns == 0) return false;
  const Gate& start = node.start;
  const int64_t begin_ns = start.requested_monotonic_raw_ns +
                           (start.gate_begin_monotonic_ns - start.gate_begin_monotonic_raw_ns);
  const bool in_time =
      node.stop.gate_end_monotonic_ns == 0 || process.on_monotonic_ns < WindowEndNs(node);
  return in_time && (process.off_monotonic_ns == 0 || process.off_monotonic_ns > begin_ns);
}

bool CameTooLate(const NodeRecord& node, const ProcessRecord& process) {
  if (!BeganInWindow(process) || process.on_monotonic_ns != 0) return false;
  // An agent that goes on after a kill may find those that began behind the window's end.
  const bool behind =
      node.stop.gate_end_monotonic_ns != 0 && process.started_monotonic_ns >= WindowEndNs(node);
  return process.started_monotonic_ns == 0 || !behind;
}

bool MissedWindow(const NodeRecord& node, const ProcessRecord& process) {
  if (CameTooLate(node, process)) return true;
  if (!process.present_at_prepare || CoversWindow(node, process)) return false;
  return process.stopped || process.lost > 0 || NotRecorded(node, process) != nullptr ||
         std::none_of(node.processes.begin(), node.processes.end(),
                      [&node](const ProcessRecord& other) { return CoversWindow(node, other); });
}

const ComplaintRecord* NotRecorded(const NodeRecord& node, const ProcessRecord& process) {
  const auto is_meant = [&process](const ComplaintRecord& complaint) {
    return (process.pid != 0 && complaint.pid == process.pid) || complaint.user == process.uid;
  };
  const auto found =
      std::find_if(node.complaints.begin(), node.complaints.end(),
                   [&](const ComplaintRecord& one) { return one.not_recorded && is_meant(one); });
  return found == node.complaints.end() ? nullptr : &*found;
}

std::optional<int64_t> LateStartNs(const NodeRecord& node) {
  // Agents sleep up to the instant; what a busy machine adds is in the table of starts.
  constexpr int64_t kWorthAWordNs = 500'000'000;
  const Gate& start = node.start;
  if (start.requested_monotonic_raw_ns == 0 || start.gate_begin_monotonic_raw_ns == 0) return {};
  const int64_t late_ns = start.gate_begin_monotonic_raw_ns - start.requested_monotonic_raw_ns;
  if (late_ns < kWorthAWordNs) return {};
  return late_ns;
}

bool NeverStarted(const NodeRecord& node) {
  const Gate& start = node.start;
  if (start.requested_monotonic_raw_ns == 0 || start.gate_begin_monotonic_raw_ns != 0) return false;
  // Nobody heard of its start. Its guard may have closed the gate before it was to be opened.
  return node.stop.gate_begin_monotonic_raw_ns == 0 ||
         node.stop.gate_end_monotonic_raw_ns < start.requested_monotonic_raw_ns;
}

std::optional<int64_t> EarlyEndNs(const NodeRecord& node) {
  constexpr int64_t kSlackNs = 1'000'000;
  const Gate& stop = node.stop;
  if (stop.requested_monotonic_raw_ns == 0 || stop.gate_end_monotonic_raw_ns == 0) return {};
  const int64_t early_ns = stop.requested_monotonic_raw_ns - stop.gate_end_monotonic_raw_ns;
  if (early_ns < kSlackNs) return {};
  return early_ns;
}

bool EndedByItself(const NodeRecord& node) {
  // Reasons that the coordinator gives; all others are the agent's own.
  static const std::set<std::string> kOurs = {"", "requested", "interrupted", "lost nodes",
                                              "fetched"};
  const std::string& reason = node.stop.reason;
  if (kOurs.count(reason) != 0) return false;
  // What ends it at the window's end or behind it takes nothing away. But while an agent is dead
  // nobody sees programs begin.
  return reason.starts_with("adopted") || reason.starts_with("guard") ||
         node.stop.requested_monotonic_raw_ns == 0 || EarlyEndNs(node).has_value();
}

bool NothingToTrace(const Recording& recording) {
  if (!recording.extra_events.empty()) return false;
  return std::all_of(recording.nodes.begin(), recording.nodes.end(), [](const NodeRecord& node) {
    // Of one that took no part, or whose data is not here, that is the loss.
    const bool known = node.state == NodeState::kComplete || node.state == NodeState::kIncomplete;
    return known && node.fetched.profiles == 0 &&
           std::none_of(node.processes.begin(), node.processes.end(),
                        [](const ProcessRecord& process) { return process.has_control_block; });
  });
}

bool IsComplete(const Recording& recording) {
  const std::string& reason = recording.window.stop_reason;
  const bool to_its_end = reason == "requested" || reason == "interrupted";
  return to_its_end && !NothingToTrace(recording) &&
         std::all_of(recording.nodes.begin(), recording.nodes.end(),
                     [](const NodeRecord& node) { return node.state == NodeState::kComplete; });
}

std::string DescribeDetail(const Recording& recording) {
  const bool low = recording.detail == "low";
  return absl::StrCat("recorded with --detail ", recording.detail,
                      ": of PyTorch's and oneDNN's operators directly inside of others only those "
                      "were asked for that mostly take ",
                      low ? "0.5" : "0.1",
                      " ms or more; the time of the rest counts as that of the operator around it, "
                      "and whether ranks do the same work is judged without them",
                      low ? ". Messages were not asked for" : "");
}

std::string DescribeBegun(const NodeRecord& node) {
  const auto begun =
      std::count_if(node.processes.begin(), node.processes.end(), [](const ProcessRecord& process) {
        return BeganInWindow(process) && process.on_monotonic_ns != 0;
      });
  if (begun == 0) return "";
  return absl::StrCat(begun, begun == 1 ? " process" : " processes",
                      " started during the window: what each did in its first 0.2 s or so is not "
                      "recorded, or only partly");
}

}  // namespace syncline::recording

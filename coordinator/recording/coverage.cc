// SPDX-License-Identifier: Apache-2.0
// What of its window a node and its processes have.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/recording/recording.h"

namespace syncline::recording {
namespace {

bool BeganInWindow(const ProcessRecord& process) {
  return process.has_control_block && !process.present_at_prepare;
}

}  // namespace

bool CoversWindow(const NodeRecord& node, const ProcessRecord& process) {
  if (process.on_monotonic_ns == 0) return false;
  // The window by the node's MONOTONIC; the gate was moved in both clocks. Where nobody said when
  // the window was to end, it ended when the gate closed.
  const Gate& start = node.start;
  const Gate& stop = node.stop;
  const int64_t begin_ns = start.requested_monotonic_raw_ns +
                           (start.gate_begin_monotonic_ns - start.gate_begin_monotonic_raw_ns);
  const int64_t end_ns = stop.requested_monotonic_raw_ns == 0
                             ? stop.gate_end_monotonic_ns
                             : stop.requested_monotonic_raw_ns + (stop.gate_begin_monotonic_ns -
                                                                  stop.gate_begin_monotonic_raw_ns);
  const bool in_time = stop.gate_end_monotonic_ns == 0 || process.on_monotonic_ns < end_ns;
  return in_time && (process.off_monotonic_ns == 0 || process.off_monotonic_ns > begin_ns);
}

bool CameTooLate(const ProcessRecord& process) {
  return BeganInWindow(process) && process.on_monotonic_ns == 0;
}

bool MissedWindow(const NodeRecord& node, const ProcessRecord& process) {
  if (CameTooLate(process)) return true;
  if (!process.present_at_prepare || CoversWindow(node, process)) return false;
  return process.stopped || process.lost > 0 || NotRecorded(node, process) != nullptr ||
         std::none_of(node.processes.begin(), node.processes.end(),
                      [&node](const ProcessRecord& other) { return CoversWindow(node, other); });
}

const ComplaintRecord* NotRecorded(const NodeRecord& node, const ProcessRecord& process) {
  if (process.pid == 0) return nullptr;
  const auto found = std::find_if(node.complaints.begin(), node.complaints.end(),
                                  [&process](const ComplaintRecord& complaint) {
                                    return complaint.not_recorded && complaint.pid == process.pid;
                                  });
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

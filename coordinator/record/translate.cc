// SPDX-License-Identifier: Apache-2.0
#include "coordinator/record/translate.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/duration_text.h"
#include "common/process_part.h"

namespace syncline::record {
namespace {

using recording::NodeRecord;
using recording::ProcessRecord;

ProcessRecord FromProcess(const v1::ProcessInfo& process) {
  ProcessRecord record;
  record.pid = process.pid();
  record.own_pid = process.own_pid();
  record.pid_namespace_inode = process.pid_namespace_inode();
  record.start_ticks = process.start_ticks();
  record.uid = process.uid();
  record.command_line = process.command_line();
  record.job = process.job();
  record.incarnation = process.incarnation();
  record.rank = process.rank();
  record.world_size = process.world_size();
  record.role = process.role();
  if (IsPart(process.part())) record.part = process.part();
  record.sources.assign(process.sources().begin(), process.sources().end());
  record.started_monotonic_ns = process.started_monotonic_ns();
  record.stopped = process.stopped();
  record.has_control_block = process.has_control_block();
  return record;
}

template <class Message>
bool SameProcess(const ProcessRecord& record, const Message& message) {
  return record.own_pid == message.own_pid() &&
         record.pid_namespace_inode == message.pid_namespace_inode() &&
         record.start_ticks == message.start_ticks();
}

// The record of that process; a new one when it was not there before.
template <class Message>
ProcessRecord& RecordOf(const Message& message, std::vector<ProcessRecord>* records) {
  for (ProcessRecord& record : *records) {
    if (SameProcess(record, message)) return record;
  }
  ProcessRecord& record = records->emplace_back();
  record.own_pid = message.own_pid();
  record.pid_namespace_inode = message.pid_namespace_inode();
  record.start_ticks = message.start_ticks();
  return record;
}

// `first` was found while the process's parents were there; without them it looks like a rank. What
// it shows of itself outweighs that: a loader worker is a child until it names its thread.
void KeepPart(const std::string& first, ProcessRecord* record) {
  if (first.empty()) return;
  if (record->part != kPartLauncher && record->part != kPartLoaderWorker) record->part = first;
  if (record->part == kPartLauncher) record->rank = -1;
}

void AddProcesses(const google::protobuf::RepeatedPtrField<v1::ProcessInfo>& processes,
                  std::vector<ProcessRecord>* records) {
  for (const v1::ProcessInfo& process : processes) {
    ProcessRecord& record = RecordOf(process, records);
    const bool present_at_prepare = record.present_at_prepare;
    const int32_t pid = record.pid;
    const std::string part = record.part;
    record = FromProcess(process);
    KeepPart(part, &record);
    record.present_at_prepare = present_at_prepare;
    if (record.pid == 0) record.pid = pid;  // it is gone by now
  }
}

// Agents repeat what still holds: each complaint is kept once, and those that are new are returned.
Complaints AddComplaints(const google::protobuf::RepeatedPtrField<v1::Complaint>& complaints,
                         NodeRecord* node) {
  Complaints fresh;
  for (const v1::Complaint& complaint : complaints) {
    const recording::ComplaintRecord record = FromComplaint(complaint);
    const bool known = std::any_of(
        node->complaints.begin(), node->complaints.end(),
        [&](const auto& other) { return other.what == record.what && other.pid == record.pid; });
    if (known) continue;
    node->complaints.push_back(record);
    fresh.push_back(record);
  }
  return fresh;
}

constexpr const char* kProtocol = "syncline.v1";

// Processes that missed the window, by why; empty: there are none.
std::string DescribeUncovered(const NodeRecord& node) {
  std::vector<const ProcessRecord*> late, barred, unreached, silent;
  for (const ProcessRecord& process : node.processes) {
    if (!recording::MissedWindow(node, process)) continue;
    const bool came_late = recording::CameTooLate(node, process);
    const bool cannot = recording::NotRecorded(node, process) != nullptr;
    (came_late          ? late
     : cannot           ? barred
     : process.lost > 0 ? unreached
                        : silent)
        .push_back(&process);
  }
  std::vector<std::string> sentences;
  const auto say = [&](const std::vector<const ProcessRecord*>& processes, const char* one,
                       const char* many, const char* rest) {
    if (processes.empty()) return;
    sentences.push_back(
        absl::StrCat(NameSome(processes), processes.size() == 1 ? one : many, rest));
  };
  say(late, " is", " are",
      " not recorded: started during the window and exited, or found too late");
  say(barred, " covers", " cover",
      " nothing of the window: cannot be recorded, see the warning above");
  say(unreached, " covers", " cover",
      " nothing of the window: calls were made, and LTTng recorded none (delayed for seconds, or "
      "of another session daemon)");
  say(silent, " covers", " cover",
      " nothing of the window: no recordable call in it (idle, stopped or gone, or the window was "
      "too short)");
  return absl::StrJoin(sentences, ", ");
}

// Those that lack a part of the window by what the program did; empty: there are none.
std::string DescribePartly(const NodeRecord& node) {
  std::vector<const ProcessRecord*> replaced, paused;
  for (const ProcessRecord& process : node.processes) {
    if (process.became_another_program) replaced.push_back(&process);
    if (process.pauses > 0) paused.push_back(&process);
  }
  std::vector<std::string> sentences;
  if (!replaced.empty()) {
    sentences.push_back(absl::StrCat(
        NameSome(replaced), " became another program (exec), of which nothing is recorded"));
  }
  if (!paused.empty()) {
    sentences.push_back(absl::StrCat(NameSome(paused), paused.size() == 1 ? " was" : " were",
                                     " paused by the program (__itt_pause)"));
  }
  return absl::StrJoin(sentences, ", ");
}

// Why it has not all of the window; empty: it has, whatever ended it then.
std::string DescribeEnd(const NodeRecord& node) {
  if (recording::NeverStarted(node)) {
    return absl::StrCat("it never started", node.stop.reason.empty() ? "" : ": ", node.stop.reason);
  }
  const auto early_ns = recording::EarlyEndNs(node);
  const std::string early =
      early_ns.has_value() ? absl::StrCat("it stopped ", DurationText(*early_ns), " early") : "";
  if (!recording::EndedByItself(node)) return early;
  return absl::StrCat(early.empty() ? "it stopped on its own" : early, ": ", node.stop.reason);
}

template <class Response>
void ApplyGate(const Response& response, recording::Gate* gate) {
  gate->gate_begin_monotonic_raw_ns = response.gate_begin_monotonic_raw_ns();
  gate->gate_end_monotonic_raw_ns = response.gate_end_monotonic_raw_ns();
  gate->gate_begin_monotonic_ns = response.gate_begin_monotonic_ns();
  gate->gate_end_monotonic_ns = response.gate_end_monotonic_ns();
}

}  // namespace

std::string NameSome(const std::vector<const ProcessRecord*>& processes) {
  constexpr size_t kNamedMax = 4;
  constexpr size_t kCommandMax = 60;
  std::string who;
  for (size_t i = 0; i < processes.size() && i < kNamedMax; ++i) {
    std::string command = processes[i]->command_line;
    if (command.size() > kCommandMax) command = command.substr(0, kCommandMax) + "...";
    absl::StrAppend(&who, i == 0 ? "" : ", ", "pid ", processes[i]->own_pid, " (", command, ")");
  }
  if (processes.size() > kNamedMax) {
    absl::StrAppend(&who, " and ", processes.size() - kNamedMax, " more");
  }
  return who;
}

recording::ComplaintRecord FromComplaint(const v1::Complaint& complaint) {
  recording::ComplaintRecord record;
  switch (complaint.severity()) {
    case v1::Complaint::BLOCKER:
      record.severity = "blocker";
      break;
    case v1::Complaint::WARNING:
      record.severity = "warning";
      break;
    default:
      record.severity = "note";
      break;
  }
  record.what = complaint.what();
  record.fix = complaint.fix();
  record.pid = complaint.pid();
  record.not_recorded = complaint.not_recorded();
  if (complaint.has_uid()) record.user = complaint.uid();
  return record;
}

void AddVersionComplaint(const std::string& own_version, v1::DescribeResponse* description) {
  const bool foreign = description->protocol() != kProtocol;
  if (!foreign && description->agent_version() == own_version) return;
  v1::Complaint& complaint = *description->add_complaints();
  complaint.set_severity(foreign ? v1::Complaint::BLOCKER : v1::Complaint::WARNING);
  complaint.set_what(foreign
                         ? absl::StrCat("Its agent (", description->agent_version(), ") speaks \"",
                                        description->protocol(), "\", this program (", own_version,
                                        ") \"", kProtocol, "\"")
                         : absl::StrCat("Its agent is version ", description->agent_version(),
                                        ", this program is ", own_version));
  complaint.set_fix("install the same version on both (`fab up` copies this one)");
}

Complaints Apply(const v1::PrepareResponse& response, NodeRecord* node) {
  node->prepare.session = response.session_name();
  node->prepare.subbuffer_bytes = response.subbuffer_bytes();
  node->prepare.subbuffer_count = response.subbuffer_count();
  node->prepare.buffers_bytes = response.buffers_bytes();
  node->prepare.canary_round_trip_ns = response.canary_round_trip_ns();
  node->prepare.duration_ns = response.prepare_duration_ns();
  AddProcesses(response.processes(), &node->processes);
  for (ProcessRecord& process : node->processes) {
    process.present_at_prepare = process.has_control_block;
  }
  return AddComplaints(response.complaints(), node);
}

Complaints Apply(const v1::StartResponse& response, NodeRecord* node) {
  ApplyGate(response, &node->start);
  node->start.processes_switched = response.processes_switched_count();
  return AddComplaints(response.complaints(), node);
}

Complaints Apply(const v1::StopResponse& response, NodeRecord* node) {
  ApplyGate(response, &node->stop);
  node->stop.reason = response.stop_reason();
  node->stop.complete = response.complete();
  node->channels.clear();
  for (const v1::ChannelResult& channel : response.channels()) {
    node->channels.push_back({channel.name(), channel.discarded_events_count(),
                              channel.discarded_events_valid(), channel.lost_packets_count()});
  }
  node->streams.clear();
  for (const v1::StreamResult& stream : response.streams()) {
    node->streams.push_back({stream.path(), stream.bytes(), stream.packets_count(),
                             stream.sequence_gaps_count(), stream.discarded_events_count(),
                             stream.closed()});
  }
  AddProcesses(response.processes(), &node->processes);
  for (const v1::ProcessCoverage& coverage : response.coverage()) {
    ProcessRecord& process = RecordOf(coverage, &node->processes);
    process.on_monotonic_ns = coverage.on_monotonic_ns();
    process.off_monotonic_ns = coverage.off_monotonic_ns();
    process.events = coverage.events_count();
    process.lost = coverage.lost_count();
    process.cost_ns = coverage.cost_ns();
    process.cost_valid = coverage.cost_valid();
    process.cost_lo_ns = coverage.cost_lo_ns();
    process.cost_hi_ns = coverage.cost_hi_ns();
    process.cost_samples = coverage.cost_samples_count();
    process.became_another_program = coverage.became_another_program();
    process.pauses = coverage.pauses_count();
    process.ended_monotonic_ns = coverage.ended_monotonic_ns();
  }
  return AddComplaints(response.complaints(), node);
}

std::string DescribeLoss(const NodeRecord& node) {
  if (node.state == recording::NodeState::kMissing) return "did not participate";
  if (node.state == recording::NodeState::kLeft) return "its data is still on the node";
  std::vector<std::string> losses;
  if (std::string early = DescribeEnd(node); !early.empty()) losses.push_back(std::move(early));
  if (const auto late_ns = recording::LateStartNs(node)) {
    losses.push_back(absl::StrCat("it started ", DurationText(*late_ns), " late"));
  }
  if (!node.stop.complete) losses.push_back("its trace is not whole: its warnings say why");
  uint64_t discarded = 0;
  uint64_t packets = 0;
  bool valid = true;
  for (const recording::ChannelRecord& channel : node.channels) {
    discarded += channel.discarded_events_valid ? channel.discarded_events : 0;
    packets += channel.lost_packets;
    valid = valid && channel.discarded_events_valid;
  }
  if (discarded > 0) losses.push_back(absl::StrCat(discarded, " events discarded"));
  if (!valid) losses.push_back("events discarded, count unknown");
  if (packets > 0) losses.push_back(absl::StrCat(packets, " packets lost"));
  uint64_t gaps = 0;
  size_t open = 0;
  for (const recording::StreamRecord& stream : node.streams) {
    gaps += stream.sequence_gaps;
    open += stream.closed ? 0 : 1;
  }
  if (gaps > 0) losses.push_back(absl::StrCat(gaps, " gaps between packets"));
  if (open > 0) losses.push_back(absl::StrCat(open, " streams end inside a packet"));
  if (const uint64_t profiles = node.fetched.lost_profiles; profiles > 0) {
    losses.push_back(absl::StrCat(profiles, profiles == 1 ? " profile was lost while it ran"
                                                          : " profiles were lost while they ran"));
  }
  uint64_t refused = 0;
  for (const ProcessRecord& process : node.processes) refused += process.lost;
  if (refused > 0)
    losses.push_back(absl::StrCat(refused, " events that processes could not write"));
  for (std::string (*describe)(const NodeRecord&) : {DescribeUncovered, DescribePartly}) {
    if (std::string uncovered = describe(node); !uncovered.empty()) {
      losses.push_back(std::move(uncovered));
    }
  }
  return absl::StrJoin(losses, ", ");
}

}  // namespace syncline::record

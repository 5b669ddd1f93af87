// SPDX-License-Identifier: Apache-2.0
#include "export/perfetto/track_tree.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "export/perfetto/fields.h"

namespace syncline::perfetto {
namespace {

using timeline::TrackKind;

constexpr int kPlaceBits = 23;  // kernels count tids to 2^22

// Ranks of siblings must differ: equal ones stand in any order.
uint64_t RankIn(Place place, uint64_t order) {
  const uint64_t most = (uint64_t{1} << kPlaceBits) - 1;
  return (static_cast<uint64_t>(place) << kPlaceBits) + std::min(order, most);
}

Place PlaceOf(TrackKind kind) {
  switch (kind) {
    case TrackKind::kGroup:
      return Place::kGroups;
    case TrackKind::kCounter:
      return Place::kCounters;
    case TrackKind::kAsync:
      return Place::kOverlapping;
    default:
      return Place::kThreads;
  }
}

// The interface shows line breaks as blanks.
std::string Description(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string text;
  for (const auto& [key, value] : facts) {
    absl::StrAppend(&text, text.empty() ? "" : " · ", key, ": ", value);
  }
  return text;
}

int Digits(int32_t number) { return static_cast<int>(absl::StrCat(number).size()); }

}  // namespace

void TrackTree::WriteDescriptor(uint64_t uuid, const ProtoWriter& descriptor) {
  ProtoWriter packet;
  packet.Varint(packet::kSequenceId, uuid);
  packet.Message(packet::kTrackDescriptor, descriptor);
  packets_->Packet(packet.bytes());
}

void TrackTree::AddTop(const timeline::Track& track, KnownTrack* known) {
  known->uuid = next_uuid_++;
  known->process_uuid = known->uuid;
  Top top;
  top.uuid = known->uuid;
  top.node = track.node;
  top.pid = track.process.pid;
  top.name = track.name;
  top.description = Description(track.facts);
  for (const auto& [key, value] : track.facts) {
    if (key == "rank" && !absl::SimpleAtoi(value, &top.rank)) top.rank = -1;
    if (key == "job") top.job = value;
    if (key == "command line") top.command = value;
  }
  if (track.kind == TrackKind::kNode) {
    nodes_[track.node] = std::move(top);
  } else {
    process_of_uuid_[known->uuid] = processes_.size();
    processes_.push_back(std::move(top));
  }
}

void TrackTree::AddThread(const timeline::Track& track, KnownTrack* known) {
  const KnownTrack& parent = tracks_[track.parent];
  const auto found = process_of_uuid_.find(parent.uuid);
  Top* process = found == process_of_uuid_.end() ? nullptr : &processes_[found->second];
  const bool is_main = process != nullptr && track.tid != 0 && track.tid == process->pid &&
                       !process->has_main_thread;
  if (is_main) {
    known->uuid = parent.uuid;
    process->has_main_thread = true;
  } else {
    known->uuid = next_uuid_++;
    const std::string tid = absl::StrCat(track.tid);
    const bool says_tid = track.tid == 0 || absl::EndsWith(track.name, " " + tid);
    ProtoWriter out;
    out.Varint(descriptor::kUuid, known->uuid);
    out.Varint(descriptor::kParent, parent.uuid);
    out.Bytes(descriptor::kName, says_tid ? track.name : absl::StrCat(track.name, " ", tid));
    out.Varint(
        descriptor::kRank,
        RankIn(Place::kThreads, track.tid > 0 ? static_cast<uint64_t>(track.tid) : known->uuid));
    out.Varint(descriptor::kMerging, descriptor::kNeverMerged);
    WriteDescriptor(known->uuid, out);
  }
  ProtoWriter thread;
  thread.Varint(process_tree::kTid, known->uuid);
  thread.Bytes(process_tree::kName, track.name);
  thread.Varint(process_tree::kPid, parent.uuid);
  threads_.Message(process_tree::kThread, thread);
}

void TrackTree::AddChild(const timeline::Track& track, KnownTrack* known) {
  const KnownTrack& parent = tracks_[track.parent];
  known->uuid = next_uuid_++;
  if (track.kind == TrackKind::kLane) {
    lanes_.push_back({parent.uuid, track.name, known->uuid});
    return;
  }
  ProtoWriter out;
  out.Varint(descriptor::kUuid, known->uuid);
  out.Varint(descriptor::kParent, parent.uuid);
  // "all nodes" stands for the parent there, which does not say what its children are.
  out.Bytes(descriptor::kName, parent.kind == TrackKind::kFleet
                                   ? absl::StrCat(parent.name, " · ", track.name)
                                   : track.name);
  out.Varint(descriptor::kRank, RankIn(PlaceOf(track.kind), known->uuid));
  if (track.kind == TrackKind::kGroup) {
    out.Varint(descriptor::kChildOrdering, descriptor::kByRank);
    out.Varint(descriptor::kMerging, descriptor::kNeverMerged);
  }
  if (track.kind == TrackKind::kCounter) {
    ProtoWriter counter;
    if (!track.unit.empty()) counter.Bytes(descriptor::kCounterUnitName, track.unit);
    out.Message(descriptor::kCounter, counter);
    if (!track.facts.empty()) out.Bytes(descriptor::kDescription, Description(track.facts));
  }
  WriteDescriptor(known->uuid, out);
}

void TrackTree::Add(const timeline::Track& track) {
  KnownTrack known;
  known.kind = track.kind;
  known.name = track.name;
  if (track.kind == TrackKind::kFleet) {
    known.uuid = known.process_uuid = kAllNodes;
  } else if (track.kind == TrackKind::kNode || track.kind == TrackKind::kProcess) {
    AddTop(track, &known);
  } else {
    known.process_uuid = tracks_[track.parent].process_uuid;
    track.kind == TrackKind::kThread ? AddThread(track, &known) : AddChild(track, &known);
  }
  if (tracks_.size() <= track.id) tracks_.resize(track.id + 1);
  tracks_[track.id] = std::move(known);
}

uint64_t TrackTree::Add(const Extra& extra) {
  const uint64_t uuid = next_uuid_++;
  ProtoWriter out;
  out.Varint(descriptor::kUuid, uuid);
  out.Varint(descriptor::kParent, extra.parent_uuid);
  out.Bytes(descriptor::kName, extra.name);
  out.Varint(descriptor::kRank, RankIn(extra.place, uuid));
  if (!extra.description.empty()) out.Bytes(descriptor::kDescription, extra.description);
  if (extra.counter != nullptr) out.Message(descriptor::kCounter, *extra.counter);
  WriteDescriptor(uuid, out);
  return uuid;
}

uint64_t TrackTree::NodeUuid(uint32_t node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? kAllNodes : found->second.uuid;
}

// "rank 03 · worker-3 · python train.py": the interface sorts by bytes.
std::string TrackTree::ShownName(const Top& process, int digits, bool with_job) const {
  if (process.rank < 0) return process.name;
  absl::string_view rest = process.name;
  std::string name = with_job ? absl::StrCat("job ", process.job, " · ") : "";
  absl::StrAppend(&name, "rank ", absl::StrFormat("%0*d", digits, process.rank));
  const auto node = nodes_.find(process.node);
  if (node != nodes_.end() && absl::ConsumePrefix(&rest, node->second.name)) {
    absl::StrAppend(&name, " · ", node->second.name);
    absl::ConsumePrefix(&rest, absl::StrCat(" · rank ", process.rank));
    return absl::StrCat(name, rest);
  }
  return absl::StrCat(name, " · ", rest);
}

void TrackTree::WriteProcess(const Top& process, const std::string& name) {
  ProtoWriter out;
  out.Varint(descriptor::kUuid, process.uuid);
  out.Bytes(descriptor::kName, name);
  out.Varint(descriptor::kChildOrdering, descriptor::kByRank);
  out.Varint(descriptor::kMerging, descriptor::kNeverMerged);
  if (!process.description.empty()) out.Bytes(descriptor::kDescription, process.description);
  WriteDescriptor(process.uuid, out);
  ProtoWriter row;
  row.Varint(process_descriptor::kPid, process.uuid);
  if (!process.command.empty()) row.Bytes(process_descriptor::kCommand, process.command);
  row.Bytes(process_descriptor::kName, name);
  ProtoWriter packet;
  packet.Varint(packet::kSequenceId, process.uuid);
  packet.Message(packet::kProcessDescriptor, row);
  packets_->Packet(packet.bytes());
}

void TrackTree::WriteNode(const Top& node) {
  const auto process = std::find_if(processes_.begin(), processes_.end(),
                                    [&](const Top& one) { return one.node == node.node; });
  ProtoWriter out;
  out.Varint(descriptor::kUuid, node.uuid);
  if (process != processes_.end()) {
    out.Varint(descriptor::kParent, process->uuid);
    out.Varint(descriptor::kRank, RankIn(Place::kNode, 0));
  }
  out.Bytes(descriptor::kName, "node " + node.name);
  out.Varint(descriptor::kChildOrdering, descriptor::kByRank);
  out.Varint(descriptor::kMerging, descriptor::kNeverMerged);
  if (!node.description.empty()) out.Bytes(descriptor::kDescription, node.description);
  WriteDescriptor(node.uuid, out);
}

// In the order of their names: they appear in that of their first events.
void TrackTree::WriteLanes() {
  std::sort(lanes_.begin(), lanes_.end());
  for (size_t i = 0; i < lanes_.size(); ++i) {
    ProtoWriter out;
    out.Varint(descriptor::kUuid, lanes_[i].uuid);
    out.Varint(descriptor::kParent, lanes_[i].parent_uuid);
    out.Bytes(descriptor::kName, lanes_[i].name);
    out.Varint(descriptor::kRank, RankIn(Place::kThreads, i));
    WriteDescriptor(lanes_[i].uuid, out);
  }
}

// Ranks first, in their order.
void TrackTree::SortProcesses() {
  std::sort(processes_.begin(), processes_.end(), [](const Top& a, const Top& b) {
    return std::make_tuple(a.rank < 0, a.rank, a.uuid) <
           std::make_tuple(b.rank < 0, b.rank, b.uuid);
  });
}

void TrackTree::Finish() {
  SortProcesses();
  std::set<std::string_view> jobs;
  int32_t last_rank = 0;
  for (const Top& process : processes_) {
    if (process.rank >= 0) jobs.insert(process.job);
    last_rank = std::max(last_rank, process.rank);
  }
  ProtoWriter all;
  all.Varint(descriptor::kUuid, kAllNodes);
  all.Bytes(descriptor::kName, "all nodes");
  all.Varint(descriptor::kChildOrdering, descriptor::kByRank);
  WriteDescriptor(kAllNodes, all);
  for (const Top& process : processes_) {
    WriteProcess(process, ShownName(process, Digits(last_rank), jobs.size() > 1));
  }
  for (const auto& [number, node] : nodes_) WriteNode(node);
  WriteLanes();
  if (threads_.empty()) return;
  ProtoWriter packet;
  packet.Varint(packet::kSequenceId, kAllNodes);
  packet.Message(packet::kProcessTree, threads_);
  packets_->Packet(packet.bytes());
}

}  // namespace syncline::perfetto

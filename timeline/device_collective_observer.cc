// SPDX-License-Identifier: Apache-2.0
#include "timeline/device_collective_observer.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "timeline/first_fit.h"

namespace syncline::timeline {
namespace {

constexpr uint64_t kNoSequence = UINT64_MAX;
constexpr uint32_t kNobody = UINT32_MAX;
constexpr char kGroup[] = "NCCL";

std::string LaneName(const Communicator& communicator) {
  return absl::StrFormat("communicator %x · rank %d of %d", communicator.id, communicator.rank,
                         communicator.size);
}

const char* WhyNot(ClockPlacing placing) {
  switch (placing) {
    case ClockPlacing::kNothingKnown:
      return "nothing tells how far the GPU's clock is from the host's";
    case ClockPlacing::kContradiction:
      return "by its stamps the GPU's clock does not run as the host's";
    case ClockPlacing::kOthersStamps:
      return "stamps were told of long after they were made: NCCL took those of other collectives "
             "(docs/nccl.md), or its thread was late";
    case ClockPlacing::kPlaced:
      break;
  }
  return "";
}

bool IsTransfer(std::string_view name) { return name == "Send" || name == "Recv"; }

}  // namespace

std::string DeviceCollectiveObserver::Name(uint32_t index, uint32_t id) const {
  const std::string name(id == 0 ? "" : tables_.processes()[index].Name(id));
  return name.empty() ? "unnamed" : name;
}

void DeviceCollectiveObserver::On(const NodeEvent& event) {
  Process& process = processes_[event.process];
  const EventReader& fields = event.fields;
  if (event.kind == EventKind::kDeviceCollectiveCall) {
    process.calls[fields.U64(Field::kLaunch)] = DeviceCallOf(event, *context_.emitter, tracks_);
    return;
  }
  constexpr uint64_t kMostNs = uint64_t{1} << 61;
  const uint64_t begin_ns = fields.U64(Field::kBegin);
  const uint64_t end_ns = fields.U64(Field::kEnd);
  const auto ahead_ns = static_cast<int64_t>(fields.U64(Field::kAhead));
  const uint64_t since_ns = fields.U64(Field::kSince);
  const bool possible = begin_ns <= end_ns && end_ns < kMostNs && since_ns < kMostNs &&
                        ahead_ns > -int64_t{kMostNs} && ahead_ns < int64_t{kMostNs};
  if (!possible) {
    ++process.impossible;
    return;
  }
  Collective& one = process.collectives.emplace_back();
  one.communicator = {fields.U64(Field::kCommunicator), fields.U32(Field::kSize),
                      fields.U32(Field::kRank)};
  one.name = fields.U32(Field::kName);
  one.description = fields.U32(Field::kDescription);
  one.call = fields.U64(Field::kLaunch);
  one.peer = fields.U32(Field::kPeer);
  one.facts.bytes = fields.U64(Field::kBytes);
  one.facts.begin_device_ns = static_cast<int64_t>(begin_ns);
  one.facts.end_device_ns = static_cast<int64_t>(end_ns);
  one.facts.ahead_ns = ahead_ns;
  one.facts.watched_ns = static_cast<int64_t>(std::min(fields.U64(Field::kWaited), kMostNs));
  const uint64_t sequence = fields.U64(Field::kSequence);
  if (sequence != kNoSequence) one.facts.sequence = sequence;
  if (since_ns != 0) one.facts.since_ns = static_cast<int64_t>(since_ns);
}

void DeviceCollectiveObserver::PushSpan(uint32_t index, const Collective& collective,
                                        const Process& process, TrackId lane) {
  Emitter& emitter = *context_.emitter;
  const DeviceCollective& facts = collective.facts;
  const Moment begin = context_.At(*facts.begin_ns);
  const Moment end = context_.At(*facts.begin_ns + facts.duration_ns());
  const std::string name = Name(index, collective.name);
  const auto call = process.calls.find(collective.call);
  Span span;
  span.track = lane;
  span.name = emitter.Text(name);
  span.category = emitter.Text("device collective");
  span.begin = begin.timeline;
  span.end = end.timeline;
  span.node_begin = begin.node;
  span.node_end = end.node;
  span.self_ns = span.end.ns - span.begin.ns;
  if (call != process.calls.end()) {
    PushLaunch(call->second, lane, span.begin, &emitter);
    if (!call->second.task.empty()) {
      span.arguments.push_back(Words(emitter.Text("operator"), emitter.Text(call->second.task)));
    }
  }
  if (facts.sequence.has_value()) {
    span.arguments.push_back(Number(emitter.Text("sequence"), *facts.sequence));
  }
  if (collective.description != 0) {
    span.arguments.push_back(
        Words(emitter.Text("algorithm"), emitter.Text(Name(index, collective.description))));
  }
  if (collective.peer != kNobody) {
    span.arguments.push_back(
        Number(emitter.Text(IsTransfer(name) ? "peer" : "root"), collective.peer));
  }
  if (facts.bytes != 0) span.arguments.push_back(Number(emitter.Text("bytes"), facts.bytes));
  span.arguments.push_back(
      Number(emitter.Text("clock bound ns"), static_cast<uint64_t>(facts.bound_ns)));
  emitter.SpanBegin(span);
  emitter.SpanEnd(span);
}

void DeviceCollectiveObserver::PushLanes(uint32_t index, TrackId group,
                                         std::span<const Collective> collectives,
                                         const Process& process) {
  std::vector<TrackId> lanes;
  FirstFit used;
  for (const Collective& one : collectives) {
    const int64_t begin_ns = *one.facts.begin_ns;
    const size_t lane = used.Find(context_.At(begin_ns).timeline);
    if (lane == lanes.size()) {
      std::string name = LaneName(one.communicator);
      if (lane > 0) absl::StrAppend(&name, " (", lane + 1, ")");
      lanes.push_back(
          AddDeviceTrack(context_, tables_, index, group, TrackKind::kLane, std::move(name)));
      used.Add();
    }
    used.Set(lane, context_.At(begin_ns + one.facts.duration_ns()).timeline);
    PushSpan(index, one, process, lanes[lane]);
  }
}

void DeviceCollectiveObserver::Lose(uint32_t index, const std::string& of, uint64_t count,
                                    const char* why) {
  const TrackTable::Process& process = tracks_->ProcessAt(index);
  Loss loss;
  loss.reason = LossReason::kLostInProcess;
  loss.begin_ns = kUnknownLo;
  loss.end_ns = kUnknownHi;
  loss.count = count;
  loss.detail = absl::StrCat("collectives: ", why);
  loss = ledger_->Bounded(loss);
  loss.source = absl::StrCat(process.name, " · ", of);
  ledger_->PushHole(process.track, loss);
  ledger_->Add(loss, /*draw_on_node=*/false);
}

ProcessCollectives DeviceCollectiveObserver::TakeAll(uint32_t index, Process* process) {
  ProcessCollectives all;
  all.track = tracks_->ProcessAt(index).track;
  all.process = tracks_->ProcessAt(index).name;
  all.key = tables_.processes()[index].key;
  std::map<std::string, uint32_t> names;
  for (Collective& one : process->collectives) {
    const auto [name, is_new] = names.try_emplace(Name(index, one.name), names.size());
    if (is_new) all.names.push_back(name->first);
    one.facts.name = name->second;
  }
  const auto order = [](const Collective& one) {
    return std::tuple(one.communicator, one.facts.begin_device_ns, one.call);
  };
  std::vector<Collective>& in_order = process->collectives;
  std::sort(in_order.begin(), in_order.end(),
            [&](const Collective& a, const Collective& b) { return order(a) < order(b); });
  TrackId group = kNoTrack;
  for (size_t begin = 0; begin < in_order.size();) {
    size_t end = begin;
    std::vector<DeviceCollective> facts;
    while (end < in_order.size() && in_order[end].communicator == in_order[begin].communicator) {
      facts.push_back(in_order[end++].facts);
    }
    const ClockPlacing placing = PlaceDeviceClock(facts);
    const bool placed = placing == ClockPlacing::kPlaced;
    for (size_t i = 0; i < facts.size(); ++i) {
      DeviceCollective& one = facts[i];
      one.communicator = static_cast<uint32_t>(all.communicators.size());
      if (placed) one.begin = context_.At(*one.begin_ns).timeline;
      in_order[begin + i].facts = one;
    }
    const std::span<const Collective> of(in_order.data() + begin, end - begin);
    if (placed && group == kNoTrack)
      group = AddDeviceTrack(context_, tables_, index, all.track, TrackKind::kGroup, kGroup);
    if (placed) {
      PushLanes(index, group, of, *process);
    } else {
      Lose(index, LaneName(of.front().communicator), of.size(), WhyNot(placing));
    }
    all.communicators.push_back(in_order[begin].communicator);
    all.clocks.push_back({placed, ClockStepNs(facts)});
    all.collectives.insert(all.collectives.end(), facts.begin(), facts.end());
    begin = end;
  }
  return all;
}

std::vector<ProcessCollectives> DeviceCollectiveObserver::Finish() {
  std::vector<ProcessCollectives> all;
  for (auto& [index, process] : processes_) {
    if (process.impossible > 0) {
      Lose(index, kGroup, process.impossible, "their times are impossible");
    }
    if (!process.collectives.empty()) all.push_back(TakeAll(index, &process));
  }
  return all;
}

}  // namespace syncline::timeline

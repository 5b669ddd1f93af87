// SPDX-License-Identifier: Apache-2.0
#include "timeline/builder.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "timeline/async_spans.h"
#include "timeline/code_series.h"
#include "timeline/counter_series.h"
#include "timeline/emitter.h"
#include "timeline/message_arrows.h"
#include "timeline/node_builder.h"
#include "timeline/scheduling_series.h"
#include "timeline/sink_thread.h"

namespace syncline::timeline {
namespace {

// The arrows of the tensors that were sent and received, and what is said of them by node. Returns
// the next arrow's number.
uint64_t AddTensors(TensorMatcher::Result tensors, Emitter* emitter,
                    std::vector<NodeResult>* results) {
  uint64_t next_flow = 1;
  for (TensorMatcher::Matched& matched : tensors.matched) {
    TensorTransfer& transfer = matched.transfer;
    if (transfer.sent_at.has_value() && transfer.received_at.has_value()) {
      Flow flow;
      flow.id = next_flow++;
      flow.from = matched.from;
      flow.to = matched.to;
      flow.sent = *transfer.sent_at;
      flow.received = *transfer.received_at;
      flow.name = emitter->Text(transfer.edge.tensor);
      emitter->Push(flow);
    }
    (*results)[transfer.receive_node].received.push_back(std::move(transfer));
  }
  for (size_t i = 0; i < tensors.nodes.size(); ++i) {
    (*results)[i].tensor_ends = tensors.nodes[i];
  }
  return next_flow;
}

// An arrow from where a message was sent to where all of it had been taken.
void AddMessages(MessageMatcher::Result messages, const std::optional<Interval>& cut,
                 uint64_t next_flow, Emitter* emitter, std::vector<NodeResult>* results) {
  MessageChoice drawable = Drawable(messages.streams, cut);
  for (size_t i = 0; i < drawable.size(); ++i) messages.streams[i].drawable = drawable[i].size();
  const MessageChoice drawn = ChooseArrows(messages.streams, std::move(drawable));
  for (size_t i = 0; i < drawn.size(); ++i) {
    MessageStream& stream = messages.streams[i];
    for (const size_t index : drawn[i]) {
      const Message& message = stream.messages[index];
      Flow flow;
      flow.id = next_flow++;
      flow.from = message.from;
      flow.to = message.to;
      flow.sent = message.sent;
      flow.received = message.last;
      flow.name = emitter->Text(absl::StrCat("message, ", message.bytes, " B"));
      emitter->Push(flow);
      ++stream.drawn;
    }
    (*results)[stream.receive_node].message_streams.push_back(std::move(stream));
  }
  for (size_t i = 0; i < messages.nodes.size(); ++i) {
    (*results)[i].message_ends = messages.nodes[i];
  }
}

// An arrow from where a send was called to where its receiver had waited for it. Returns the next
// arrow's number.
uint64_t PushTransfers(const Transfers& found, uint64_t next_flow, Emitter* emitter) {
  for (const Transfer& transfer : found.transfers) {
    if (!transfer.received_at.has_value()) continue;
    const Channel& channel = found.channels[transfer.channel];
    Flow flow;
    flow.id = next_flow++;
    flow.from = transfer.from;
    flow.to = transfer.to;
    flow.sent = transfer.sent_at;
    flow.received = *transfer.received_at;
    flow.name = emitter->Text(absl::StrCat("rank ", channel.source, " to ", channel.destination,
                                           ", tag ", channel.tag, ", ", transfer.bytes, " B"));
    emitter->Push(flow);
  }
  return next_flow;
}

std::string LaneName(const CollectiveGroup& group) {
  return absl::StrCat(group.job.empty() ? "" : "job " + group.job + " · ",
                      group.description.empty() ? "group " + group.name : group.description,
                      " · ranks ", group.ranks);
}

// A lane for each group: from the first rank's entry to the last one's exit.
void PushCollectives(const Collectives& found, Emitter* emitter) {
  if (found.collectives.empty()) return;
  Track top;
  top.kind = TrackKind::kFleet;
  top.name = "collectives";
  AsyncSpans lanes(emitter, emitter->AddTrack(std::move(top)), {});
  for (const Collective& collective : found.collectives) {
    const auto& members = collective.members;
    Moment begin{members[0].entered, members[0].entered_at};
    Moment end = begin;
    TimelineTime last_entry = begin.timeline;
    for (const CollectiveMember& member : members) {
      if (member.entered_at < begin.timeline) begin = {member.entered, member.entered_at};
      last_entry = std::max(last_entry, member.entered_at);
      const Moment left{member.left.value_or(member.entered),
                        member.left_at.value_or(member.entered_at)};
      if (left.timeline > end.timeline) end = left;
    }
    AsyncSpans::Label label;
    label.name = emitter->Text(collective.name);
    label.category = emitter->Text("collective");
    const std::string lane_name = LaneName(found.groups[collective.group]);
    label.group_name = lane_name;
    const auto number = [&](std::string_view key, uint64_t value) {
      Argument argument;
      argument.key = emitter->Text(key);
      argument.kind = Argument::Kind::kUint;
      argument.u = value;
      return argument;
    };
    std::vector<Argument> arguments = {
        number("number", collective.number), number("ranks", members.size()),
        number("spread of entries, ns", static_cast<uint64_t>(last_entry.ns - begin.timeline.ns))};
    if (collective.bytes.has_value()) arguments.push_back(number("bytes", *collective.bytes));
    lanes.Whole(label, begin, end, std::move(arguments));
  }
}

void Append(const Collectives& more, Collectives* found) {
  const auto first = static_cast<uint32_t>(found->groups.size());
  found->groups.insert(found->groups.end(), more.groups.begin(), more.groups.end());
  for (Collective collective : more.collectives) {
    collective.group += first;
    found->collectives.push_back(std::move(collective));
  }
}

}  // namespace

absl::StatusOr<BuiltTimeline> BuildTimeline(std::span<const NodeInput> nodes,
                                            const BuildOptions& options,
                                            std::span<TimelineSink* const> sinks) {
  std::vector<TimelineSink*> pushed_to(sinks.begin(), sinks.end());
  std::optional<SinkThread> thread;
  if (options.threads > 1) {
    thread.emplace(pushed_to);
    pushed_to = {&*thread};
  }
  Emitter emitter(pushed_to);
  SharedTracks shared;
  // Without a recording nodes lie where their wall clocks, which may be wrong, put them.
  MessageMatcher::Options matching;
  if (!options.window.has_value()) matching.margin_ns = kUnknownHi;
  Matchers matchers(matching);
  BuiltTimeline built;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    NodeBuilder builder(nodes[i], i, options, &emitter, &shared, &matchers);
    auto result = builder.Build();
    if (!result.ok()) return WithContext(result.status(), "node " + nodes[i].name);
    built.nodes.push_back(*std::move(result));
  }
  // They belong to no event: where only some events are wanted, they are not.
  for (uint32_t i = 0; i < nodes.size() && options.events.MatchesAll(); ++i) {
    const SeriesPlace place{i, nodes[i].placement, emitter.NodeTrack(i), &shared,
                            options.keys_without_node};
    PushCounterSeries(nodes[i].counters, place, &emitter);
    PushSampledCode(nodes[i].code, place, &emitter);
    PushScheduling(nodes[i].scheduling, place, &emitter);
  }
  if (options.complete_devices) {
    if (thread.has_value()) thread->Drain();
    options.complete_devices(built.nodes);
  }
  for (uint32_t i = 0; i < nodes.size() && options.device_lanes; ++i) {
    if (!options.events.MatchesAll()) break;
    PushDeviceLanes(options.device_lanes, i, nodes[i], built.nodes[i], &emitter);
  }
  uint64_t next_flow = AddTensors(matchers.tensors.Match(options.cut), &emitter, &built.nodes);
  built.transfers = matchers.transfers.Match(options.cut);
  next_flow = PushTransfers(built.transfers, next_flow, &emitter);
  AddMessages(matchers.messages.Match(), options.cut, next_flow, &emitter, &built.nodes);
  built.collectives = matchers.collectives.Match();
  matchers.profile_collectives.Match(&built.collectives);
  if (options.matched != nullptr) Append(*options.matched, &built.collectives);
  PushCollectives(built.collectives, &emitter);
  PushFleetLanes(options.lanes, &emitter);
  // Where a node stopped late there is more.
  if (options.window.has_value()) KeepEnteredBefore(options.window->end, &built.collectives);
  if (options.cut.has_value()) KeepEndedIn(*options.cut, &built.collectives);
  SYNCLINE_RETURN_IF_ERROR(emitter.Finish());
  return built;
}

}  // namespace syncline::timeline

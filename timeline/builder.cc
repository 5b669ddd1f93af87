#include "timeline/builder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "timeline/async_spans.h"
#include "timeline/emitter.h"
#include "timeline/node_builder.h"

namespace syncline::timeline {
namespace {

// The arrows of the tensors that were sent and received, and what is said of them by node.
void AddTensors(TensorMatcher::Result tensors, Emitter* emitter, std::vector<NodeResult>* results) {
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
    label.group_name = LaneName(found.groups[collective.group]);
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

}  // namespace

absl::StatusOr<BuiltTimeline> BuildTimeline(std::span<const NodeInput> nodes,
                                            const BuildOptions& options,
                                            std::span<TimelineSink* const> sinks) {
  Emitter emitter(std::vector<TimelineSink*>(sinks.begin(), sinks.end()));
  SharedTracks shared;
  Matchers matchers;
  BuiltTimeline built;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    NodeBuilder builder(nodes[i], i, options, &emitter, &shared, &matchers);
    auto result = builder.Build();
    if (!result.ok()) return WithContext(result.status(), "node " + nodes[i].name);
    built.nodes.push_back(*std::move(result));
  }
  AddTensors(matchers.tensors.Match(), &emitter, &built.nodes);
  built.collectives = matchers.collectives.Match();
  PushCollectives(built.collectives, &emitter);
  SYNCLINE_RETURN_IF_ERROR(emitter.Finish());
  return built;
}

}  // namespace syncline::timeline

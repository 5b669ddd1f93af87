// SPDX-License-Identifier: Apache-2.0
// What a profile's events say of tensors, graphs and collectives, for those who make more of it.
#include <string>
#include <string_view>

#include "timeline/profile_lanes.h"

namespace syncline::timeline {

const ProfileLanes::Open* ProfileLanes::Enclosing(const Thread& thread, Kind kind,
                                                  const Event& event) {
  for (const Lane& lane : thread.lanes) {
    for (auto open = lane.stack.rbegin(); open != lane.stack.rend(); ++open) {
      if (open->kind == kind && open->end_ns >= event.end.ns) return &*open;
    }
  }
  return nullptr;
}

void ProfileLanes::OnTensor(const Event& event, Line* line, TrackId track) {
  const uint32_t process = owner_.tensors;
  const std::string& node = event.event_class->node;
  const TensorMatcher::Place place{track, event.begin, event.begin_at};
  switch (event.event_class->kind) {
    case Kind::kSend: {
      const Open* around = Enclosing(*line->thread, Kind::kProcess, event);
      if (around == nullptr) break;  // its step began before the profile
      tensors_->OnSend(process, around->step_id, node, Text("key"), place, event.end);
      break;
    }
    case Kind::kReceiveKey:
      tensors_->OnKey(process, node, Text("key"));
      break;
    case Kind::kPosted:
      tensors_->OnPosted(process, Integer("step_id"), Text("name"), event.begin);
      break;
    case Kind::kReceived: {
      const std::string_view type = Text("kernel_type");
      if (type != "_Recv" && type != "_HostRecv") break;
      tensors_->OnReceived(process, Integer("step_id"), Text("name"), place, line->allocated_bytes);
      line->allocated_bytes.reset();
      break;
    }
    default:
      break;
  }
}

void ProfileLanes::OnPartition(const Event& event) {
  if (owner_.cut && !(event.begin_at && owner_.cut->Contains(*event.begin_at))) return;
  const Class& what = *event.event_class;
  switch (what.kind) {
    case Kind::kStep:
      partition_.OnStep(Integer("id"));
      break;
    case Kind::kExecuted:
      partition_.OnExecuted(Integer("id"), Text("kernel_name"), Integer("num_output_edges"),
                            Integer("num_output_control_edges"));
      break;
    case Kind::kDone:
      partition_.OnDone(Integer("id"));
      break;
    case Kind::kSend:
    case Kind::kReceiveKey:
      partition_.OnEnd(what.node, Text("key"), what.kind == Kind::kSend);
      [[fallthrough]];
    case Kind::kOperator:
      partition_.OnOperator(what.node, what.type_name, event.end.ns - event.begin.ns);
      break;
    default:
      break;
  }
}

Partition ProfileLanes::TakePartition() {
  Partition partition = partition_.Take();
  partition.task = owner_.task;
  return partition;
}

// A worker reaches a collective, hands its input over, says how large its group is, works at it.
void ProfileLanes::OnCollective(const Event& event, const Line& line) {
  if (!event.begin_at.has_value() || !event.end_at.has_value()) return;
  const Kind kind = event.event_class->kind;
  if (kind == Kind::kPosted && !CollectiveOfType(Text("kernel_type")).empty()) {
    collectives_->OnLaunch(owner_.collectives, Integer("step_id"), Text("name"),
                           {event.begin, *event.begin_at});
  } else if (kind == Kind::kCollectiveGroup) {
    collectives_->OnGroupSize(owner_.collectives, Integer("group_key"), Integer("group_size"));
  } else if (kind == Kind::kOperator && !event.event_class->collective.empty()) {
    OnCollectiveWork(event, line);
  }
}

void ProfileLanes::OnCollectiveWork(const Event& event, const Line& line) {
  const std::string& node = event.event_class->node;
  if (Find("instance_key") == nullptr || Find("step_id") == nullptr) {
    const Open* around = Enclosing(*line.thread, Kind::kProcess, event);
    if (around == nullptr) return;
    collectives_->OnInput(owner_.collectives, around->step_id, node, BytesOfShape(Text("shape")));
    return;
  }
  ProfileCollectives::Work work;
  work.step_id = Integer("step_id");
  work.group_key = Integer("group_key");
  work.instance_key = Integer("instance_key");
  work.begin = {event.begin, *event.begin_at};
  work.end = {event.end, *event.end_at};
  collectives_->OnWork(owner_.collectives, node, event.event_class->collective, work);
}

}  // namespace syncline::timeline

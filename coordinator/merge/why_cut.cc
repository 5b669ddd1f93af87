// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/why_cut.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/levels.h"
#include "analysis/why/cut_explain.h"

namespace syncline::merge {
namespace {

namespace why = analysis::why;
using timeline::TensorTransfer;

// "/job:worker/replica:0/task:0" of "/job:worker/replica:0/task:0/device:CPU:0".
std::string TaskOf(std::string_view device) {
  const size_t found = device.find("/device:");
  return std::string(device.substr(0, found));
}

bool IsOnDevice(const TensorTransfer& transfer) {
  const auto is_cpu = [](std::string_view device) {
    return device.find("/device:") == std::string_view::npos ||
           device.find("/device:CPU:") != std::string_view::npos;
  };
  return !is_cpu(transfer.edge.send_device) || !is_cpu(transfer.edge.receive_device);
}

class InputMaker {
 public:
  InputMaker(const OpenedInputs& inputs, const timeline::BuiltTimeline& built,
             why::CutCollected collected)
      : inputs_(inputs), built_(built), collected_(std::move(collected)) {}

  why::CutInput Make() {
    input_.names = std::move(collected_.names);
    input_.receives = std::move(collected_.receives);
    for (const timeline::NodeResult& node : built_.nodes) AddPartitions(node);
    const analysis::Models models = inputs_.models();
    for (const timeline::NodeResult& node : built_.nodes) {
      for (const TensorTransfer& transfer : node.received) Add(transfer, models);
    }
    return std::move(input_);
  }

  bool any() const { return any_; }
  bool on_devices() const { return on_devices_; }

 private:
  void AddPartitions(const timeline::NodeResult& node) {
    for (const timeline::ProcessDevices& devices : node.devices) {
      on_devices_ |= !devices.work.empty() && collected_.partitions.contains(devices.key);
    }
    for (const timeline::ProfileResult& profile : node.profiles) {
      if (profile.profiler != timeline::Profiler::kTensorFlow) continue;
      any_ = true;
      const auto [known, is_new] =
          partitions_.try_emplace(profile.process, input_.partitions.size());
      if (is_new) {
        why::CutPartition& partition = input_.partitions.emplace_back();
        const auto found = collected_.partitions.find(profile.process);
        if (found != collected_.partitions.end()) partition = std::move(found->second);
        partition.task = profile.task;
        partition.node = node.name;
        tasks_.emplace(profile.task, known->second);
      }
      if (profile.begin.has_value() && profile.end.has_value()) {
        input_.partitions[known->second].covered.emplace_back(profile.begin->ns, profile.end->ns);
      }
    }
  }

  void Add(const TensorTransfer& transfer, const analysis::Models& models) {
    const auto from = tasks_.find(TaskOf(transfer.edge.send_device));
    const auto to = tasks_.find(TaskOf(transfer.edge.receive_device));
    if (from == tasks_.end() || to == tasks_.end() || from == to) return;
    if (!transfer.sent_at.has_value() || !transfer.received_at.has_value()) return;
    on_devices_ |= IsOnDevice(transfer);
    why::CutTransfer made;
    made.step = transfer.step_id;
    made.from = from->second;
    made.to = to->second;
    made.edge = EdgeOf({transfer.edge.tensor, made.from, made.to});
    made.sent_ns = transfer.sent_at->ns;
    made.sent_recorded_ns = transfer.send_begin.ns;
    made.sending_ns = transfer.send_end.ns - transfer.send_begin.ns;
    made.received_ns = transfer.received_at->ns;
    made.received_recorded_ns = transfer.received.ns;
    if (transfer.posted.has_value()) made.posted_recorded_ns = transfer.posted->ns;
    made.bytes = transfer.bytes;
    if (models.Knows(transfer.send_begin.clock, transfer.received.clock)) {
      const auto way = analysis::Difference(models, transfer.send_begin, transfer.received);
      if (way.bounded()) made.clock_ns = way.bound_ns();
    }
    input_.transfers.push_back(made);
  }

  size_t EdgeOf(const why::CutEdge& edge) {
    const auto [found, is_new] =
        edges_.try_emplace({edge.tensor, edge.from, edge.to}, input_.edges.size());
    if (is_new) input_.edges.push_back(edge);
    return found->second;
  }

  const OpenedInputs& inputs_;
  const timeline::BuiltTimeline& built_;
  why::CutCollected collected_;
  why::CutInput input_;
  std::map<ProcessKey, size_t> partitions_;
  std::map<std::string, size_t, std::less<>> tasks_;
  std::map<std::tuple<std::string, size_t, size_t>, size_t> edges_;
  bool any_ = false;
  bool on_devices_ = false;
};

// Whether more than one tensor in a hundred has an end that no profile shows, in whole steps.
bool LeadOutside(const timeline::BuiltTimeline& built) {
  uint64_t matched = 0;
  uint64_t alone = 0;
  for (const timeline::NodeResult& node : built.nodes) {
    matched += node.received.size();
    alone += node.tensor_ends.unmatched_sends_in_complete_steps +
             node.tensor_ends.unmatched_receives_in_complete_steps;
  }
  return alone * 100 > matched + alone;
}

}  // namespace

std::optional<CutJob> CutJobOf(const OpenedInputs& inputs, const timeline::BuiltTimeline& built,
                               why::CutCollected collected) {
  InputMaker maker(inputs, built, std::move(collected));
  CutJob job;
  job.input = maker.Make();
  if (!maker.any()) return std::nullopt;
  if (maker.on_devices()) {
    job.refusal = why::CutRefusal::kDevices;
    job.refusal_text =
        "a TensorFlow job on GPUs: an operator there goes on behind the span that launched it, so "
        "its critical path is not known; `syncline report` shows what the devices did";
  } else if (LeadOutside(built)) {
    job.refusal = why::CutRefusal::kPathUnknown;
    job.refusal_text =
        "of whole steps, tensors were recorded of which only one end is there: a process that sent "
        "or received them was not profiled, or below level 3. Record all processes of the job; "
        "`syncline report` says which were profiled";
  }
  job.losses = LossesOf(inputs, built);
  if (inputs.build.window.has_value()) {
    job.window_ns = inputs.build.window->end.ns - inputs.build.window->begin.ns;
  }
  return job;
}

why::CutAnswer Explain(const CutJob& job) {
  why::CutAnswer answer;
  if (job.refusal == why::CutRefusal::kNone) {
    answer = why::ExplainCut(job.input);
  } else {
    answer.refusal = job.refusal;
    answer.refusal_text = job.refusal_text;
  }
  answer.incomplete = job.losses.incomplete;
  answer.window_ns = job.window_ns;
  return answer;
}

why::CutSide SideOf(const CutJob& job) {
  why::CutSide side;
  if (job.refusal == why::CutRefusal::kNone) {
    side = why::CutSideOf(job.input);
  } else {
    side.refusal = job.refusal;
    side.refusal_text = job.refusal_text;
  }
  side.incomplete = job.losses.incomplete;
  side.lost_events = job.losses.lost_events;
  side.window_ns = job.window_ns;
  return side;
}

}  // namespace syncline::merge

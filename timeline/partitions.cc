// SPDX-License-Identifier: Apache-2.0
#include "timeline/partitions.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_split.h"
#include "common/text.h"

namespace syncline::timeline {
namespace {

constexpr std::string_view kSource = "_SOURCE";  // TensorFlow's own: where an executor begins
// A worker has few steps under way at one time (guess): those of several clients.
constexpr size_t kOpenStepsMax = 64;

}  // namespace

uint32_t PartitionBuilder::NumberOf(std::string_view name) {
  const auto known = numbers_.find(name);
  if (known != numbers_.end()) return known->second;
  const auto number = static_cast<uint32_t>(nodes_.size());
  nodes_.emplace_back().facts.name = name;
  numbers_.emplace(std::string(name), number);
  return number;
}

void PartitionBuilder::OnStep(int64_t id) {
  const auto [step, is_new] = open_.try_emplace(id);
  step->second.begun = true;
  if (!is_new) return;
  begun_.push_back(id);
  if (begun_.size() <= kOpenStepsMax) return;
  const auto oldest = open_.find(begun_.front());
  Close(std::move(oldest->second));
  open_.erase(oldest);
  begun_.erase(begun_.begin());
}

void PartitionBuilder::OnExecuted(int64_t id, std::string_view name, int64_t data_edges,
                                  int64_t control_edges) {
  const auto step = open_.find(id);
  if (name == kSource) {
    if (step != open_.end()) ++step->second.executors;
    return;
  }
  const uint32_t number = NumberOf(name);
  PartitionNode& node = nodes_[number].facts;
  ++node.executions;
  node.data_edges = static_cast<uint32_t>(data_edges);
  node.control_edges = static_cast<uint32_t>(control_edges);
  if (step != open_.end()) step->second.nodes.push_back(number);
}

void PartitionBuilder::OnDone(int64_t id) {
  const auto step = open_.find(id);
  if (step != open_.end()) ++step->second.done;
}

void PartitionBuilder::OnOperator(std::string_view name, std::string_view type,
                                  int64_t duration_ns) {
  Node& node = nodes_[NumberOf(name)];
  ++node.events;
  node.facts.total_ns += duration_ns;
  if (node.facts.type.empty()) node.facts.type = type;
}

void PartitionBuilder::OnEnd(std::string_view name, std::string_view key, bool sends) {
  PartitionNode& node = nodes_[NumberOf(name)].facts;
  if (!node.tensor.empty()) return;
  const std::vector<absl::string_view> parts = absl::StrSplit(AbslView(key), ';');
  if (parts.size() != 5) return;
  node.send_device = std::string(parts[0]);
  node.receive_device = std::string(parts[2]);
  node.tensor = std::string(parts[3]);
  devices_.insert(sends ? node.send_device : node.receive_device);
}

void PartitionBuilder::Close(Step step) {
  if (!step.begun || step.executors == 0 || step.executors != step.done) return;
  std::sort(step.nodes.begin(), step.nodes.end());
  step.nodes.erase(std::unique(step.nodes.begin(), step.nodes.end()), step.nodes.end());
  ++graphs_[std::move(step.nodes)];
}

void PartitionBuilder::EndPiece() {
  for (auto& [id, step] : open_) Close(std::move(step));
  open_.clear();
  begun_.clear();
}

Partition PartitionBuilder::Take() {
  EndPiece();
  Partition partition;
  partition.devices.assign(devices_.begin(), devices_.end());
  std::vector<uint32_t> position(nodes_.size());  // of each node, by name
  const std::map<std::string, uint32_t> by_name(numbers_.begin(), numbers_.end());
  for (const auto& [name, number] : by_name) {
    position[number] = static_cast<uint32_t>(partition.nodes.size());
    Node& node = nodes_[number];
    if (!node.facts.data_edges.has_value()) node.facts.executions = node.events;
    partition.nodes.push_back(std::move(node.facts));
  }
  for (const auto& [nodes, steps] : graphs_) {
    PartitionGraph& graph = partition.graphs.emplace_back();
    graph.steps = steps;
    for (const uint32_t number : nodes) graph.nodes.push_back(position[number]);
    std::sort(graph.nodes.begin(), graph.nodes.end());
  }
  std::sort(partition.graphs.begin(), partition.graphs.end(), [](const auto& a, const auto& b) {
    return std::tie(b.steps, a.nodes) < std::tie(a.steps, b.nodes);
  });
  return partition;
}

}  // namespace syncline::timeline

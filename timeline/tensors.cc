// SPDX-License-Identifier: Apache-2.0
#include "timeline/tensors.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/text.h"

namespace syncline::timeline {
namespace {

constexpr std::string_view kCounters[] = {"_S", "/_", "_G"};  // how TensorFlow numbers new nodes

}  // namespace

std::string SenderOf(std::string_view receiver) {
  const size_t digits = receiver.find_last_not_of("0123456789") + 1;
  uint64_t number = 0;
  if (digits >= receiver.size() || digits == 0 ||
      !absl::SimpleAtoi(AbslView(receiver.substr(digits)), &number) || number == 0) {
    return "";
  }
  const std::string_view prefix = receiver.substr(0, digits);
  const bool counted = std::any_of(std::begin(kCounters), std::end(kCounters),
                                   [&](std::string_view end) { return prefix.ends_with(end); });
  if (!counted) return "";
  return absl::StrCat(AbslView(prefix), number - 1);
}

uint32_t TensorMatcher::AddProcess(uint32_t node, std::string_view task) {
  Process process;
  process.node = node;
  process.task = task;
  processes_.push_back(std::move(process));
  return static_cast<uint32_t>(processes_.size() - 1);
}

std::optional<uint32_t> TensorMatcher::EdgeOf(std::string_view key) {
  const auto known = edge_by_key_.find(key);
  if (known != edge_by_key_.end()) return known->second;
  std::optional<uint32_t> number;
  const std::vector<absl::string_view> parts = absl::StrSplit(AbslView(key), ';');
  if (parts.size() == 5 && parts[0] != parts[2]) {
    TensorEdge edge{std::string(parts[0]), std::string(parts[1]), std::string(parts[2]),
                    std::string(parts[3])};
    const auto [entry, is_new] =
        edge_numbers_.try_emplace(edge, static_cast<uint32_t>(edges_.size()));
    if (is_new) edges_.push_back(std::move(edge));
    number = entry->second;
  }
  edge_by_key_.emplace(std::string(key), number);
  return number;
}

void TensorMatcher::OnSend(uint32_t process, int64_t step_id, std::string_view sender,
                           std::string_view key, const Place& begin, NodeTime end) {
  const std::optional<uint32_t> edge = EdgeOf(key);
  if (!edge.has_value()) return;
  auto by_sender = edges_by_sender_.find(sender);
  if (by_sender == edges_by_sender_.end()) {
    by_sender = edges_by_sender_.emplace(std::string(sender), std::vector<uint32_t>()).first;
  }
  std::vector<uint32_t>& edges = by_sender->second;
  if (std::find(edges.begin(), edges.end(), *edge) == edges.end()) edges.push_back(*edge);
  slots_[{step_id, *edge}].sends.push_back({process, begin, end});
}

void TensorMatcher::OnKey(uint32_t process, std::string_view receiver, std::string_view key) {
  const std::optional<uint32_t> edge = EdgeOf(key);
  if (!edge.has_value()) return;
  processes_[process].edge_of_receiver.emplace(std::string(receiver), *edge);
}

void TensorMatcher::OnPosted(uint32_t process, int64_t step_id, std::string_view receiver,
                             NodeTime when) {
  posted_[{process, step_id, std::string(receiver)}].push_back(when);
}

void TensorMatcher::OnReceived(uint32_t process, int64_t step_id, std::string_view receiver,
                               const Place& when, std::optional<uint64_t> bytes) {
  received_[{process, step_id, std::string(receiver)}].push_back({process, when, {}, bytes});
}

void TensorMatcher::OnStep(uint32_t process, int64_t step_id, NodeTime begin) {
  processes_[process].steps.emplace(step_id, begin);
}

std::optional<uint32_t> TensorMatcher::EdgeOfReceiver(const Process& process,
                                                      const std::string& receiver) const {
  const auto known = process.edge_of_receiver.find(receiver);
  if (known != process.edge_of_receiver.end()) return known->second;
  const auto sent = edges_by_sender_.find(SenderOf(receiver));
  if (sent == edges_by_sender_.end()) return std::nullopt;
  std::optional<uint32_t> found;
  for (const uint32_t edge : sent->second) {
    if (!process.task.empty() && !edges_[edge].receive_device.starts_with(process.task)) continue;
    if (found.has_value()) return std::nullopt;  // two sessions have used the name: not known which
    found = edge;
  }
  return found;
}

// A step is complete when every process that had steps had this one, and a later one after it: then
// nothing of it was cut off by the profile's end.
std::set<int64_t> TensorMatcher::CompleteSteps() const {
  std::optional<std::set<int64_t>> complete;
  for (const Process& process : processes_) {
    if (process.steps.empty()) continue;
    int64_t last_ns = kUnknownLo;
    for (const auto& [id, begin] : process.steps) last_ns = std::max(last_ns, begin.ns);
    std::set<int64_t> here;
    for (const auto& [id, begin] : process.steps) {
      const bool in_all_before = !complete.has_value() || complete->contains(id);
      if (begin.ns != last_ns && in_all_before) here.insert(id);
    }
    complete = std::move(here);
  }
  return complete.value_or(std::set<int64_t>());
}

void TensorMatcher::MatchSlot(int64_t step_id, uint32_t edge, bool complete, Slots* slots,
                              Result* result) const {
  const auto by_time = [](const auto& a, const auto& b) { return a.node.ns < b.node.ns; };
  std::stable_sort(slots->sends.begin(), slots->sends.end(),
                   [&](const Send& a, const Send& b) { return by_time(a.begin, b.begin); });
  std::stable_sort(slots->receives.begin(), slots->receives.end(),
                   [&](const Receive& a, const Receive& b) { return by_time(a.when, b.when); });
  // Of a loop whose ends are not all there, it is not known which belong together.
  const size_t sends = slots->sends.size();
  const size_t receives = slots->receives.size();
  const size_t pairs = sends == receives ? sends : 0;
  for (size_t i = 0; i < pairs; ++i) {
    const Send& send = slots->sends[i];
    const Receive& receive = slots->receives[i];
    if (!Counts(receive.when)) continue;
    Matched matched;
    TensorTransfer& transfer = matched.transfer;
    transfer.edge = edges_[edge];
    transfer.step_id = step_id;
    transfer.send_node = processes_[send.process].node;
    transfer.receive_node = processes_[receive.process].node;
    transfer.send_begin = send.begin.node;
    transfer.send_end = send.end;
    transfer.posted = receive.posted;
    transfer.received = receive.when.node;
    transfer.bytes = receive.bytes;
    transfer.complete_step = complete;
    transfer.sent_at = send.begin.timeline;
    transfer.received_at = receive.when.timeline;
    matched.from = send.begin.track;
    matched.to = receive.when.track;
    result->matched.push_back(std::move(matched));
  }
  for (size_t i = pairs; i < sends; ++i) {
    if (!Counts(slots->sends[i].begin)) continue;
    TensorEnds& ends = result->nodes[processes_[slots->sends[i].process].node];
    ++ends.unmatched_sends;
    if (complete) ++ends.unmatched_sends_in_complete_steps;
  }
  for (size_t i = pairs; i < receives; ++i) {
    if (!Counts(slots->receives[i].when)) continue;
    TensorEnds& ends = result->nodes[processes_[slots->receives[i].process].node];
    ++ends.unmatched_receives;
    if (complete) ++ends.unmatched_receives_in_complete_steps;
  }
}

TensorMatcher::Result TensorMatcher::Match(const std::optional<Interval>& cut) {
  cut_ = cut;
  Result result;
  for (const Process& process : processes_) {
    result.nodes.resize(std::max<size_t>(result.nodes.size(), process.node + 1));
  }
  const std::set<int64_t> complete = CompleteSteps();
  for (auto& [waiting, receives] : received_) {
    const auto& [process, step_id, receiver] = waiting;
    const auto posted = posted_.find(waiting);
    // A receive that was posted before the profile began has no beginning here.
    const bool paired = posted != posted_.end() && posted->second.size() == receives.size();
    const std::optional<uint32_t> edge = EdgeOfReceiver(processes_[process], receiver);
    if (!edge.has_value()) {
      // A feed, or, at level 2, the receive of a send that was left out as cheap.
      if (SenderOf(receiver).empty()) continue;
      TensorEnds& ends = result.nodes[processes_[process].node];
      const auto count = static_cast<uint64_t>(
          std::count_if(receives.begin(), receives.end(),
                        [this](const Receive& receive) { return Counts(receive.when); }));
      ends.unmatched_receives += count;
      if (complete.contains(step_id)) ends.unmatched_receives_in_complete_steps += count;
      continue;
    }
    for (size_t i = 0; i < receives.size(); ++i) {
      if (paired) receives[i].posted = posted->second[i];
      slots_[{step_id, *edge}].receives.push_back(std::move(receives[i]));
    }
  }
  for (auto& [slot, ends] : slots_) {
    MatchSlot(slot.first, slot.second, complete.contains(slot.first), &ends, &result);
  }
  return result;
}

}  // namespace syncline::timeline

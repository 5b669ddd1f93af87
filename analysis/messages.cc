// SPDX-License-Identifier: Apache-2.0
#include "analysis/messages.h"

#include <algorithm>
#include <utility>

namespace syncline::analysis {
namespace {

using timeline::Message;
using timeline::MessageStream;

bool IsKnown(const MessageStream& stream, const Models& models) {
  return models.Knows(stream.sender_clock, stream.receiver_clock);
}

// Also where the model knows nothing: then by the timeline, unbounded.
LevelledDuration FlightOf(const MessageStream& stream, const Message& message,
                          const Models& models) {
  if (!IsKnown(stream, models)) return Unbounded(message.sent, message.last);
  return Difference(models, {stream.sender_clock, message.sent_ns},
                    {stream.receiver_clock, message.last_ns});
}

// A number that looks drawn at random, the same for the same `i`.
size_t Scatter(size_t i) {
  uint64_t bits = i * 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 32)) * 0xd6e8feb86659fd93;
  return bits ^ (bits >> 32);
}

// One of each `step` messages, not every step-th: programs send large and small ones by turns.
std::optional<LevelledDuration> MedianFlight(const MessageStream& stream, const Models& models) {
  const size_t step = stream.messages.size() / kFlightsMax + 1;
  std::vector<LevelledDuration> flights;
  for (size_t i = 0; i < stream.messages.size(); i += step) {
    const size_t chosen = i + Scatter(i) % std::min(step, stream.messages.size() - i);
    flights.push_back(FlightOf(stream, stream.messages[chosen], models));
  }
  return Median(std::move(flights), ByEstimate());
}

// Messages between two nodes: does their order hold?
void CheckOrder(const MessageStream& stream, std::optional<int64_t> wall_shift_ns,
                const Models& models, MessageReport* report) {
  const size_t step = stream.messages.size() / kFlightsMax + 1;
  for (size_t i = 0; i < stream.messages.size(); ++i) {
    const Message& message = stream.messages[i];
    if (message.first < message.sent) ++report->backwards_here;
    if (wall_shift_ns.has_value() && report->backwards_by_wall_clock.has_value() &&
        message.first_ns - message.sent_ns + *wall_shift_ns < 0) {
      ++*report->backwards_by_wall_clock;
    }
    if (i % step != 0 || !IsKnown(stream, models)) continue;
    const LevelledDuration order = Difference(models, {stream.sender_clock, message.sent_ns},
                                              {stream.receiver_clock, message.first_ns});
    ++report->checked;
    const Level contradiction = LevelOfContradiction(order);
    report->contradictions += contradiction == Level::kProven ? 1 : 0;
    report->likely_contradictions += contradiction == Level::kLikely ? 1 : 0;
  }
}

MessageRow RowOf(const MessageStream& stream, const Models& models) {
  MessageRow row;
  row.sender = stream.sender;
  row.receiver = stream.receiver;
  row.from = stream.from;
  row.to = stream.to;
  row.send_node = stream.send_node;
  row.receive_node = stream.receive_node;
  row.messages = stream.messages.size();
  row.unmatched = stream.unmatched;
  row.sent_bytes = stream.sent_bytes;
  row.received_bytes = stream.received_bytes;
  row.matched_bytes = stream.matched_bytes;
  row.unplaced_bytes = stream.unplaced_bytes;
  row.drawable = stream.drawable;
  row.arrows = stream.drawn;
  row.retransmits = stream.retransmits;
  for (const Message& message : stream.messages) {
    row.largest_bytes = std::max(row.largest_bytes, message.bytes);
  }
  row.flight = MedianFlight(stream, models);
  return row;
}

}  // namespace

MessageReport SummariseMessages(std::span<const timeline::NodeResult> nodes,
                                std::span<const std::optional<int64_t>> wall_offsets_ns,
                                const Models& models) {
  MessageReport report;
  const bool has_wall = std::any_of(wall_offsets_ns.begin(), wall_offsets_ns.end(),
                                    [](const auto& offset) { return offset.has_value(); });
  if (has_wall) report.backwards_by_wall_clock = 0;
  for (const timeline::NodeResult& node : nodes) {
    report.ends.connections += node.message_ends.connections;
    report.ends.alone += node.message_ends.alone;
    report.ends.alone_bytes += node.message_ends.alone_bytes;
    report.ends.doubted += node.message_ends.doubted;
    report.ends.left_out += node.message_ends.left_out;
    for (const MessageStream& stream : node.message_streams) {
      report.rows.push_back(RowOf(stream, models));
      report.messages += stream.messages.size();
      report.drawable += stream.drawable;
      report.arrows += stream.drawn;
      if (stream.send_node == stream.receive_node) continue;
      report.across_nodes += stream.messages.size();
      std::optional<int64_t> wall_shift_ns;
      const std::optional<int64_t>& sender = wall_offsets_ns[stream.send_node];
      const std::optional<int64_t>& receiver = wall_offsets_ns[stream.receive_node];
      if (sender.has_value() && receiver.has_value()) wall_shift_ns = *receiver - *sender;
      CheckOrder(stream, wall_shift_ns, models, &report);
    }
  }
  std::stable_sort(
      report.rows.begin(), report.rows.end(), [](const MessageRow& a, const MessageRow& b) {
        return std::tie(a.send_node, a.receive_node, a.sender, a.receiver, a.from, a.to) <
               std::tie(b.send_node, b.receive_node, b.sender, b.receiver, b.from, b.to);
      });
  return report;
}

}  // namespace syncline::analysis

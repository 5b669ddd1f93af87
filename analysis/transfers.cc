// SPDX-License-Identifier: Apache-2.0
#include "analysis/transfers.h"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace syncline::analysis {
namespace {

using timeline::Transfer;

struct Row {
  TransferRow row;
  std::set<int32_t> tags;
  std::vector<uint64_t> bytes;
  std::vector<int64_t> waiting_ns;
  std::vector<LevelledDuration> flights;
};

// Also where the model knows nothing: then by the timeline, unbounded.
LevelledDuration FlightOf(const Transfer& transfer, const Models& models) {
  if (!models.Knows(transfer.send_begin.clock, transfer.received->clock)) {
    return Unbounded(transfer.sent_at, *transfer.received_at);
  }
  return Difference(models, transfer.send_begin, *transfer.received);
}

void Add(const Transfer& transfer, const Models& models, Row* row, TransferReport* report) {
  ++row->row.count;
  row->bytes.push_back(transfer.bytes);
  const bool across = transfer.send_node != transfer.receive_node;
  if (across) ++report->across_nodes;
  if (!transfer.received.has_value() || !transfer.received_at.has_value()) return;
  row->waiting_ns.push_back(transfer.received->ns - transfer.posted.ns);
  const LevelledDuration flight = FlightOf(transfer, models);
  row->flights.push_back(flight);
  if (!across) return;
  if (*transfer.received_at < transfer.sent_at) ++report->backwards_here;
  const Level contradiction = LevelOfContradiction(flight);
  report->contradictions += contradiction == Level::kProven ? 1 : 0;
  report->likely_contradictions += contradiction == Level::kLikely ? 1 : 0;
}

}  // namespace

TransferReport SummariseTransfers(const timeline::Transfers& found, const Models& models) {
  TransferReport report;
  report.found = found;
  using Key = std::tuple<std::string, std::string, std::string, std::string, int32_t, int32_t>;
  std::map<Key, Row> rows;
  for (const Transfer& transfer : found.transfers) {
    const timeline::Channel& channel = found.channels[transfer.channel];
    const timeline::CollectiveGroup& group = channel.group;
    Row& row = rows[{group.job, group.incarnation, group.name, group.ranks, channel.source,
                     channel.destination}];
    if (row.tags.empty()) {
      row.row.channel = transfer.channel;
      row.row.send_node = transfer.send_node;
      row.row.receive_node = transfer.receive_node;
    }
    row.tags.insert(channel.tag);
    Add(transfer, models, &row, &report);
  }
  for (auto& [key, made] : rows) {
    TransferRow row = made.row;
    row.tags = made.tags.size();
    row.bytes = Median(std::move(made.bytes)).value_or(0);
    row.waiting_ns = Median(std::move(made.waiting_ns));
    row.flight = Median(std::move(made.flights), ByEstimate());
    report.rows.push_back(row);
  }
  return report;
}

}  // namespace syncline::analysis

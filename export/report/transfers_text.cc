// SPDX-License-Identifier: Apache-2.0
// Sends and receives of process groups.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/duration_text.h"
#include "export/report/devices_text.h"
#include "export/report/machines_text.h"
#include "export/report/section_printers.h"
#include "export/report/spread.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::Report;
using analysis::TransferRow;

// What the receivers waited in all, about.
double WaitOf(const TransferRow& row) {
  return static_cast<double>(row.count) * static_cast<double>(row.waiting_ns.value_or(0));
}

// The short report has room for the group's name and the ranks in one column, and not for tags.
Table TableOf(const std::vector<const TransferRow*>& rows, const std::string& title,
              const Report& report, bool in_full) {
  std::vector<Table::Column> columns = {Table::Names(title),
                                        {"from", Table::Align::kLeft, true},
                                        {"to", Table::Align::kLeft, true},
                                        {"count", Table::Align::kRight},
                                        {"bytes", Table::Align::kRight},
                                        {"receiver waits", Table::Align::kRight},
                                        {"send to receipt", Table::Align::kRight}};
  if (in_full) {
    columns.insert(columns.begin() + 1, {{"ranks", Table::Align::kRight},  //
                                         {"tags", Table::Align::kRight}});
  }
  Table table(columns);
  for (const TransferRow* row : rows) {
    const timeline::Channel& channel = report.transfers.found.channels[row->channel];
    const timeline::CollectiveGroup& group = channel.group;
    const std::string name = group.description.empty() ? group.name : group.description;
    const std::string ranks = absl::StrCat(channel.source, " > ", channel.destination);
    std::vector<std::string> cells = {
        in_full ? name : absl::StrCat(name, " · ", ranks),
        report.nodes[row->send_node].name,
        report.nodes[row->receive_node].name,
        Count(row->count),
        Count(row->bytes),
        row->waiting_ns.has_value() ? DurationText(*row->waiting_ns) : "-",
        row->flight.has_value() ? WithBound(*row->flight) : "-"};
    if (in_full) cells.insert(cells.begin() + 1, {ranks, Count(row->tags)});
    table.Add(std::move(cells));
  }
  return table;
}

void PrintDoubts(Page* page) {
  const analysis::TransferReport& transfers = page->report().transfers;
  if (transfers.contradictions > 0) {
    page->Warn(absl::StrCat(Plural(transfers.contradictions, "transfer"),
                            " cannot have been received when the clock model says: its bounds do "
                            "not hold, or ranks are more than a round apart"));
  }
  const timeline::Transfers& found = transfers.found;
  if (found.unmatched_sends + found.unmatched_receives + found.undecided > 0) {
    page->Line(absl::StrCat("only one end recorded: ", Plural(found.unmatched_sends, "send"),
                            " and ", Plural(found.unmatched_receives, "receive"),
                            "; not known which belong together: ", Count(found.undecided)));
  }
}

}  // namespace

bool HasTransfers(const Report& report) { return !report.transfers.rows.empty(); }

void TransfersInFull(Page* page) {
  const std::vector<TransferRow>& rows = page->report().transfers.rows;
  page->Print(TableOf(Ranked(rows, WaitOf), "group", page->report(), true));
  page->Line(
      "receiver waits: from the receiver's call to the end of its wait; send to receipt: from the "
      "start of the send to that end. bytes, of one, and times are medians. Sorted by count x "
      "receiver waits.");
  PrintDoubts(page);
}

void TransfersInShort(Page* page) {
  const Report& report = page->report();
  const std::vector<TransferRow>& all = report.transfers.rows;
  const auto rows = First(Ranked(all, WaitOf), RowsOfEach(report));
  const std::string title = ShownOf("Transfers", rows.size(), all.size()) + " · medians";
  page->PrintBelow(title, TableOf(rows, title, report, false));
  PrintDoubts(page);
}

size_t RowsOfEach(const Report& report) {
  const int kinds = HasCollectives(report) + HasTransfers(report) + HasTensors(report);
  return (kinds <= 1 ? 4 : 3) - (HasMachineLines(report) ? 1 : 0) - (HasDevices(report) ? 1 : 0);
}

}  // namespace syncline::report

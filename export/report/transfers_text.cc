// SPDX-License-Identifier: Apache-2.0
#include "export/report/transfers_text.h"

#include "absl/strings/str_cat.h"
#include "common/duration_text.h"
#include "export/report/table.h"
#include "export/report/units.h"

namespace syncline::report {

std::string TransfersText(const analysis::Report& report, size_t width, size_t indent) {
  const analysis::TransferReport& transfers = report.transfers;
  if (transfers.rows.empty()) return "";
  Table table({{"group", Table::Align::kLeft, true},
               {"ranks", Table::Align::kRight},
               {"from", Table::Align::kLeft, true},
               {"to", Table::Align::kLeft, true},
               {"tags", Table::Align::kRight},
               {"count", Table::Align::kRight},
               {"bytes", Table::Align::kRight},
               {"waiting", Table::Align::kRight},
               {"flight", Table::Align::kRight}});
  for (const analysis::TransferRow& row : transfers.rows) {
    const timeline::Channel& channel = transfers.found.channels[row.channel];
    const timeline::CollectiveGroup& group = channel.group;
    table.Add({group.description.empty() ? group.name : group.description,
               absl::StrCat(channel.source, " > ", channel.destination),
               report.nodes[row.send_node].name, report.nodes[row.receive_node].name,
               Count(row.tags), Count(row.count), Count(row.bytes),
               row.waiting_ns.has_value() ? DurationText(*row.waiting_ns) : "-",
               row.flight.has_value() ? WithBound(*row.flight) : "-"});
  }
  std::string out = table.Format(width, indent);
  const std::string blanks(indent, ' ');
  absl::StrAppend(&out, blanks,
                  "medians; waiting: from the receiver's call to the end of its wait; flight: from "
                  "the begin\n",
                  blanks, "of the send to that end.\n");
  if (transfers.contradictions > 0) {
    absl::StrAppend(&out, blanks, "! ", Plural(transfers.contradictions, "transfer"),
                    " cannot have been received when the clock model says: its bounds do not hold, "
                    "or ranks are more than a round apart\n");
  }
  const timeline::Transfers& found = transfers.found;
  if (found.unmatched_sends + found.unmatched_receives + found.undecided > 0) {
    absl::StrAppend(&out, blanks, Plural(found.unmatched_sends, "send"), " and ",
                    Plural(found.unmatched_receives, "receive"), " without the other, ",
                    Count(found.undecided), " of which it is not known which belong together\n");
  }
  return out;
}

}  // namespace syncline::report

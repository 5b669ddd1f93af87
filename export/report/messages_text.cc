// SPDX-License-Identifier: Apache-2.0
// Messages between processes: what each direction of a connection carried.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "export/report/section_printers.h"
#include "export/report/spread.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::MessageReport;
using analysis::MessageRow;
using analysis::Report;

constexpr size_t kRowsShown = 4;
constexpr char kMeaning[] =
    "send to receipt: the median time from before a message was sent until all of it had been "
    "received; retransmitted: segments, by the kernel's count.";

uint64_t BytesOf(const MessageRow& row) { return row.sent_bytes; }

Table TableOf(const std::vector<const MessageRow*>& rows, const std::string& title,
              const Report& report) {
  Table table({Table::Names(title),
               {"to", Table::Align::kLeft, true},
               {"connection"},
               {"messages", Table::Align::kRight},
               {"bytes", Table::Align::kRight},
               {"largest", Table::Align::kRight},
               {"send to receipt", Table::Align::kRight},
               {"retransmitted", Table::Align::kRight}});
  const auto& nodes = report.nodes;
  for (const MessageRow* row : rows) {
    table.Add({nodes[row->send_node].name, nodes[row->receive_node].name,
               absl::StrCat(row->from, " > ", row->to), Count(row->messages),
               Count(row->sent_bytes), Count(row->largest_bytes),
               row->flight.has_value() ? WithBound(*row->flight) : "-",
               row->retransmits.has_value() ? Count(*row->retransmits) : "-"});
  }
  return table;
}

void WarnOfContradictions(Page* page) {
  const uint64_t contradictions = page->report().messages.contradictions;
  if (contradictions == 0) return;
  page->Warn(
      absl::StrCat(Plural(contradictions, "message"),
                   " cannot have arrived when the clock model says: its bounds do not hold"));
}

// "; most retransmitted segments: 29, worker-0 > master-0".
std::string RetransmitsText(const Report& report) {
  const MessageRow* most = nullptr;
  for (const MessageRow& row : report.messages.rows) {
    if (!row.retransmits.has_value()) continue;
    if (most == nullptr || *row.retransmits > *most->retransmits) most = &row;
  }
  if (most == nullptr) return "";
  if (*most->retransmits == 0) return "; no segment was retransmitted";
  return absl::StrCat("; most retransmitted segments: ", Count(*most->retransmits), ", ",
                      report.nodes[most->send_node].name, " > ",
                      report.nodes[most->receive_node].name);
}

// "20 000 of 102 714 messages have an arrow on the timeline"; "" where all have one.
std::string ArrowsText(const MessageReport& messages) {
  if (messages.arrows == messages.drawable) return "";
  return absl::StrCat(Count(messages.arrows), " of ", Plural(messages.drawable, "message"),
                      " have an arrow on the timeline, chosen evenly over connections and time");
}

// What else of this recording says what processes sent each other.
bool HasMore(const Report& report) {
  return HasTensors(report) || HasCollectives(report) || HasTransfers(report);
}

}  // namespace

bool HasMessages(const Report& report) {
  return !report.messages.rows.empty() || report.messages.ends.alone > 0;
}

void MessagesInFull(Page* page) {
  const MessageReport& messages = page->report().messages;
  const timeline::MessageEnds& ends = messages.ends;
  if (!messages.rows.empty()) {
    page->Print(TableOf(Ranked(messages.rows, BytesOf), "from", page->report()));
  }
  page->Line(kMeaning);
  if (messages.across_nodes > 0 && messages.backwards_by_wall_clock.has_value()) {
    page->Line(absl::StrCat("merged by wall clock, ", Count(*messages.backwards_by_wall_clock),
                            " of ", Plural(messages.across_nodes, "message"),
                            " arrive before they were sent; in this timeline ",
                            Count(messages.backwards_here)));
  }
  if (const std::string arrows = ArrowsText(messages); !arrows.empty()) page->Line(arrows);
  WarnOfContradictions(page);
  if (ends.alone > 0) {
    page->Line(absl::StrCat(Plural(ends.alone, "connection"), " (", Count(ends.alone_bytes),
                            " bytes) with only one end recorded: the other process was not "
                            "recorded, or addresses are translated between the two"));
  }
  if (ends.doubted + ends.left_out > 0) {
    page->Line(absl::StrCat(Plural(ends.doubted, "direction"),
                            " with bytes that were not recorded; ",
                            Plural(ends.left_out, "transfer"), " left out at the memory limit"));
  }
}

void MessagesInShort(Page* page) {
  const Report& report = page->report();
  const std::vector<MessageRow>& rows = report.messages.rows;
  if (rows.empty()) {
    page->Item("Messages", absl::StrCat("none with both ends recorded; ",
                                        Plural(report.messages.ends.alone, "connection"),
                                        " with only one end recorded"));
    return;
  }
  const std::vector<const MessageRow*> ranked = Ranked(rows, BytesOf);
  if (HasMore(report)) {
    const MessageRow& most = *ranked.front();
    page->Item("Messages",
               absl::StrCat(Count(report.messages.messages), " in ",
                            Plural(rows.size(), "direction"), "; most bytes: ",
                            Count(most.sent_bytes), ", ", report.nodes[most.send_node].name, " > ",
                            report.nodes[most.receive_node].name, ", median from send to receipt ",
                            most.flight.has_value() ? WithBound(*most.flight) : "unknown",
                            RetransmitsText(report)));
  } else {
    const auto shown = First(ranked, kRowsShown);
    const std::string title = ShownOf("Messages from", shown.size(), rows.size());
    page->PrintBelow(title, TableOf(shown, title, report));
    page->Line(kMeaning);
  }
  if (const std::string arrows = ArrowsText(report.messages); !arrows.empty()) {
    page->Item("", arrows);
  }
  WarnOfContradictions(page);
}

}  // namespace syncline::report

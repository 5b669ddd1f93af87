// SPDX-License-Identifier: Apache-2.0
#include "export/report/text_report.h"
#include "common/duration_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "export/report/levels_text.h"
#include "export/report/partitions_text.h"
#include "export/report/receipt_text.h"
#include "export/report/table.h"
#include "export/report/transfers_text.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::Report;

constexpr size_t kIndent = 2;

class Writer {
 public:
  Writer(const Report& report, const TextOptions& options) : report_(report), options_(options) {}
  std::string Write();

 private:
  int64_t WindowNs() const { return report_.window_end.ns - report_.window_begin.ns; }
  void Heading(const std::string& text);
  void Line(const std::string& text) { absl::StrAppend(&out_, "  ", text, "\n"); }
  void Warn(const std::string& text);
  void Print(const Table& table) { out_ += table.Format(options_.width, kIndent); }
  void Head();
  void Nodes();
  void Coverage();
  void Silences();
  void Losses();
  void Steps();
  void Groups(const analysis::GroupSeries& groups);
  void WallClock();
  void ClockEvents();
  void Profiles(timeline::Profiler profiler);
  void Tensors();
  void Messages();
  void Collectives();
  void Tasks();
  void Section(const std::string& heading, const std::string& text);

  const Report& report_;
  const TextOptions& options_;
  std::string out_;
};

void Writer::Heading(const std::string& text) {
  absl::StrAppend(&out_, "\n", options_.color ? "\x1b[1m" : "", text,
                  options_.color ? "\x1b[0m" : "", "\n");
}

void Writer::Warn(const std::string& text) {
  absl::StrAppend(&out_, "  ", options_.color ? "\x1b[33m" : "", "! ", Fit(text, 1000),
                  options_.color ? "\x1b[0m" : "", "\n");
}

void Writer::Head() {
  const int64_t window_ns = WindowNs();
  absl::StrAppend(&out_, report_.from_recording ? "Recording " + report_.recording_id : "Traces",
                  " · ", Plural(report_.nodes.size(), "node"), " · ", DurationText(window_ns),
                  " · ", Plural(report_.events, "event"), "\n");
  if (!report_.stop_reason.empty() && report_.stop_reason != "requested") {
    Line("stopped: " + report_.stop_reason);
  }
  for (const std::string& complaint : report_.complaints) Warn(complaint);
  for (const std::string& note : report_.notes) Line(Fit("note: " + note, 1000));
}

void Writer::Nodes() {
  Heading("Nodes");
  Table table({{"node", Table::Align::kLeft, true},
               {"role", Table::Align::kLeft, true},
               {"state"},
               {"events", Table::Align::kRight},
               {"started", Table::Align::kRight},
               {"stopped", Table::Align::kRight},
               {"bound", Table::Align::kRight},
               {"likely", Table::Align::kRight}});
  for (const analysis::NodeReport& node : report_.nodes) {
    table.Add(
        {node.name, node.role, node.state, Count(node.events), WithBound(node.start_skew),
         WithBound(node.stop_skew),
         node.bound_ns.has_value() ? "± " + DurationText(*node.bound_ns) : "unknown",
         node.likely_bound_ns.has_value() ? "± " + DurationText(*node.likely_bound_ns) : "-"});
  }
  Print(table);
  if (report_.from_recording) {
    Line(absl::StrCat("started and stopped: achieved less asked for, between the node's clock and ",
                      report_.reference.empty() ? "the reference" : "that of " + report_.reference,
                      "."));
  }
  const AssumptionText assumed = TextOf(report_);
  if (!assumed.warning.empty()) Warn(assumed.warning);
  for (const std::string& line : assumed.lines) Line(line);
}

// Processes of which nothing is known in a part of the window: a rank that hangs looks like this.
void Writer::Silences() {
  constexpr size_t kNamedMax = 8;
  for (const analysis::NodeReport& node : report_.nodes) {
    if (node.processes.empty() && node.state == "complete") {
      Line(absl::StrCat(node.name, ": no process was traced"));
    }
    size_t silent = 0;
    for (const analysis::ProcessReport& process : node.processes) {
      if (!process.covered_begin.has_value()) {
        if (++silent > kNamedMax) continue;
        Line(absl::StrCat(process.name,
                          ": no call that is recorded, in the whole window: idle, stopped, or "
                          "inside one call all the time"));
      } else if (!process.end_known && process.covered_end.has_value() &&
                 *process.covered_end < report_.window_end) {
        Line(absl::StrCat(process.name, ": nothing after ",
                          SignedDurationText(process.covered_end->ns),
                          process.cut_off ? ": it went on, but LTTng did not"
                                          : ": it ended, or was inside one call from then on"));
      }
    }
    if (silent > kNamedMax) {
      Line(absl::StrCat(node.name, ": and no call of ", silent - kNamedMax, " processes more"));
    }
  }
}

void Writer::Coverage() {
  Table table({{"process", Table::Align::kLeft, true},
               {"pid", Table::Align::kRight},
               {"threads", Table::Align::kRight},
               {"covered", Table::Align::kRight},
               {"of window", Table::Align::kRight},
               {"events", Table::Align::kRight}});
  const int64_t window_ns = WindowNs();
  for (const analysis::NodeReport& node : report_.nodes) {
    for (const analysis::ProcessReport& process : node.processes) {
      table.Add({process.name, absl::StrCat(process.pid), absl::StrCat(process.threads),
                 DurationText(process.covered_ns), Percent(process.covered_ns, window_ns),
                 Count(process.events)});
    }
  }
  if (table.empty()) return;
  Heading("Coverage");
  Print(table);
  Silences();
  if (report_.common_begin.has_value()) {
    Line(absl::StrCat("covered by all: ", SignedDurationText(report_.common_begin->ns), " to ",
                      SignedDurationText(report_.common_end->ns), " (",
                      DurationText(report_.common_end->ns - report_.common_begin->ns), ")"));
  } else {
    Line("no interval is covered by all processes");
  }
}

void Writer::Losses() {
  Heading("Losses");
  Table table({{"node"},
               {"what"},
               {"count", Table::Align::kRight},
               {"intervals", Table::Align::kRight},
               {"from", Table::Align::kRight},
               {"to", Table::Align::kRight},
               {"source", Table::Align::kLeft, true},
               {"detail", Table::Align::kLeft, true}});
  for (const analysis::NodeReport& node : report_.nodes) {
    for (const timeline::LossTotal& loss : node.losses) {
      table.Add({node.name, LossReasonName(loss.reason),
                 loss.count.has_value() ? Count(*loss.count) : "unknown", Count(loss.intervals),
                 SignedDurationText(loss.begin.ns), SignedDurationText(loss.end.ns), loss.source,
                 loss.detail});
    }
    for (const analysis::ProcessReport& process : node.processes) {
      if (process.lost.value_or(0) == 0) continue;
      table.Add({node.name, "lost in process", Count(*process.lost), "-", "-", "-", process.name,
                 "events the process could not hand to the tracer"});
    }
  }
  if (table.empty()) {
    Line(report_.incomplete || report_.begins_late
             ? "none found in the traces; what is missing is said at the top"
             : "none: every event that was counted is in the traces");
    return;
  }
  Print(table);
}

void Writer::Groups(const analysis::GroupSeries& groups) {
  uint64_t tasks = 0;
  for (const analysis::StepGroup& group : groups.groups) tasks += group.tasks;
  Line(absl::StrCat(report_.nodes[groups.node].name, " marks no steps; its ", Plural(tasks, "task"),
                    " in ", Plural(groups.groups.size(), "of these step"), ": proven inside ",
                    Count(groups.inside), ", outside ", Count(groups.outside), ", undecided ",
                    Count(groups.undecided)));
  if (groups.likely_inside + groups.likely_outside == 0) return;
  Line(absl::StrCat("likely inside ", Count(groups.likely_inside), ", outside ",
                    Count(groups.likely_outside), ": if ",
                    clocksync::AsymmetryText(report_.assumption.asymmetry_percent)));
}

void Writer::Steps() {
  if (report_.steps.empty()) return;
  Heading("Steps");
  Table table({{"process", Table::Align::kLeft, true},
               {"step"},
               {"count", Table::Align::kRight},
               {"mean", Table::Align::kRight},
               {"min", Table::Align::kRight},
               {"median", Table::Align::kRight},
               {"max", Table::Align::kRight}});
  for (const analysis::StepSeries& series : report_.steps) {
    table.Add(
        {series.process, series.domain.empty() ? series.name : series.domain + " · " + series.name,
         Count(series.steps.size()), DurationText(series.mean_ns), DurationText(series.min_ns),
         DurationText(series.median_ns), DurationText(series.max_ns)});
  }
  Print(table);
  for (const analysis::GroupSeries& groups : report_.groups) Groups(groups);
}

void Writer::ClockEvents() {
  if (report_.clock_events.empty()) return;
  Heading("What happened to the clocks");
  Table table({{"clock of", Table::Align::kLeft, true},
               {"what"},
               {"from", Table::Align::kRight},
               {"to", Table::Align::kRight}});
  const auto when = [](const std::optional<TimelineTime>& time) {
    return time.has_value() ? SignedDurationText(time->ns) : std::string("-");
  };
  for (const clocksync::ClockEvent& event : report_.clock_events) {
    table.Add({event.node, clocksync::EventName(event), when(event.begin), when(event.end)});
  }
  Print(table);
  for (const clocksync::ClockEvent& event : report_.clock_events) {
    Line(Fit(absl::StrCat(event.node, ": ", event.text), 1000));
  }
}

void Writer::WallClock() {
  const bool any = std::any_of(report_.nodes.begin(), report_.nodes.end(),
                               [](const auto& node) { return node.wall_error.has_value(); });
  if (!any) return;
  Heading("What a merge by wall clock would have got wrong");
  for (const analysis::NodeReport& node : report_.nodes) {
    if (!node.wall_error.has_value()) continue;
    Line(absl::StrCat(node.name, " would be drawn ", WithBound(node.wall_error),
                      " from where it was, against ", report_.reference));
  }
  for (const analysis::GroupSeries& groups : report_.groups) {
    if (!groups.wall_shift.has_value()) continue;
    Line(absl::StrCat(report_.nodes[groups.node].name, ": ", Count(groups.moved_by_wall_clock),
                      " of ", Count(groups.groups.size()), " groups (",
                      Percent(static_cast<int64_t>(groups.moved_by_wall_clock),
                              static_cast<int64_t>(groups.groups.size())),
                      ") would lie in another step than the one they belong to"));
  }
}

void Writer::Profiles(timeline::Profiler profiler) {
  const bool tensorflow = profiler == timeline::Profiler::kTensorFlow;  // which has tasks and steps
  std::vector<Table::Column> columns = {{"process", Table::Align::kLeft, true},
                                        {"from", Table::Align::kRight},
                                        {"to", Table::Align::kRight},
                                        {"operators", Table::Align::kRight}};
  if (tensorflow) {
    columns.insert(columns.begin() + 1, {"task", Table::Align::kLeft, true});
    columns.push_back({"steps", Table::Align::kRight});
  }
  columns.push_back({"", Table::Align::kLeft, true});
  Table table(columns);
  const auto when = [](const std::optional<TimelineTime>& time, const auto& profile) {
    if (time.has_value()) return SignedDurationText(time->ns);
    return std::string(profile.events > 0 ? "undecided" : "-");
  };
  for (const analysis::NodeReport& node : report_.nodes) {
    for (const timeline::ProfileResult& profile : node.profiles) {
      if (profile.profiler != profiler) continue;
      std::vector<std::string> cells = {profile.name, when(profile.begin, profile),
                                        when(profile.end, profile), Count(profile.operators)};
      if (tensorflow) {
        cells.insert(cells.begin() + 1, profile.task);
        cells.push_back(Count(profile.steps));
      }
      cells.push_back(profile.absence);
      table.Add(std::move(cells));
    }
  }
  if (table.empty()) return;
  Heading(tensorflow ? "TensorFlow's profiles" : "PyTorch's profiles (Kineto)");
  Print(table);
}

void Writer::Tensors() {
  const analysis::TensorReport& tensors = report_.tensors;
  if (tensors.edges.empty()) return;
  Heading("Tensors between processes");
  Table table({{"tensor", Table::Align::kLeft, true},
               {"from", Table::Align::kLeft, true},
               {"to", Table::Align::kLeft, true},
               {"count", Table::Align::kRight},
               {"bytes", Table::Align::kRight},
               {"waiting", Table::Align::kRight},
               {"flight", Table::Align::kRight}});
  for (const analysis::TensorEdgeReport& edge : tensors.edges) {
    table.Add({edge.tensor, report_.nodes[edge.send_node].name,
               report_.nodes[edge.receive_node].name, Count(edge.count),
               edge.sized == 0 ? "-" : Count(*edge.sized_bytes) + (edge.bytes() ? "" : "*"),
               edge.waiting_ns.has_value() ? DurationText(*edge.waiting_ns) : "-",
               WithBound(edge.flight)});
  }
  Print(table);
  const bool in_part =
      std::any_of(tensors.edges.begin(), tensors.edges.end(),
                  [](const auto& edge) { return edge.sized > 0 && !edge.bytes(); });
  Line(absl::StrCat("medians; waiting: from when the receiver began to wait until the tensor was ",
                    "there; flight: from the begin of its send",
                    in_part ? "; *: of those whose size is known, the larger ones." : "."));
  if (tensors.across_nodes > 0) {
    Line(absl::StrCat("merged by wall clock, ", Count(tensors.backwards_by_wall_clock), " of ",
                      Plural(tensors.across_nodes, "tensor"),
                      " arrive before they were sent; here ", Count(tensors.backwards_here)));
  }
  if (tensors.contradictions > 0) {
    Warn(absl::StrCat(Plural(tensors.contradictions, "tensor"),
                      " cannot have arrived when the clock model says: its bounds do not hold"));
  }
  const uint64_t unmatched = tensors.unmatched.unmatched_sends_in_complete_steps +
                             tensors.unmatched.unmatched_receives_in_complete_steps;
  if (unmatched > 0) {
    Line(absl::StrCat(Plural(unmatched, "end"),
                      " of tensors in whole steps without the other "
                      "(below level 3 the profiler leaves out cheap sends)"));
  }
}

// The connections that carried most; the JSON has all.
void Writer::Messages() {
  constexpr size_t kRowsMax = 12;
  const analysis::MessageReport& messages = report_.messages;
  const timeline::MessageEnds& ends = messages.ends;
  if (messages.rows.empty() && ends.alone == 0) return;
  Heading("Messages between processes");
  std::vector<const analysis::MessageRow*> rows;
  for (const analysis::MessageRow& row : messages.rows) rows.push_back(&row);
  const size_t shown = std::min(rows.size(), kRowsMax);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto* a, const auto* b) { return a->sent_bytes > b->sent_bytes; });
  Table table({{"from", Table::Align::kLeft, true},
               {"to", Table::Align::kLeft, true},
               {"connection"},
               {"messages", Table::Align::kRight},
               {"bytes", Table::Align::kRight},
               {"largest", Table::Align::kRight},
               {"on the way", Table::Align::kRight},
               {"sent again", Table::Align::kRight}});
  for (size_t i = 0; i < shown; ++i) {
    const analysis::MessageRow& row = *rows[i];
    table.Add({report_.nodes[row.send_node].name, report_.nodes[row.receive_node].name,
               absl::StrCat(row.from, " > ", row.to), Count(row.messages), Count(row.sent_bytes),
               Count(row.largest_bytes), row.flight.has_value() ? WithBound(*row.flight) : "-",
               row.retransmits.has_value() ? Count(*row.retransmits) : "-"});
  }
  Print(table);
  Line("on the way: from before a message was sent until all of it had been received, median.");
  if (shown < rows.size()) {
    Line(absl::StrCat("the JSON has ", Plural(rows.size() - shown, "more direction")));
  }
  if (messages.across_nodes > 0 && messages.backwards_by_wall_clock.has_value()) {
    Line(absl::StrCat("merged by wall clock, ", Count(*messages.backwards_by_wall_clock), " of ",
                      Plural(messages.across_nodes, "message"),
                      " arrive before they were sent; here ", Count(messages.backwards_here)));
  }
  if (messages.contradictions > 0) {
    Warn(absl::StrCat(Plural(messages.contradictions, "message"),
                      " cannot have arrived when the clock model says: its bounds do not hold"));
  }
  if (ends.alone > 0) {
    Line(absl::StrCat(Plural(ends.alone, "end"), " of connections (", Count(ends.alone_bytes),
                      " bytes) without the other: not recorded there, or addresses translated"));
  }
  if (ends.doubted + ends.left_out > 0) {
    Line(absl::StrCat(Plural(ends.doubted, "direction"), " with bytes that went by unseen; ",
                      Plural(ends.left_out, "transfer"), " beyond what memory allows"));
  }
}

void Writer::Collectives() {
  const analysis::CollectiveReport& collectives = report_.collectives;
  const size_t undecided = collectives.found.undecided.size();
  const std::string unknown = " were launched, of which their group is not known, or their number";
  if (collectives.kinds.empty() && undecided == 0) return;
  Heading("Collectives");
  if (collectives.kinds.empty()) return Line(Count(undecided) + unknown);
  Table table({{"collective", Table::Align::kLeft, true},
               {"group", Table::Align::kLeft, true},
               {"ranks", Table::Align::kLeft, true},
               {"count", Table::Align::kRight},
               {"whole", Table::Align::kRight},
               {"bytes", Table::Align::kRight},
               {"spread of entries", Table::Align::kRight},
               {"duration", Table::Align::kRight}});
  for (const analysis::CollectiveKindReport& kind : collectives.kinds) {
    const timeline::CollectiveGroup& group = collectives.found.groups[kind.group];
    table.Add({kind.name, group.description.empty() ? group.name : group.description, group.ranks,
               Count(kind.count), Count(kind.whole),
               kind.bytes.has_value() ? Count(*kind.bytes) : "-",
               kind.spread.has_value() ? WithBound(*kind.spread) : "-",
               kind.duration.has_value() ? WithBound(*kind.duration) : "-"});
  }
  Print(table);
  Line(
      "medians of whole ones (every rank was seen); duration: from the first entry to the last "
      "exit.");
  const std::string order = OrderOfEntries(report_);
  if (!order.empty()) Line(order);
  if (collectives.contradictions > 0) {
    Warn(absl::StrCat(Plural(collectives.contradictions, "collective"),
                      " that a rank left before another entered: the clock model's bounds do not "
                      "hold, or events were lost"));
  }
  if (undecided > 0) Line(absl::StrCat(Count(undecided), " more", unknown));
}

void Writer::Tasks() {
  if (report_.tasks.empty()) return;
  for (size_t i = 0; i < report_.tasks.size();) {
    const std::string& domain = report_.tasks[i].domain;
    Heading(absl::StrCat("Top tasks · ", domain.empty() ? "no domain" : domain));
    Table table({{"task", Table::Align::kLeft, true},
                 {"node"},
                 {"count", Table::Align::kRight},
                 {"total", Table::Align::kRight},
                 {"self", Table::Align::kRight},
                 {"average", Table::Align::kRight},
                 {"clipped", Table::Align::kRight}});
    size_t rows = 0;
    size_t more = 0;
    for (; i < report_.tasks.size() && report_.tasks[i].domain == domain; ++i) {
      const analysis::TaskTotal& task = report_.tasks[i];
      if (rows == options_.tasks_per_domain) {
        ++more;
        continue;
      }
      ++rows;
      table.Add(
          {task.name, task.node, Count(task.count), DurationText(task.total_ns),
           DurationText(task.self_ns),
           task.count == 0 ? "-" : DurationText(task.total_ns / static_cast<int64_t>(task.count)),
           task.clipped == 0 ? "" : Count(task.clipped)});
    }
    Print(table);
    if (more > 0) Line(absl::StrCat("and ", more, " more (--json has them all)"));
  }
  const bool any_number =
      std::any_of(report_.tasks.begin(), report_.tasks.end(),
                  [](const auto& task) { return task.name.find('#') != std::string::npos; });
  if (any_number) {
    absl::StrAppend(&out_, "\n  # in a name stands for a number: \"step 1\" and \"step 2\" are ",
                    "counted together, as \"step #\".\n");
  }
}

void Writer::Section(const std::string& heading, const std::string& text) {
  if (text.empty()) return;
  Heading(heading);
  out_ += text;
}

std::string Writer::Write() {
  Head();
  Nodes();
  Coverage();
  Losses();
  ClockEvents();
  Steps();
  WallClock();
  Profiles(timeline::Profiler::kTensorFlow);
  Profiles(timeline::Profiler::kKineto);
  Section("Partitions", PartitionsText(report_, options_.width, kIndent));
  Tensors();
  Messages();
  Collectives();
  Section("Sends and receives", TransfersText(report_, options_.width, kIndent));
  Tasks();
  Section("What it cost", ReceiptText(report_.receipt, WindowNs(), options_.width, kIndent));
  return std::move(out_);
}

}  // namespace

std::string TextReport(const Report& report, const TextOptions& options) {
  return Writer(report, options).Write();
}

}  // namespace syncline::report

// SPDX-License-Identifier: Apache-2.0
// Is the recording whole: what processes cover of the window, and what was lost.
#include <algorithm>
#include <iterator>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/duration_text.h"
#include "common/process_part.h"
#include "export/report/section_printers.h"
#include "export/report/spread.h"
#include "export/report/table.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::NodeReport;
using analysis::ProcessReport;
using analysis::Report;

constexpr size_t kReasonsShown = 4;
constexpr size_t kEndsShown = 3;
constexpr size_t kEndColumns = 60;    // of a name
constexpr int64_t kFineTenths = 990;  // guessed: of less, each process is worth a look

// Tenths of a percent, rounded down so that ">= 99.9 %" is true.
int64_t CoveredTenths(const ProcessReport& process, int64_t window_ns) {
  if (window_ns <= 0) return 0;
  return static_cast<int64_t>(1000.0 * static_cast<double>(process.covered_ns) /
                              static_cast<double>(window_ns));
}

std::string TenthsText(int64_t tenths) { return Percent(tenths, 1000); }

struct CoverageRow {
  int64_t missing_ns = 0;
  std::vector<std::string> cells;
};

// Of one process, or of a rank's loader workers or children: threads and events are their sums,
// covered is the range.
CoverageRow RowOf(const std::string& node, const std::vector<const ProcessReport*>& processes,
                  int64_t window_ns) {
  const auto [least, most] = std::minmax_element(
      processes.begin(), processes.end(),
      [](const auto* a, const auto* b) { return a->covered_ns < b->covered_ns; });
  uint64_t threads = 0;
  uint64_t events = 0;
  for (const ProcessReport* process : processes) {
    threads += process->threads;
    events += process->events;
  }
  const auto range = [](const std::string& from, const std::string& to) {
    return from == to ? from : absl::StrCat(from, " to ", to);
  };
  const ProcessReport& first = *processes.front();
  const bool alone = processes.size() == 1;
  return {
      (*least)->missing_ns,
      {FoldedName(node, processes), alone ? absl::StrCat(first.pid) : "-", absl::StrCat(threads),
       range(DurationText((*least)->covered_ns), DurationText((*most)->covered_ns)),
       range(Percent((*least)->covered_ns, window_ns), Percent((*most)->covered_ns, window_ns)),
       Count(events)}};
}

bool IsSilent(const ProcessReport& process) { return !process.covered_begin.has_value(); }

bool EndsEarly(const ProcessReport& process, const Report& report) {
  return !process.end_known && process.covered_end.has_value() &&
         *process.covered_end < report.window_end;
}

// "ended between +4.69 s and +5.20 s"; empty: it is not known to have ended, or only behind the
// window's last recorded call.
std::string EndText(const ProcessReport& process, const Report& report) {
  if (!process.ended.has_value()) return "";
  const std::string before = SignedDurationText(process.ended->before.ns);
  if (!process.ended->after.has_value()) return "ended before " + before;
  if (*process.ended->after >= report.window_end) return "";
  return absl::StrCat("ended between ", SignedDurationText(process.ended->after->ns), " and ",
                      before);
}

// Of a rank's loader workers, or children: they come and go, workers with each epoch.
void PrintSilencesOf(const std::string& node, const std::vector<const ProcessReport*>& workers,
                     Page* page) {
  const auto count = [&](const auto& is) {
    return static_cast<uint64_t>(std::count_if(workers.begin(), workers.end(),
                                               [&](const auto* worker) { return is(*worker); }));
  };
  const uint64_t silent = count([](const ProcessReport& one) { return IsSilent(one); });
  const uint64_t lossy =
      count([](const ProcessReport& one) { return IsSilent(one) && one.lost.value_or(0) > 0; });
  const uint64_t early = count(
      [&](const ProcessReport& one) { return !IsSilent(one) && EndsEarly(one, page->report()); });
  const uint64_t cut_off = count([&](const ProcessReport& one) {
    return !IsSilent(one) && EndsEarly(one, page->report()) && one.cut_off;
  });
  const std::string name = FoldedName(node, workers) + ": ";
  if (lossy > 0) {
    page->Line(absl::StrCat(name, Count(lossy), " without a recorded call in the whole window ",
                            "because all their calls were lost"));
  }
  if (silent > lossy) {
    page->Line(absl::StrCat(name, Count(silent - lossy),
                            " without a recorded call in the whole window: idle, stopped, gone, "
                            "not reached, or inside one call all the time"));
  }
  if (cut_off > 0) {
    page->Line(absl::StrCat(name, Count(cut_off),
                            " without a recorded call at the window's end: the processes went on, "
                            "but LTTng did not"));
  }
  if (early > cut_off) {
    page->Line(absl::StrCat(name, Count(early - cut_off),
                            " without a recorded call at the window's end: each ended, or was "
                            "inside one call from then on"));
  }
}

// Processes of which nothing is known in a part of the window: a rank that hangs looks like this.
void PrintSilences(Page* page) {
  const Report& report = page->report();
  for (const NodeReport& node : report.nodes) {
    if (node.processes.empty() && node.state == "complete") {
      page->Line(node.name + ": no process was traced");
    }
    for (const auto& row : Folded(node.processes)) {
      if (row.size() > 1) {
        PrintSilencesOf(node.name, row, page);
        continue;
      }
      const ProcessReport& process = *row.front();
      const std::string end = EndText(process, report);
      if (IsSilent(process)) {
        page->Line(absl::StrCat(
            process.name, ": no recorded call in the whole window: ",
            process.lost.value_or(0) > 0 ? absl::StrCat("it lost ", Plural(*process.lost, "call"))
            : end.empty() ? "idle, stopped, gone, not reached, or inside one call all the time"
                          : "it " + end));
      } else if (!end.empty()) {
        page->Line(absl::StrCat(process.name, " (pid ", process.pid, "): ", end));
      } else if (EndsEarly(process, report)) {
        page->Line(absl::StrCat(
            process.name, ": no recorded call after ", SignedDurationText(process.covered_end->ns),
            process.cut_off ? ": the process went on, but LTTng did not"
                            : ": the process ended, or was inside one call from then on"));
      }
    }
  }
}

// The silent ones of a node, lossy or not; a rank's loader workers, or children, have one name.
std::vector<std::string> SilentOnes(const NodeReport& node, bool lossy) {
  std::vector<ProcessReport> ones;
  std::copy_if(node.processes.begin(), node.processes.end(), std::back_inserter(ones),
               [&](const ProcessReport& process) {
                 return IsSilent(process) && (process.lost.value_or(0) > 0) == lossy;
               });
  std::vector<std::string> names;
  for (const auto& row : Folded(ones)) names.push_back(FoldedName(node.name, row));
  return names;
}

// The first of those that ended; `ended` is not empty.
std::string EndsText(std::vector<const ProcessReport*> ended, const Report& report) {
  std::stable_sort(ended.begin(), ended.end(), [](const auto* a, const auto* b) {
    return a->ended->before < b->ended->before;
  });
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(ended.size(), kEndsShown); ++i) {
    texts.push_back(absl::StrCat(Fit(ended[i]->name, kEndColumns), " (pid ", ended[i]->pid, ") ",
                                 EndText(*ended[i], report)));
  }
  if (ended.size() > kEndsShown) {
    texts.push_back(absl::StrCat(Count(ended.size() - kEndsShown), " more ended in the window"));
  }
  return absl::StrJoin(texts, "; ");
}

void PrintSilencesInShort(Page* page) {
  const Report& report = page->report();
  std::vector<std::string> untraced;
  std::vector<std::string> silent;
  std::vector<std::string> lossy;
  std::vector<SpreadValue> early;
  std::vector<const ProcessReport*> ended;
  for (const NodeReport& node : report.nodes) {
    if (node.processes.empty() && node.state == "complete") untraced.push_back(node.name);
    for (std::vector<std::string>* names : {&silent, &lossy}) {
      const std::vector<std::string> more = SilentOnes(node, names == &lossy);
      names->insert(names->end(), more.begin(), more.end());
    }
    for (const ProcessReport& process : node.processes) {
      // Loader workers end with each epoch.
      if (process.part == kPartLoaderWorker) continue;
      if (!EndText(process, report).empty()) {
        if (process.part != kPartChild) ended.push_back(&process);
        continue;
      }
      if (!EndsEarly(process, report)) continue;
      const int64_t end_ns = process.covered_end->ns;
      early.push_back({process.name, end_ns, SignedDurationText(end_ns)});
    }
  }
  if (!silent.empty()) {
    page->Item("", absl::StrCat("no recorded call in the whole window (idle, stopped, gone, not "
                                "reached, or inside one call): ",
                                ListText(silent)));
  }
  if (!lossy.empty()) {
    page->Item("", "no recorded call in the whole window, because it was lost: " + ListText(lossy));
  }
  if (!early.empty()) {
    const SpreadStyle earliest{.text = SignedDurationText,
                               .cost = [](int64_t end_ns) { return -end_ns; }};
    page->Item("", absl::StrCat("last recorded call before the end of the window: ",
                                SpreadText(std::move(early), earliest)));
  }
  if (!ended.empty()) page->Item("", EndsText(std::move(ended), report));
  if (!untraced.empty()) page->Item("", "no process was traced on " + ListText(untraced));
}

// A launcher calls little, the others come and go: what they cover says nothing of the job.
bool IsAside(const ProcessReport& process) {
  return process.part == kPartLauncher || process.part == kPartLoaderWorker ||
         process.part == kPartChild;
}

size_t ProcessesIn(const Report& report) {
  size_t count = 0;
  for (const NodeReport& node : report.nodes) count += node.processes.size();
  return count;
}

// " (2 ranks, 1 launcher, 4 loader workers)" where not all are ranks; else empty.
std::string PartsText(const Report& report) {
  std::map<std::string, uint64_t> counts;
  for (const NodeReport& node : report.nodes) {
    for (const ProcessReport& process : node.processes) ++counts[process.part];
  }
  std::vector<std::string> texts;
  for (const char* part : {kPartRank, kPartLauncher, kPartLoaderWorker}) {
    if (counts[part] > 0) texts.push_back(Plural(counts[part], part));
  }
  const uint64_t children = counts[kPartChild];
  const uint64_t others = counts[""];
  if (counts[kPartLauncher] + counts[kPartLoaderWorker] + counts[kPartChild] == 0) return "";
  if (children > 0) texts.push_back(Count(children) + (children == 1 ? " child" : " children"));
  if (others > 0) texts.push_back(Count(others) + (others == 1 ? " other" : " others"));
  return absl::StrCat(" (", absl::StrJoin(texts, ", "), ")");
}

std::string CoveredByAll(const Report& report) {
  const std::string who = report.ranks == 0   ? "all processes"
                          : report.ranks == 1 ? "the rank"
                                              : absl::StrCat("all ", Count(report.ranks), " ranks");
  const std::vector<timeline::Interval>& common = report.common_coverage;
  if (common.empty()) return "no interval is covered by " + who;
  int64_t common_ns = 0;
  for (const timeline::Interval& one : common) common_ns += one.end.ns - one.begin.ns;
  std::string text = absl::StrCat("covered by ", who, ": ", DurationText(common_ns));
  if (common.size() > 1) {
    absl::StrAppend(&text, " in ", Plural(common.size(), "interval"), " between ",
                    SignedDurationText(common.front().begin.ns), " and ",
                    SignedDurationText(common.back().end.ns));
  } else {
    absl::StrAppend(&text, ", from ", SignedDurationText(common.front().begin.ns), " to ",
                    SignedDurationText(common.front().end.ns));
  }
  return text;
}

// Losses of one reason on all nodes.
struct ReasonTotal {
  std::optional<uint64_t> count = 0;  // nullopt: unknown in part
  uint64_t intervals = 0;
  std::map<std::string, uint64_t> by_node;

  void Add(const std::string& node, std::optional<uint64_t> more, uint64_t more_intervals) {
    count = count.has_value() && more.has_value() ? std::optional(*count + *more) : std::nullopt;
    intervals += more_intervals;
    by_node[node] += more.value_or(0);
  }
  // What is not known may be large.
  uint64_t weight() const { return count.value_or(~uint64_t{0}); }
};

using ReasonTotals = std::vector<std::pair<std::string, ReasonTotal>>;

ReasonTotals TotalsOf(const Report& report) {
  std::map<std::string, ReasonTotal> by_reason;
  for (const NodeReport& node : report.nodes) {
    for (const timeline::LossTotal& loss : node.losses) {
      by_reason[LossReasonName(loss.reason)].Add(node.name, loss.count, loss.intervals);
    }
  }
  ReasonTotals totals(by_reason.begin(), by_reason.end());
  std::stable_sort(totals.begin(), totals.end(), [](const auto& a, const auto& b) {
    return a.second.weight() > b.second.weight();
  });
  return totals;
}

// "12 345 in 40 intervals on 3 nodes, most on worker-1 (12 000)".
std::string TotalText(const ReasonTotal& total) {
  std::string text = total.count.has_value() ? Count(*total.count) : "unknown number";
  if (total.intervals > 0) absl::StrAppend(&text, " in ", Plural(total.intervals, "interval"));
  const auto most =
      std::max_element(total.by_node.begin(), total.by_node.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (total.by_node.size() == 1) return absl::StrCat(text, " on ", most->first);
  absl::StrAppend(&text, " on ", Plural(total.by_node.size(), "node"), ", most on ", most->first);
  return most->second == 0 ? text : absl::StrCat(text, " (", Count(most->second), ")");
}

std::string NoLosses(const Report& report) {
  const bool counted = report.from_recording || report.events > 0;
  if (!counted && !report.incomplete && HasProfiles(report)) {
    return "none that the profiles tell of: nobody counted their events";
  }
  return report.incomplete || report.begins_late
             ? "none found in the traces; the first lines say what is missing"
             : "none: every counted event is in the traces";
}

}  // namespace

bool HasCoverage(const Report& report) {
  return std::any_of(report.nodes.begin(), report.nodes.end(),
                     [](const NodeReport& node) { return !node.processes.empty(); });
}

void CoverageInFull(Page* page) {
  std::vector<CoverageRow> rows;
  for (const NodeReport& node : page->report().nodes) {
    for (const auto& processes : Folded(node.processes)) {
      rows.push_back(RowOf(node.name, processes, page->window_ns()));
    }
  }
  Table table({{"process", Table::Align::kLeft, true},
               {"pid", Table::Align::kRight},
               {"threads", Table::Align::kRight},
               {"covered", Table::Align::kRight},
               {"of window", Table::Align::kRight},
               {"events", Table::Align::kRight}});
  for (const CoverageRow* row :
       Ranked(rows, [](const CoverageRow& one) { return one.missing_ns; })) {
    table.Add(row->cells);
  }
  page->Print(table);
  PrintSilences(page);
  page->Line(CoveredByAll(page->report()));
}

void CoverageInShort(Page* page) {
  const Report& report = page->report();
  std::vector<SpreadValue> values;
  int64_t least = 1000;
  size_t poor = 0;
  for (const NodeReport& node : report.nodes) {
    for (const ProcessReport& process : node.processes) {
      if (IsAside(process)) continue;
      const int64_t tenths = CoveredTenths(process, page->window_ns());
      least = std::min(least, tenths);
      if (tenths < kFineTenths) ++poor;
      values.push_back({process.name, tenths, TenthsText(tenths)});
    }
  }
  const size_t all = ProcessesIn(report);
  std::string text = all == 1 ? "1 process" : Count(all) + " processes";
  absl::StrAppend(&text, PartsText(report));
  if (values.empty()) return page->Item("Coverage", absl::StrCat(text, "; ", CoveredByAll(report)));
  absl::StrAppend(&text,
                  values.size() == all ? ", " : "; but for launchers, workers and children, ");
  if (least >= kFineTenths) {
    absl::StrAppend(&text, values.size() == 1 ? "" : "all ",
                    least == 1000 ? "" : ">= ", TenthsText(least), " of the window");
  } else {
    SpreadStyle style{.text = TenthsText, .cost = [](int64_t tenths) { return -tenths; }};
    style.named = std::min(style.named, poor);
    absl::StrAppend(&text, "of the window: ", SpreadText(std::move(values), style));
  }
  page->Item("Coverage", absl::StrCat(text, "; ", CoveredByAll(report)));
  PrintSilencesInShort(page);
}

void LossesInFull(Page* page) {
  Table table({{"node"},
               {"what"},
               {"count", Table::Align::kRight},
               {"intervals", Table::Align::kRight},
               {"from", Table::Align::kRight},
               {"to", Table::Align::kRight},
               {"source", Table::Align::kLeft, true},
               {"detail", Table::Align::kLeft, true}});
  struct Row {
    uint64_t weight;
    std::vector<std::string> cells;
  };
  std::vector<Row> rows;
  for (const NodeReport& node : page->report().nodes) {
    for (const timeline::LossTotal& loss : node.losses) {
      rows.push_back({loss.count.value_or(~uint64_t{0}),
                      {node.name, LossReasonName(loss.reason),
                       loss.count.has_value() ? Count(*loss.count) : "unknown",
                       Count(loss.intervals), SignedDurationText(loss.begin.ns),
                       SignedDurationText(loss.end.ns), loss.source, loss.detail}});
    }
  }
  if (rows.empty()) return page->Line(NoLosses(page->report()));
  for (const Row* row : Ranked(rows, [](const Row& one) { return one.weight; })) {
    table.Add(row->cells);
  }
  page->Print(table);
}

void LossesInShort(Page* page) {
  const ReasonTotals totals = TotalsOf(page->report());
  if (totals.empty()) return page->Item("Losses", NoLosses(page->report()));
  for (size_t i = 0; i < std::min(totals.size(), kReasonsShown); ++i) {
    page->Item(i == 0 ? "Losses" : "",
               absl::StrCat(totals[i].first, ": ", TotalText(totals[i].second)));
  }
  if (totals.size() > kReasonsShown) {
    page->Item("", absl::StrCat("and ", Plural(totals.size() - kReasonsShown, "more kind")));
  }
}

}  // namespace syncline::report

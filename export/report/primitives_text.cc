// SPDX-License-Identifier: Apache-2.0
#include "export/report/primitives_text.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/duration_text.h"
#include "export/report/json_values.h"
#include "export/report/spread.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::ImplementationDifference;
using analysis::PrimitiveDescription;
using analysis::PrimitiveProcess;
using analysis::PrimitiveReport;
using analysis::PrimitiveTotal;
using analysis::ReorderTotal;
using analysis::Report;

constexpr size_t kProcessesMax = 16;
constexpr size_t kTasksMax = 20;
constexpr size_t kRowsMax = 6;  // of a task
constexpr size_t kReordersMax = 15;
constexpr size_t kDifferencesMax = 8;
// A primitive of less than a hundredth of its task is not printed.
constexpr int64_t kPartMin = 100;

// Of all processes.
struct Sums {
  uint64_t calls = 0;
  uint64_t not_described = 0;
  uint64_t helper_parts = 0;
  uint64_t in_no_task = 0;
  int64_t total_ns = 0;
  int64_t reorder_ns = 0;
  int64_t reference_ns = 0;
};

Sums SumsOf(const PrimitiveReport& report) {
  Sums sums;
  for (const PrimitiveProcess& process : report.processes) {
    sums.calls += process.calls;
    sums.not_described += process.not_described;
    sums.helper_parts += process.helper_parts;
    sums.total_ns += process.total_ns;
    sums.reorder_ns += process.reorder_ns;
    sums.reference_ns += process.reference_ns;
  }
  for (const PrimitiveTotal& total : report.totals) {
    if (total.task.empty()) sums.in_no_task += total.calls;
  }
  return sums;
}

std::string TaskName(const std::string& task) { return task.empty() ? "(no task)" : task; }

std::string MeanOf(int64_t total_ns, uint64_t calls) {
  return calls == 0 ? "-" : DurationText(total_ns / static_cast<int64_t>(calls));
}

// "avx512_core 81.0 %, none named 19.0 %", the largest first.
std::string SetsText(const PrimitiveProcess& process) {
  using Entry = std::pair<std::string, int64_t>;
  const std::vector<Entry> sets(process.by_set_ns.begin(), process.by_set_ns.end());
  std::vector<std::string> words;
  for (const Entry* set : Ranked(sets, [](const Entry& entry) { return entry.second; })) {
    words.push_back(absl::StrCat(set->first.empty() ? "none named" : set->first, " ",
                                 Percent(set->second, process.total_ns)));
  }
  return absl::StrJoin(words, ", ");
}

// Brief ones are recorded, too.
bool HasAll(const Report& report) { return report.detail == "full"; }

void PrintProcesses(const PrimitiveReport& primitives, Page* page) {
  const bool all = HasAll(page->report());
  const auto rows =
      First(Ranked(primitives.processes, [](const PrimitiveProcess& one) { return one.total_ns; }),
            kProcessesMax);
  Table table({Table::Names(ShownOf("process", rows.size(), primitives.processes.size())),
               {"calls", Table::Align::kRight},
               {"total", Table::Align::kRight},
               {"reorders", Table::Align::kRight},
               {"made", Table::Align::kRight},
               {"making", Table::Align::kRight},
               {"instruction sets", Table::Align::kLeft, true, 20}});
  for (const PrimitiveProcess* row : rows) {
    table.Add({row->name, Count(row->calls), DurationText(row->total_ns),
               all ? Percent(row->reorder_ns, row->total_ns) : "-", all ? Count(row->made) : "-",
               all ? DurationText(row->make_ns) : "-", SetsText(*row)});
  }
  page->Print(table);
  for (const PrimitiveProcess* row : rows) {
    if (row->reference_ns == 0) continue;
    page->Warn(absl::StrCat(row->name, ": ", DurationText(row->reference_ns), " (",
                            Percent(row->reference_ns, row->total_ns),
                            ") in reference implementations, which oneDNN has for being right, not "
                            "for being fast"));
  }
}

// "convolution, forward_training".
std::string KindText(const PrimitiveDescription& what) {
  return what.propagation.empty() ? what.kind : absl::StrCat(what.kind, ", ", what.propagation);
}

struct TaskGroup {
  std::string task;
  uint64_t calls = 0;
  int64_t total_ns = 0;
  std::vector<const PrimitiveTotal*> rows;
};

std::vector<TaskGroup> GroupsOf(const PrimitiveReport& primitives) {
  std::map<std::string, size_t> places;
  std::vector<TaskGroup> groups;
  for (const PrimitiveTotal& total : primitives.totals) {
    const auto place = places.try_emplace(total.task, groups.size()).first->second;
    if (place == groups.size()) groups.push_back({.task = total.task});
    TaskGroup& group = groups[place];
    group.calls += total.calls;
    group.total_ns += total.total_ns;
    group.rows.push_back(&total);
  }
  return groups;
}

// A table whose rows have a line of details below them, where there are any.
class DetailedTable {
 public:
  explicit DetailedTable(std::vector<Table::Column> columns) : table_(std::move(columns)) {}
  void Add(std::vector<std::string> cells, std::string detail = "") {
    table_.Add(std::move(cells));
    details_.push_back(std::move(detail));
  }
  void Print(Page* page) const {
    std::vector<std::string> lines =
        absl::StrSplit(table_.Format(page->width(), Page::kIndent), '\n');
    page->Raw(lines[0] + "\n");
    for (size_t i = 0; i < details_.size(); ++i) {
      page->Raw(lines[i + 1] + "\n");
      if (!details_[i].empty()) page->Below(details_[i]);
    }
  }

 private:
  Table table_;
  std::vector<std::string> details_;
};

// "jit:avx512_core, f32, mb16_ic3oc64, src abcd, dst aBcd16b".
std::string DetailOf(const PrimitiveDescription& what) {
  std::vector<std::string> parts;
  // The usual algorithm goes without saying.
  const std::string algorithm = what.algorithm.ends_with("_direct") ? "" : what.algorithm;
  for (const std::string& part :
       {what.implementation, what.types, what.shapes, what.layouts, algorithm, what.attributes}) {
    if (!part.empty()) parts.push_back(part);
  }
  return absl::StrJoin(parts, ", ");
}

void AddGroup(const TaskGroup& group, int64_t all_ns, DetailedTable* table) {
  const auto numbers = [&](std::string name, uint64_t calls, int64_t total_ns) {
    return std::vector<std::string>{std::move(name), Count(calls), DurationText(total_ns),
                                    MeanOf(total_ns, calls), Percent(total_ns, all_ns)};
  };
  table->Add(numbers(TaskName(group.task), group.calls, group.total_ns));
  uint64_t calls = group.calls;
  int64_t total_ns = group.total_ns;
  size_t printed = 0;
  for (const PrimitiveTotal* row : group.rows) {
    if (printed == kRowsMax || row->total_ns * kPartMin < group.total_ns) break;
    ++printed;
    calls -= row->calls;
    total_ns -= row->total_ns;
    table->Add(numbers("  " + KindText(row->what), row->calls, row->total_ns), DetailOf(row->what));
  }
  if (calls > 0) table->Add(numbers("  others", calls, total_ns));
}

void PrintTasks(const PrimitiveReport& primitives, int64_t all_ns, Page* page) {
  const std::vector<TaskGroup> groups = GroupsOf(primitives);
  const auto rows =
      First(Ranked(groups, [](const TaskGroup& group) { return group.total_ns; }), kTasksMax);
  DetailedTable table({Table::Names(ShownOf("task and its primitives", rows.size(), groups.size())),
                       {"calls", Table::Align::kRight},
                       {"total", Table::Align::kRight},
                       {"mean", Table::Align::kRight},
                       {"share", Table::Align::kRight}});
  for (const TaskGroup* group : rows) AddGroup(*group, all_ns, &table);
  page->Raw("\n");
  table.Print(page);
}

// "; ran after aten::conv2d, before aten::mm"; empty: nothing is known of them.
std::string NeighboursOf(const ReorderTotal& reorder) {
  std::vector<std::string> parts;
  if (!reorder.before.empty()) parts.push_back("after " + reorder.before);
  if (!reorder.after.empty()) parts.push_back("before " + reorder.after);
  return parts.empty() ? "" : absl::StrCat("; ran ", absl::StrJoin(parts, ", "));
}

void PrintReorders(const PrimitiveReport& primitives, int64_t all_ns, Page* page) {
  if (primitives.reorders.empty()) return;
  const auto rows =
      First(Ranked(primitives.reorders, [](const ReorderTotal& one) { return one.total_ns; }),
            kReordersMax);
  DetailedTable table({Table::Names(ShownOf("reorders", rows.size(), primitives.reorders.size())),
                       {"calls", Table::Align::kRight},
                       {"total", Table::Align::kRight},
                       {"mean", Table::Align::kRight},
                       {"share", Table::Align::kRight}});
  for (const ReorderTotal* row : rows) {
    const bool described = !row->what.implementation.empty();
    table.Add(
        {described ? absl::StrCat(row->what.layouts, ", ", row->what.shapes) : "(not described)",
         Count(row->calls), DurationText(row->total_ns), MeanOf(row->total_ns, row->calls),
         Percent(row->total_ns, all_ns)},
        absl::StrCat("in ", TaskName(row->task), NeighboursOf(*row)));
  }
  page->Raw("\n");
  table.Print(page);
}

std::string DifferenceText(const ImplementationDifference& difference) {
  std::vector<std::string> sides;
  for (const ImplementationDifference::Side& side : difference.sides) {
    sides.push_back(absl::StrCat(absl::StrJoin(side.implementations, " and "), " in ",
                                 ListText(side.processes)));
  }
  return absl::StrCat(KindText(difference.what), " in ", TaskName(difference.task), " (",
                      difference.what.types, " ", difference.what.shapes,
                      ") is: ", absl::StrJoin(sides, "; "));
}

void PrintDifferences(const PrimitiveReport& primitives, Page* page) {
  const std::vector<ImplementationDifference>& all = primitives.differences;
  if (all.empty()) return;
  page->Raw("\n");
  page->Warn(absl::StrCat("The same work has other implementations in other processes, ",
                          Plural(all.size(), "time"), ":"));
  for (size_t i = 0; i < all.size() && i < kDifferencesMax; ++i) page->Line(DifferenceText(all[i]));
  if (all.size() > kDifferencesMax) {
    page->Line(absl::StrCat("and ", Count(all.size() - kDifferencesMax), " more."));
  }
}

void Explain(const Report& report, const Sums& sums, Page* page) {
  page->Line(
      "Times are those of the thread that executes the primitive. share: of the time of all "
      "primitives. made: primitives made or looked up in oneDNN's cache. ran after, before: the "
      "nearest primitives on the same thread that are no reorders, by the task around each.");
  if (sums.not_described > 0) {
    page->Line(absl::StrCat(Count(sums.not_described), " of ", Plural(sums.calls, "call"),
                            " came without a description (TensorFlow gives none, and "
                            "packing with --redact takes it away): of these only "
                            "the kind is known."));
  }
  if (sums.in_no_task == sums.calls) {
    page->Line("No call was in another task: parts that helper threads did may count as calls.");
  } else if (sums.in_no_task > 0) {
    page->Line(absl::StrCat(Count(sums.in_no_task), " of ", Plural(sums.calls, "call"),
                            " were in no task that was recorded: (no task)."));
  }
  if (sums.helper_parts > 0) {
    page->Line(absl::StrCat(Plural(sums.helper_parts, "primitive"),
                            " of threads that have no other tasks, as helper threads do parts of "
                            "them, are not in these numbers."));
  }
  if (!HasAll(report)) {
    page->Line(absl::StrCat("Recorded with --detail ", report.detail,
                            ": brief primitives inside of operators are missing."));
  }
}

Json OfDescription(const PrimitiveDescription& what) {
  return {{"kind", what.kind},
          {"implementation", what.implementation},
          {"propagation", what.propagation},
          {"types", what.types},
          {"layouts", what.layouts},
          {"shapes", what.shapes},
          {"algorithm", what.algorithm},
          {"attributes", what.attributes}};
}

Json OfProcess(const Report& report, const PrimitiveProcess& process) {
  Json sets = Json::array();
  for (const auto& [set, total_ns] : process.by_set_ns) {
    sets.push_back({{"instruction_set", set}, {"total_ns", total_ns}});
  }
  return {{"node", report.nodes[process.node].name},
          {"process", process.name},
          {"calls", process.calls},
          {"total_ns", process.total_ns},
          {"reorder_ns", process.reorder_ns},
          {"reference_ns", process.reference_ns},
          {"instruction_sets", sets},
          {"not_described", process.not_described},
          {"helper_parts", process.helper_parts},
          {"not_whole", process.not_whole},
          {"made", process.made},
          {"make_ns", process.make_ns}};
}

Json OfDifference(const ImplementationDifference& difference) {
  Json sides = Json::array();
  for (const ImplementationDifference::Side& side : difference.sides) {
    sides.push_back({{"implementations", side.implementations}, {"processes", side.processes}});
  }
  return {{"task", difference.task},
          {"kind", difference.what.kind},
          {"propagation", difference.what.propagation},
          {"types", difference.what.types},
          {"shapes", difference.what.shapes},
          {"algorithm", difference.what.algorithm},
          {"attributes", difference.what.attributes},
          {"total_ns", difference.total_ns},
          {"sides", sides}};
}

}  // namespace

bool HasPrimitives(const Report& report) { return !report.primitives.totals.empty(); }

void PrimitivesInFull(Page* page) {
  const PrimitiveReport& primitives = page->report().primitives;
  const Sums sums = SumsOf(primitives);
  PrintProcesses(primitives, page);
  PrintTasks(primitives, sums.total_ns, page);
  PrintReorders(primitives, sums.total_ns, page);
  PrintDifferences(primitives, page);
  Explain(page->report(), sums, page);
}

void PrimitivesInShort(Page* page) {
  const PrimitiveReport& primitives = page->report().primitives;
  const Sums sums = SumsOf(primitives);
  std::string text =
      absl::StrCat(Plural(sums.calls, "primitive"), ", ", DurationText(sums.total_ns));
  if (HasAll(page->report())) {
    absl::StrAppend(&text, ", ", Percent(sums.reorder_ns, sums.total_ns), " of it in reorders");
  }
  if (sums.reference_ns > 0) {
    absl::StrAppend(&text, ", ", Percent(sums.reference_ns, sums.total_ns),
                    " in reference implementations");
  }
  if (!primitives.differences.empty()) {
    absl::StrAppend(&text, "; other implementations of the same work in other processes");
  }
  page->Item("oneDNN", text);
}

void PrimitivesInJson(const Report& report, Json* json) {
  const PrimitiveReport& primitives = report.primitives;
  Json all = {{"processes", Json::array()},
              {"totals", Json::array()},
              {"reorders", Json::array()},
              {"differences", Json::array()}};
  for (const PrimitiveProcess& process : primitives.processes) {
    all["processes"].push_back(OfProcess(report, process));
  }
  for (const PrimitiveTotal& total : primitives.totals) {
    Json row = {{"task", total.task}, {"calls", total.calls}, {"total_ns", total.total_ns}};
    row.update(OfDescription(total.what));
    all["totals"].push_back(std::move(row));
  }
  for (const ReorderTotal& reorder : primitives.reorders) {
    Json row = {{"task", reorder.task},
                {"before", reorder.before},
                {"after", reorder.after},
                {"calls", reorder.calls},
                {"total_ns", reorder.total_ns}};
    row.update(OfDescription(reorder.what));
    all["reorders"].push_back(std::move(row));
  }
  for (const ImplementationDifference& difference : primitives.differences) {
    all["differences"].push_back(OfDifference(difference));
  }
  (*json)["primitives"] = std::move(all);
}

}  // namespace syncline::report

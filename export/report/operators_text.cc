// SPDX-License-Identifier: Apache-2.0
// Operators and other tasks: where the time went.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/duration_text.h"
#include "export/report/section_printers.h"
#include "export/report/spread.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::Report;
using analysis::TaskTotal;

std::string SourceOf(const std::string& domain) { return domain.empty() ? "no domain" : domain; }

std::string AverageOf(const TaskTotal& task) {
  return task.count == 0 ? "-" : DurationText(task.total_ns / static_cast<int64_t>(task.count));
}

// What overlaps has no time that is its alone.
std::string SelfOf(const TaskTotal& task) {
  return task.overlapping ? "-" : DurationText(task.self_ns);
}

int64_t TotalOf(const TaskTotal& task) { return task.total_ns; }

// One task on all nodes; `node` says how many these are.
std::vector<TaskTotal> OverAllNodes(const Report& report) {
  std::set<std::pair<std::string, std::string>> steps;  // these contain everything else
  for (const analysis::StepSeries& series : report.steps) {
    steps.insert({series.domain, series.name});
  }
  using Key = std::tuple<std::string, std::string, bool>;
  std::map<Key, std::pair<TaskTotal, std::set<std::string>>> sums;
  for (const TaskTotal& task : report.tasks) {
    if (steps.count({task.domain, task.name}) > 0) continue;
    auto& [sum, nodes] = sums[{task.domain, task.name, task.overlapping}];
    sum.domain = task.domain;
    sum.name = task.name;
    sum.count += task.count;
    sum.clipped += task.clipped;
    sum.total_ns += task.total_ns;
    sum.self_ns += task.self_ns;
    sum.overlapping = task.overlapping;
    nodes.insert(task.node);
  }
  std::vector<TaskTotal> tasks;
  for (auto& [key, sum] : sums) {
    auto& [task, nodes] = sum;
    task.node = nodes.size() == 1 ? *nodes.begin() : Plural(nodes.size(), "node");
    tasks.push_back(std::move(task));
  }
  return tasks;
}

void ExplainNumbers(const std::vector<const TaskTotal*>& rows, Page* page) {
  const bool any = std::any_of(rows.begin(), rows.end(), [](const TaskTotal* task) {
    return task->name.find('#') != std::string::npos;
  });
  if (!any) return;
  page->Line("# in a name stands for a number: \"step 1\" and \"step 2\" count as \"step #\".");
}

void PrintDomain(const std::vector<const TaskTotal*>& rows, Page* page) {
  const std::string source = SourceOf(rows.front()->domain);
  Table table({{source, Table::Align::kLeft, true},
               {"node"},
               {"count", Table::Align::kRight},
               {"total", Table::Align::kRight},
               {"self", Table::Align::kRight},
               {"average", Table::Align::kRight},
               {"clipped", Table::Align::kRight}});
  for (const TaskTotal* task : rows) {
    table.Add({task->name, task->node, Count(task->count), DurationText(task->total_ns),
               SelfOf(*task), AverageOf(*task), task->clipped == 0 ? "" : Count(task->clipped)});
  }
  page->Print(table);
}

}  // namespace

bool HasOperators(const Report& report) { return !report.tasks.empty(); }

void OperatorsInFull(Page* page) {
  const std::vector<const TaskTotal*> ranked = Ranked(page->report().tasks, TotalOf);
  std::map<std::string, std::vector<const TaskTotal*>> by_domain;
  std::vector<std::string> domains;  // the one with the largest task first
  for (const TaskTotal* task : ranked) {
    std::vector<const TaskTotal*>& rows = by_domain[task->domain];
    if (rows.empty()) domains.push_back(task->domain);
    rows.push_back(task);
  }
  for (const std::string& domain : domains) {
    if (domain != domains.front()) page->Raw("\n");
    PrintDomain(by_domain[domain], page);
  }
  ExplainNumbers(ranked, page);
}

void OperatorsInShort(Page* page) {
  const std::vector<TaskTotal> tasks = OverAllNodes(page->report());
  if (tasks.empty()) return;  // all of them are steps
  // Eight, or fewer where several kinds of communication take their room.
  const size_t shown =
      2 * RowsOfEach(page->report()) - (page->report().primitives.totals.empty() ? 0 : 1);
  const std::vector<const TaskTotal*> rows =
      First(Ranked(tasks, [](const TaskTotal& task) { return task.self_ns; }), shown);
  const std::string title = ShownOf("Largest operators", rows.size(), tasks.size());
  Table table({Table::Names(title),
               {"source", Table::Align::kLeft, true},
               {"node"},
               {"count", Table::Align::kRight},
               {"self", Table::Align::kRight},
               {"average", Table::Align::kRight}});
  for (const TaskTotal* task : rows) {
    table.Add({task->name, SourceOf(task->domain), task->node, Count(task->count), SelfOf(*task),
               AverageOf(*task)});
  }
  page->PrintBelow(title, table);
  ExplainNumbers(rows, page);
}

}  // namespace syncline::report

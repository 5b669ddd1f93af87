// SPDX-License-Identifier: Apache-2.0
// Steps: how long they are, and whether the tasks of nodes that mark none lie inside them.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/duration_text.h"
#include "export/report/section_printers.h"
#include "export/report/spread.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::GroupSeries;
using analysis::Report;
using analysis::StepSeries;

constexpr size_t kRowsShown = 4;
constexpr size_t kOutliersShown = 3;

int64_t MedianOf(const StepSeries& series) { return series.median_ns; }

// The longest step, where steps have names of their own: "step 17".
std::string LongestOf(const StepSeries& series) {
  const auto longest = std::max_element(
      series.steps.begin(), series.steps.end(),
      [](const auto& a, const auto& b) { return a.end.ns - a.begin.ns < b.end.ns - b.begin.ns; });
  return longest == series.steps.end() || longest->name == series.name ? "" : longest->name;
}

Table TableOf(const std::vector<const StepSeries*>& rows, const std::string& title,
              bool with_longest) {
  std::vector<Table::Column> columns = {Table::Names(title),
                                        {"step"},
                                        {"count", Table::Align::kRight},
                                        {"mean", Table::Align::kRight},
                                        {"min", Table::Align::kRight},
                                        {"median", Table::Align::kRight},
                                        {"max", Table::Align::kRight}};
  if (with_longest) columns.push_back({"longest"});
  Table table(std::move(columns));
  for (const StepSeries* series : rows) {
    std::vector<std::string> cells = {
        series->process,
        series->domain.empty() ? series->name : series->domain + " · " + series->name,
        Count(series->steps.size()),
        DurationText(series->mean_ns),
        DurationText(series->min_ns),
        DurationText(series->median_ns),
        DurationText(series->max_ns)};
    if (with_longest) cells.push_back(LongestOf(*series));
    table.Add(std::move(cells));
  }
  return table;
}

// In which steps of the node that marks them the tasks of the others lie: a case is one node in one
// step.
struct Inside {
  uint64_t tasks = 0;
  uint64_t cases = 0;
  uint64_t proven = 0;
  uint64_t outside = 0;
  uint64_t likely = 0;
  uint64_t likely_outside = 0;
  uint64_t undecided = 0;

  void Add(const GroupSeries& series) {
    for (const analysis::StepGroup& group : series.groups) tasks += group.tasks;
    cases += series.groups.size();
    proven += series.inside;
    outside += series.outside;
    likely += series.likely_inside;
    likely_outside += series.likely_outside;
    undecided += series.undecided;
  }
};

std::string InsideText(const Inside& inside, const Report& report) {
  std::string text = absl::StrCat("They lie within the step in ", Count(inside.proven),
                                  " of these (proven), not in ", Count(inside.outside),
                                  " (proven); undecided in ", Count(inside.undecided));
  if (inside.likely + inside.likely_outside > 0) {
    absl::StrAppend(&text, "; likely in ", Count(inside.likely), ", likely not in ",
                    Count(inside.likely_outside), " (if ",
                    clocksync::AsymmetryText(report.assumption.asymmetry_percent), ")");
  }
  return text;
}

std::string StepsNode(const Report& report) { return report.nodes[report.steps[0].node].name; }

std::string GroupsText(const GroupSeries& groups, const Report& report) {
  Inside inside;
  inside.Add(groups);
  return absl::StrCat(report.nodes[groups.node].name, " marks no steps. It has ",
                      Plural(inside.tasks, "task"), " during ", Plural(inside.cases, "step"),
                      " of ", StepsNode(report), ". ", InsideText(inside, report));
}

}  // namespace

bool HasSteps(const Report& report) { return !report.steps.empty(); }

void StepsInFull(Page* page) {
  const Report& report = page->report();
  const bool numbered =
      std::any_of(report.steps.begin(), report.steps.end(),
                  [](const StepSeries& series) { return !LongestOf(series).empty(); });
  page->Print(TableOf(Ranked(report.steps, MedianOf), "process", numbered));
  for (const GroupSeries& groups : report.groups) page->Line(GroupsText(groups, report));
}

void StepsInShort(Page* page) {
  const Report& report = page->report();
  std::vector<const StepSeries*> rows = Ranked(report.steps, MedianOf);
  std::vector<const StepSeries*> others;
  if (rows.size() > kRowsShown) {
    others.assign(rows.begin() + kOutliersShown, rows.end());
    rows.resize(kOutliersShown);
  }
  const std::string title = ShownOf("Steps", rows.size(), report.steps.size());
  page->PrintBelow(title, TableOf(rows, title, /*with_longest=*/false));
  if (!others.empty()) {
    const auto middle = others[others.size() / 2];
    page->Line(absl::StrCat("and ", Count(others.size()), " more like these: medians ",
                            DurationText(others.back()->median_ns), " to ",
                            DurationText(others.front()->median_ns), ", the middle one ",
                            DurationText(middle->median_ns)));
  }
  if (report.groups.empty()) return;
  if (report.groups.size() == 1) return page->Line(GroupsText(report.groups[0], report));
  Inside inside;
  for (const GroupSeries& groups : report.groups) inside.Add(groups);
  page->Line(absl::StrCat(Plural(report.groups.size(), "node"), " mark no steps. They have ",
                          Plural(inside.tasks, "task"), " during steps of ", StepsNode(report),
                          ", in ", Plural(inside.cases, "case"), " of one node in one step. ",
                          InsideText(inside, report)));
}

}  // namespace syncline::report

// SPDX-License-Identifier: Apache-2.0
#include "export/why/cut_comparison_text.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "export/report/table.h"
#include "export/report/units.h"
#include "export/why/change_text.h"
#include "export/why/cut_names.h"
#include "export/why/labelled_text.h"
#include "export/why/why_sentences.h"

namespace syncline::report {
namespace {

using analysis::why::CutComparison;
using analysis::why::CutDirectionChange;
using analysis::why::CutOperatorChange;
using analysis::why::CutPartitionChange;
using analysis::why::CutTensorChange;
using analysis::why::Mismatch;

constexpr size_t kPathRows = 16;
constexpr size_t kCellColumns = 33;
constexpr size_t kRowsShown = 8;

std::string Way(const std::string& from, const std::string& to) {
  return absl::StrCat(TaskText(from), " to ", TaskText(to));
}

// The largest changes of those that have too many rows, in the order in which they are.
template <class T>
std::vector<const T*> Largest(const std::vector<T>& changes) {
  std::vector<const T*> rows;
  for (const T& one : changes) rows.push_back(&one);
  std::stable_sort(rows.begin(), rows.end(), [](const T* a, const T* b) {
    return std::abs(a->path.change.est_ns) > std::abs(b->path.change.est_ns);
  });
  if (rows.size() > kPathRows) rows.resize(kPathRows);
  std::sort(rows.begin(), rows.end());
  return rows;
}

void WritePath(const CutComparison& comparison, LabelledText* writer) {
  Table table = ChangeTable("mean of a step, ms");
  if (comparison.clock_ns.has_value()) {
    AddChange("  work of the partitions", *comparison.work, &table);
    for (const CutPartitionChange* one : Largest(comparison.partitions)) {
      AddChange("    " + TaskText(one->task), one->path, &table);
    }
    AddChange("  tensors between them", *comparison.tensors, &table);
    for (const CutDirectionChange* one : Largest(comparison.directions)) {
      AddChange("    " + Way(one->from, one->to), one->path, &table);
    }
    AddChange("  between steps", *comparison.between, &table);
  }
  AddChange("  step", comparison.step, &table);
  writer->Raw(table.Format(writer->width(), 0));
  if (std::max(comparison.partitions.size(), comparison.directions.size()) > kPathRows) {
    writer->Indented(absl::StrCat("partitions, and pairs of them, beyond the ", kPathRows,
                                  " that changed most are left out: --json has them"));
  }
}

// What is known of an operator that does not run as often, or not where it did; "": nothing.
std::string RunsText(const CutOperatorChange& change) {
  if (!change.moved_from.empty()) return "ran on " + TaskText(change.moved_from) + " before";
  if (change.calls_before == change.calls_now) return "";
  if (change.calls_before == 0) return "ran in no judged step before";
  if (change.calls_now == 0) return "runs in no judged step now";
  return absl::StrCat("runs ", CallsText(change.calls_now), " times a step, ",
                      CallsText(change.calls_before), " before");
}

void WriteOperators(const CutComparison& comparison, LabelledText* writer) {
  const auto shown = Shown(comparison.operators, &CutOperatorChange::path, kRowsShown);
  if (shown.empty()) return;
  Table table = ChangeTable("operators on the path, ms");
  for (const CutOperatorChange* one : shown) {
    const std::string name =
        absl::StrCat(TaskText(one->name.task), ": ", GraphNameText(one->name.name));
    AddChange("  " + FitMiddle(name, kCellColumns), one->path, &table);
  }
  writer->Blank();
  writer->Raw(table.Format(writer->width(), 0));
  for (const CutOperatorChange* one : shown) {
    const std::string text = RunsText(*one);
    if (text.empty()) continue;
    writer->Indented(
        absl::StrCat(GraphNameText(one->name.name), " of ", TaskText(one->name.task), ": ", text));
  }
}

void WriteTensors(const CutComparison& comparison, LabelledText* writer) {
  const auto shown = Shown(comparison.tensor_changes, &CutTensorChange::path, kRowsShown);
  if (shown.empty()) return;
  Table table = ChangeTable("tensors on the path, ms");
  for (const CutTensorChange* one : shown) {
    AddChange("  " + FitMiddle(GraphNameText(one->name.tensor), kCellColumns), one->path, &table);
  }
  writer->Blank();
  writer->Raw(table.Format(writer->width(), 0));
  for (const CutTensorChange* one : shown) {
    const char* const when = !one->before ? ", on the path of no judged step before"
                             : !one->now  ? ", on the path of no judged step now"
                                          : "";
    writer->Indented(absl::StrCat(GraphNameText(one->name.tensor), ": from ",
                                  Way(one->name.from, one->name.to), when));
  }
}

std::vector<std::string> TrustSentences(const CutComparison& comparison) {
  std::vector<std::string> lines = IntervalSentences(comparison);
  if (!comparison.clock_ns.has_value()) {
    lines.emplace_back(
        "how far the clocks of the nodes are apart is not known in a recording at least: only the "
        "step is compared");
    return lines;
  }
  lines.push_back(absl::StrCat(
      "the clocks of the recordings may have moved the tensors' time of a step, and what lies "
      "between steps, by ± ",
      Ms(*comparison.clock_ns),
      " ms: that is in their intervals. Where two ways through the partitions take equally long, "
      "to within that, either may be the path: work and tensors may then change without a cause"));
  lines.emplace_back(
      "what an operator or a tensor takes is what it takes on the critical path. TensorFlow's "
      "profiler ran in all recordings, and takes time itself");
  return lines;
}

}  // namespace

std::string ComparisonText(const ComparedCuts& compared, const WhyTextOptions& options) {
  const CutComparison& comparison = compared.comparison;
  if (comparison.mismatch != Mismatch::kNone) return RefusedText(comparison, options);
  LabelledText writer(options.width, options.color);
  WriteCompared(comparison, compared, "partition", comparison.step, &writer);
  WritePath(comparison, &writer);
  WriteOperators(comparison, &writer);
  WriteTensors(comparison, &writer);
  writer.Blank();
  writer.Say("TRUST", TrustSentences(comparison));
  return writer.Take();
}

}  // namespace syncline::report

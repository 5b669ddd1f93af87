// SPDX-License-Identifier: Apache-2.0
#include "export/why/comparison_text.h"

#include <cstdlib>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "export/report/table.h"
#include "export/why/change_text.h"
#include "export/why/labelled_text.h"
#include "export/why/why_sentences.h"

namespace syncline::report {
namespace {

using analysis::why::Comparison;
using analysis::why::kParts;
using analysis::why::Mismatch;
using analysis::why::OperatorChange;
using analysis::why::Part;
using analysis::why::PartName;
using analysis::why::RankChange;

constexpr size_t kOperatorRows = 10;
constexpr size_t kNameColumns = 60;

// Of all ranks; those that are shown are chosen by their change.
std::vector<NamedChange> RankRows(const Comparison& comparison) {
  std::vector<NamedChange> rows;
  for (const RankChange& rank : comparison.ranks) {
    for (size_t part = 0; part < kParts; ++part) {
      rows.push_back({absl::StrCat("rank ", rank.rank, ": ", PartName(static_cast<Part>(part))),
                      rank.parts[part]});
    }
  }
  return rows;
}

void WriteParts(const Comparison& comparison, LabelledText* writer) {
  std::vector<NamedChange> parts;
  for (size_t part = 0; part < kParts; ++part) {
    const bool measured =
        PartKnown(static_cast<Part>(part), comparison.taken_away_known, comparison.blocked_known);
    parts.push_back({PartName(static_cast<Part>(part)),
                     measured ? std::optional(comparison.parts[part]) : std::nullopt});
  }
  WriteChanges(parts, comparison.step, RankRows(comparison), writer);
  if (!comparison.taken_away_known || !comparison.blocked_known) {
    writer->Indented("-: not measured on every rank");
  }
  for (const int32_t rank : comparison.only_before) {
    writer->Indented(absl::StrCat("rank ", rank, " is only in the recording before"));
  }
  for (const int32_t rank : comparison.only_now) {
    writer->Indented(absl::StrCat("rank ", rank, " is only in the recording now"));
  }
}

// What is known of whether it did the same work.
std::string WorkText(const OperatorChange& change) {
  const bool longer = change.time.change.est_ns > 0;
  switch (change.work) {
    case OperatorChange::Work::kMoreCalls:
      return absl::StrCat(change.calls_now > change.calls_before ? "more" : "less",
                          " work: ", CallsText(change.calls_now), " instead of ",
                          CallsText(change.calls_before), " calls a step");
    case OperatorChange::Work::kOtherShapes:
      return "called as often, with other shapes or another implementation";
    case OperatorChange::Work::kSameShapes:
      return longer ? "the same work, longer" : "the same work, shorter";
    case OperatorChange::Work::kUnknownShapes:
      break;
  }
  return absl::StrCat("called as often, ", longer ? "longer" : "shorter",
                      "; its shapes are not known");
}

void WriteOperators(const Comparison& comparison, LabelledText* writer) {
  const auto shown = Shown(comparison.operators, &OperatorChange::time, kOperatorRows);
  if (shown.empty()) return;
  Table table = ChangeTable("own time of operators, ms");
  for (const OperatorChange* change : shown) {
    AddChange(absl::StrCat("  ", Printed(change->name, kNameColumns)), change->time, &table);
  }
  writer->Blank();
  writer->Raw(table.Format(writer->width(), 0));
  for (const OperatorChange* change : shown) {
    std::string text = absl::StrCat(Printed(change->name, kNameColumns), ": ", WorkText(*change));
    // Most of the ranks' changes together is one rank's.
    const auto ranks = static_cast<int64_t>(comparison.ranks.size());
    if (ranks > 1 &&
        std::abs(change->rank_change_ns) * 4 > std::abs(change->time.change.est_ns) * ranks * 3) {
      absl::StrAppend(&text, "; most of it on rank ", change->rank, " (",
                      SignedMs(change->rank_change_ns), " ms)");
    }
    writer->Indented(text);
  }
}

std::vector<std::string> TrustSentences(const Comparison& comparison) {
  std::vector<std::string> lines = IntervalSentences(comparison);
  if (!comparison.taken_away_known) {
    lines.push_back(
        "throttling, waiting for a CPU and being blocked in the kernel were not measured on every "
        "rank of both recordings: that time is in the other parts of both");
  } else if (!comparison.blocked_known) {
    lines.push_back(
        "being blocked in the kernel was not measured on every rank of both recordings: that time "
        "is in the other parts of both");
  }
  if (comparison.other_detail) {
    lines.push_back(
        "the recordings were not made with the same --detail: operators are not "
        "compared, and the steps of one paid more for being recorded");
  }
  if (comparison.redacted) {
    lines.push_back(
        "names were replaced in a redacted recording: shapes, and operators that one of the two "
        "recordings alone has, are not compared");
  } else if (const auto other_name = OtherNameSentence(comparison)) {
    lines.push_back(*other_name);
  }
  return lines;
}

}  // namespace

std::string ComparisonText(const ComparedRecordings& compared, const WhyTextOptions& options) {
  const Comparison& comparison = compared.comparison;
  if (comparison.mismatch != Mismatch::kNone) return RefusedText(comparison, options);
  LabelledText writer(options.width, options.color);
  WriteCompared(comparison, compared, "rank", comparison.step, &writer);
  WriteParts(comparison, &writer);
  WriteOperators(comparison, &writer);
  writer.Blank();
  writer.Say("TRUST", TrustSentences(comparison));
  return writer.Take();
}

}  // namespace syncline::report

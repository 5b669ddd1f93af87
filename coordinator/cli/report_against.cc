// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/report_against.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/against/comparison.h"
#include "common/status.h"
#include "coordinator/cli/compared_inputs.h"
#include "coordinator/cli/terminal.h"
#include "coordinator/merge/against.h"
#include "export/against/against_json.h"
#include "export/against/against_text.h"

namespace syncline::cli {
namespace {

using analysis::against::Compare;
using analysis::against::kStepsLeast;
using analysis::against::Per;
using analysis::against::Periods;
using analysis::against::PeriodsOf;
using analysis::against::Recording;

// One side of the comparison, as it is read.
struct Side {
  merge::ReportOptions options;
  analysis::Report report;
};

absl::StatusOr<Side> ReadSide(const Context& context, merge::ReportOptions options) {
  auto report = merge::MakeReport(options);
  if (!report.ok()) return AboutInputs(report.status(), options.input.inputs);
  const std::string name = NameOfInputs(options.input.inputs);
  const auto print = [&](const char* kind, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      PrintNote(context, kind, "", absl::StrCat(name, ": ", line), "");
    }
  };
  print("warning", report->complaints);
  print("note", report->notes);
  return Side{std::move(options), *std::move(report)};
}

absl::StatusOr<std::vector<Side>> ReadSides(const Context& context,
                                            const ReportAgainstArguments& arguments) {
  std::vector<Side> sides;
  absl::StatusOr<Side> now = ReadSide(context, arguments.now);
  if (absl::IsInvalidArgument(now.status()) && arguments.now.input.inputs.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(now.status().message(), ". Each earlier recording needs its own --against"));
  }
  if (!now.ok()) return now.status();
  sides.push_back(*std::move(now));
  for (const std::string& run : arguments.before) {
    merge::ReportOptions options = arguments.now;
    options.input.inputs = {run};
    SYNCLINE_ASSIGN_OR_RETURN(Side side, ReadSide(context, std::move(options)));
    sides.push_back(std::move(side));
  }
  return sides;
}

// Per step only where all have enough of the same ones.
Per PerOf(const std::vector<Side>& sides) {
  const std::string name = PeriodsOf(sides.front().report).name;
  const bool all = std::all_of(sides.begin(), sides.end(), [&](const Side& side) {
    const Periods periods = PeriodsOf(side.report);
    return periods.name == name && periods.intervals.size() >= kStepsLeast;
  });
  return all ? Per::kStep : Per::kSecond;
}

}  // namespace

int ReportAgainst(const Context& context, const ReportAgainstArguments& arguments) {
  const absl::Status distinct = CheckDistinct(arguments.now.input.inputs, arguments.before);
  if (!distinct.ok()) return Fail(context, distinct);
  auto sides = ReadSides(context, arguments);
  if (!sides.ok()) return Fail(context, sides.status());
  const Per per = PerOf(*sides);
  std::vector<Recording> recordings;
  for (Side& side : *sides) {
    auto sums = merge::ReadSums(side.options, side.report, per);
    if (!sums.ok()) return Fail(context, AboutInputs(sums.status(), side.options.input.inputs));
    recordings.push_back(*std::move(sums));
    side.report = {};
  }
  const Recording now = std::move(recordings.front());
  recordings.erase(recordings.begin());
  report::ComparedReports compared;
  compared.now = NameOfInputs(arguments.now.input.inputs);
  compared.before = arguments.before;
  compared.comparison = Compare(recordings, now);
  if (arguments.json) {
    *context.out << report::AgainstJson(compared);
  } else {
    *context.out << report::AgainstText(compared, {.width = TerminalWidth().value_or(100),
                                                   .color = context.ColourOut(),
                                                   .full = arguments.full});
  }
  const bool whole = compared.comparison.mismatch == analysis::against::Mismatch::kNone &&
                     !compared.comparison.incomplete();
  return whole ? kDone : kIncomplete;
}

}  // namespace syncline::cli

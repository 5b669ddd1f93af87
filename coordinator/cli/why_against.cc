// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/why_against.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/why/comparison.h"
#include "analysis/why/cut_comparison.h"
#include "analysis/why/limits.h"
#include "common/status.h"
#include "coordinator/cli/terminal.h"
#include "coordinator/merge/why.h"
#include "export/why/comparison_json.h"
#include "export/why/comparison_text.h"
#include "export/why/cut_comparison_json.h"
#include "export/why/cut_comparison_text.h"

namespace syncline::cli {
namespace {

using analysis::why::Compare;
using analysis::why::CompareCut;
using analysis::why::CutSide;
using analysis::why::JudgeLimits;
using analysis::why::Limit;
using analysis::why::LimitResult;
using analysis::why::Mismatch;
using analysis::why::ParseLimit;
using analysis::why::Side;
using merge::WhySide;

absl::StatusOr<WhySide> ReadSide(const Context& context, const AgainstArguments& arguments,
                                 const std::string& run) {
  merge::WhyOptions options;
  options.input.inputs = {run};
  options.job = arguments.job;
  auto read = merge::ReadSide(options);
  if (!read.ok()) {
    return absl::Status(read.status().code(), absl::StrCat(run, ": ", read.status().message()));
  }
  for (const std::string& complaint : read->complaints) {
    PrintNote(context, "warning", "", absl::StrCat(run, ": ", complaint), "");
  }
  for (const std::string& note : read->notes) {
    PrintNote(context, "note", "", absl::StrCat(run, ": ", note), "");
  }
  return read;
}

// The sides, read and in order.
struct Sides {
  WhySide now;
  std::vector<WhySide> before;

  // Whether all of them are of TensorFlow jobs. Those of which some are none are refused, as those
  // of ranks that do the same work.
  bool are_cuts() const {
    return now.cut.has_value() &&
           std::all_of(before.begin(), before.end(),
                       [](const WhySide& side) { return side.cut.has_value(); });
  }
};

absl::StatusOr<Sides> ReadSides(const Context& context, const AgainstArguments& arguments) {
  Sides sides;
  SYNCLINE_ASSIGN_OR_RETURN(sides.now, ReadSide(context, arguments, arguments.now));
  for (const std::string& run : arguments.before) {
    SYNCLINE_ASSIGN_OR_RETURN(WhySide side, ReadSide(context, arguments, run));
    sides.before.push_back(std::move(side));
  }
  return sides;
}

// Prints what changed; returns the exit code.
template <class Comparison>
int Print(const Context& context, const AgainstArguments& arguments,
          const std::vector<Limit>& limits, Comparison comparison) {
  report::Compared<Comparison> compared;
  compared.limits = JudgeLimits(limits, comparison);
  compared.comparison = std::move(comparison);
  compared.now = arguments.now;
  compared.before = arguments.before;
  if (arguments.json) {
    *context.out << report::ComparisonJson(compared);
  } else {
    *context.out << report::ComparisonText(compared, {AnswerWidth(), context.ColourOut()});
  }
  const auto any = [&](LimitResult::State state) {
    return std::any_of(compared.limits.begin(), compared.limits.end(),
                       [state](const LimitResult& one) { return one.state == state; });
  };
  if (any(LimitResult::State::kAbove)) return kAboveLimit;
  const bool whole =
      compared.comparison.mismatch == Mismatch::kNone && !compared.comparison.incomplete();
  return whole && !any(LimitResult::State::kNotJudged) ? kDone : kIncomplete;
}

}  // namespace

int WhyAgainst(const Context& context, const AgainstArguments& arguments) {
  std::vector<Limit> limits;
  for (const std::string& text : arguments.fail_if) {
    auto limit = ParseLimit(text);
    if (!limit.ok()) return Fail(context, limit.status());
    limits.push_back(*std::move(limit));
  }
  auto sides = ReadSides(context, arguments);
  if (!sides.ok()) return Fail(context, sides.status());
  if (sides->are_cuts()) {
    std::vector<CutSide> before;
    for (WhySide& side : sides->before) before.push_back(*std::move(side.cut));
    return Print(context, arguments, limits, CompareCut(before, *sides->now.cut));
  }
  std::vector<Side> before;
  for (WhySide& side : sides->before) before.push_back(std::move(side.side));
  return Print(context, arguments, limits, Compare(before, sides->now.side));
}

}  // namespace syncline::cli

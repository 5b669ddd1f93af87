// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/why_against.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/why/comparison.h"
#include "analysis/why/limits.h"
#include "common/status.h"
#include "coordinator/cli/terminal.h"
#include "coordinator/merge/why.h"
#include "export/why/comparison_json.h"
#include "export/why/comparison_text.h"

namespace syncline::cli {
namespace {

using analysis::why::JudgeLimits;
using analysis::why::Limit;
using analysis::why::LimitResult;
using analysis::why::Mismatch;
using analysis::why::ParseLimit;
using analysis::why::Side;

absl::StatusOr<Side> ReadSide(const Context& context, const AgainstArguments& arguments,
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
  return std::move(read->side);
}

int CodeOf(const report::ComparedRecordings& compared) {
  const auto any = [&](LimitResult::State state) {
    return std::any_of(compared.limits.begin(), compared.limits.end(),
                       [state](const LimitResult& one) { return one.state == state; });
  };
  if (any(LimitResult::State::kAbove)) return kAboveLimit;
  const bool whole =
      compared.comparison.mismatch == Mismatch::kNone && !compared.comparison.incomplete();
  return whole && !any(LimitResult::State::kNotJudged) ? kDone : kIncomplete;
}

absl::StatusOr<report::ComparedRecordings> CompareRecordings(const Context& context,
                                                             const AgainstArguments& arguments) {
  std::vector<Limit> limits;
  for (const std::string& text : arguments.fail_if) {
    SYNCLINE_ASSIGN_OR_RETURN(Limit limit, ParseLimit(text));
    limits.push_back(std::move(limit));
  }
  SYNCLINE_ASSIGN_OR_RETURN(const Side now, ReadSide(context, arguments, arguments.now));
  std::vector<Side> before;
  for (const std::string& run : arguments.before) {
    SYNCLINE_ASSIGN_OR_RETURN(Side side, ReadSide(context, arguments, run));
    before.push_back(std::move(side));
  }
  report::ComparedRecordings compared;
  compared.now = arguments.now;
  compared.before = arguments.before;
  compared.comparison = analysis::why::Compare(before, now);
  compared.limits = JudgeLimits(limits, compared.comparison);
  return compared;
}

}  // namespace

int WhyAgainst(const Context& context, const AgainstArguments& arguments) {
  const auto compared = CompareRecordings(context, arguments);
  if (!compared.ok()) return Fail(context, compared.status());
  if (arguments.json) {
    *context.out << report::ComparisonJson(*compared);
  } else {
    *context.out << report::ComparisonText(*compared, {AnswerWidth(), context.ColourOut()});
  }
  return CodeOf(*compared);
}

}  // namespace syncline::cli

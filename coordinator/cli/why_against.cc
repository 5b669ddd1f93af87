// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/why_against.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/why/comparison.h"
#include "analysis/why/cut_comparison.h"
#include "analysis/why/device_comparison.h"
#include "analysis/why/limits.h"
#include "common/status.h"
#include "coordinator/cli/compared_inputs.h"
#include "coordinator/cli/terminal.h"
#include "coordinator/merge/why.h"
#include "export/why/comparison_json.h"
#include "export/why/comparison_text.h"
#include "export/why/cut_comparison_json.h"
#include "export/why/cut_comparison_text.h"
#include "export/why/device_comparison_json.h"
#include "export/why/device_comparison_text.h"

namespace syncline::cli {
namespace {

using analysis::why::Compare;
using analysis::why::CompareCut;
using analysis::why::CompareDevices;
using analysis::why::ComparedSide;
using analysis::why::Comparison;
using analysis::why::CutSide;
using analysis::why::DeviceSide;
using analysis::why::JudgeLimits;
using analysis::why::Limit;
using analysis::why::LimitResult;
using analysis::why::Mismatch;
using analysis::why::ParseLimit;
using analysis::why::Refusal;
using analysis::why::Side;
using merge::WhySide;

enum class Kind : uint8_t { kRanks, kDevices, kCut };

Kind KindOf(const WhySide& side) {
  if (side.cut.has_value()) return Kind::kCut;
  return side.devices.has_value() ? Kind::kDevices : Kind::kRanks;
}

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kRanks:
      return "of ranks that compute on CPUs";
    case Kind::kDevices:
      return "of a job on GPUs";
    case Kind::kCut:
      return "of a TensorFlow model that is cut into partitions";
  }
  return "";
}

absl::StatusOr<WhySide> ReadSide(const Context& context, const AgainstArguments& arguments,
                                 const std::vector<std::string>& inputs) {
  merge::WhyOptions options;
  options.input.inputs = inputs;
  options.job = arguments.job;
  const std::string name = NameOfInputs(inputs);
  auto read = merge::ReadSide(options);
  if (!read.ok()) return AboutInputs(read.status(), inputs);
  for (const std::string& complaint : read->complaints) {
    PrintNote(context, "warning", "", absl::StrCat(name, ": ", complaint), "");
  }
  if (read->devices.has_value()) {
    for (const std::string& note : read->devices->notes) read->notes.push_back(note);
  }
  for (const std::string& note : read->notes) {
    PrintNote(context, "note", "", absl::StrCat(name, ": ", note), "");
  }
  return read;
}

// In order.
struct Sides {
  WhySide now;
  std::vector<WhySide> before;
};

absl::StatusOr<Sides> ReadSides(const Context& context, const AgainstArguments& arguments) {
  Sides sides;
  SYNCLINE_ASSIGN_OR_RETURN(sides.now, ReadSide(context, arguments, arguments.now));
  for (const std::string& run : arguments.before) {
    SYNCLINE_ASSIGN_OR_RETURN(WhySide side, ReadSide(context, arguments, {run}));
    sides.before.push_back(std::move(side));
  }
  return sides;
}

ComparedSide SummaryOf(const WhySide& side) {
  switch (KindOf(side)) {
    case Kind::kRanks:
      break;
    case Kind::kDevices:
      return analysis::why::SummaryOf(*side.devices);
    case Kind::kCut:
      return analysis::why::SummaryOf(*side.cut);
  }
  return analysis::why::SummaryOf(side.side);
}

// Of sides that are not all of one kind: why they are not compared. One of which nothing can be
// said at all comes first.
Comparison OfOtherKinds(const AgainstArguments& arguments, const Sides& sides) {
  Comparison comparison;
  comparison.now = SummaryOf(sides.now);
  for (const WhySide& side : sides.before) comparison.befores.push_back(SummaryOf(side));
  comparison.before = comparison.befores.front();
  const auto take_refusal = [&](const WhySide& side, Mismatch mismatch, const char* when) {
    if (KindOf(side) != Kind::kRanks || side.side.refusal == Refusal::kNone) return;
    if (comparison.mismatch == Mismatch::kNone) comparison.refusal = side.side.refusal;
    comparison.Refuse(mismatch, absl::StrCat("the recording ", when, ": ", side.side.refusal_text));
  };
  take_refusal(sides.now, Mismatch::kNowRefused, "now");
  for (const WhySide& side : sides.before) {
    take_refusal(side, Mismatch::kBeforeRefused, "before");
  }
  for (size_t i = 0; i < sides.before.size(); ++i) {
    const Kind kind = KindOf(sides.before[i]);
    if (kind == KindOf(sides.now)) continue;
    comparison.Refuse(
        Mismatch::kOtherKind,
        absl::StrCat("not comparable: ", NameOfInputs(arguments.now), " is ",
                     NameOf(KindOf(sides.now)), ", ", arguments.before[i], " is ", NameOf(kind)));
  }
  return comparison;
}

template <class Kept, class Select>
std::vector<Kept> Taken(std::vector<WhySide>* sides, const Select& select) {
  std::vector<Kept> taken;
  for (WhySide& side : *sides) taken.push_back(std::move(*select(side)));
  return taken;
}

// Prints what changed; returns the exit code.
template <class Compared>
int Print(const Context& context, const AgainstArguments& arguments,
          const std::vector<Limit>& limits, Compared comparison) {
  report::Compared<Compared> compared;
  compared.limits = JudgeLimits(limits, comparison);
  compared.comparison = std::move(comparison);
  compared.now = NameOfInputs(arguments.now);
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
  const absl::Status distinct = CheckDistinct(arguments.now, arguments.before);
  if (!distinct.ok()) return Fail(context, distinct);
  auto sides = ReadSides(context, arguments);
  if (!sides.ok()) return Fail(context, sides.status());
  const Kind kind = KindOf(sides->now);
  const bool are_alike = std::all_of(sides->before.begin(), sides->before.end(),
                                     [kind](const WhySide& side) { return KindOf(side) == kind; });
  if (!are_alike) return Print(context, arguments, limits, OfOtherKinds(arguments, *sides));
  switch (kind) {
    case Kind::kRanks:
      return Print(context, arguments, limits,
                   Compare(Taken<Side>(&sides->before, [](WhySide& one) { return &one.side; }),
                           sides->now.side));
    case Kind::kDevices:
      return Print(context, arguments, limits,
                   CompareDevices(Taken<DeviceSide>(&sides->before,
                                                    [](WhySide& one) { return &*one.devices; }),
                                  *sides->now.devices));
    case Kind::kCut:
      break;
  }
  return Print(context, arguments, limits,
               CompareCut(Taken<CutSide>(&sides->before, [](WhySide& one) { return &*one.cut; }),
                          *std::move(sides->now.cut)));
}

}  // namespace syncline::cli

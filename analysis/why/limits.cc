// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/limits.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace syncline::analysis::why {
namespace {

constexpr size_t kWholeDigitsMax = 5;
constexpr size_t kDecimalsMax = 4;  // of a percentage: a millionth

std::optional<Part> PartOf(absl::string_view name) {
  for (size_t part = 0; part < kParts; ++part) {
    const auto one = static_cast<Part>(part);
    if (name == PartName(one) || name == PartJsonName(one)) return one;
  }
  return std::nullopt;
}

constexpr std::pair<const char*, CutPart> kCutParts[] = {
    {"work", CutPart::kWork},
    {"tensors", CutPart::kTensors},
    {"between_steps", CutPart::kBetween},
};

std::optional<CutPart> CutPartOf(absl::string_view name) {
  for (const auto& [known, part] : kCutParts) {
    if (name == known) return part;
  }
  return std::nullopt;
}

std::string Names() {
  std::string names = "step";
  for (size_t part = 0; part < kParts; ++part) {
    absl::StrAppend(&names, ", ", PartJsonName(static_cast<Part>(part)));
  }
  return names;
}

absl::Status Wrong(absl::string_view text, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("--fail-if takes a limit like 'step > +5%' or 'rank:3.input > +2.5%', not \"",
                   text, "\": ", what));
}

// "5", "2.5": millionths; digits and a point alone, no "1e3" and no "inf".
std::optional<int64_t> ParsePercent(absl::string_view text) {
  const size_t point = std::min(text.find('.'), text.size());
  const absl::string_view whole = text.substr(0, point);
  std::string decimals(text.substr(std::min(point + 1, text.size())));
  const auto digits = [](absl::string_view part) {
    return std::all_of(part.begin(), part.end(),
                       [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
  };
  if (whole.empty() || whole.size() > kWholeDigitsMax || decimals.size() > kDecimalsMax ||
      (point < text.size() && decimals.empty()) || !digits(whole) || !digits(decimals)) {
    return std::nullopt;
  }
  decimals.resize(kDecimalsMax, '0');
  int64_t ppm = 0;
  if (!absl::SimpleAtoi(absl::StrCat(whole, decimals), &ppm)) return std::nullopt;
  return ppm;
}

// Sets the limit's rank and part by `name`.
absl::Status ParseName(absl::string_view name, Limit* limit) {
  if (name == "step") return absl::OkStatus();
  limit->cut_part = CutPartOf(name);
  if (limit->cut_part.has_value()) return absl::OkStatus();
  absl::string_view part = name;
  if (absl::ConsumePrefix(&part, "rank:")) {
    const size_t point = part.find('.');
    int32_t rank = -1;
    const absl::string_view number = part.substr(0, point);
    const bool digits =
        !number.empty() && absl::ascii_isdigit(static_cast<unsigned char>(number.front()));
    if (point == absl::string_view::npos || !digits || !absl::SimpleAtoi(number, &rank)) {
      return Wrong(limit->text, "a rank's part is rank:NUMBER.PART");
    }
    limit->rank = rank;
    part.remove_prefix(point + 1);
  }
  limit->part = PartOf(part);
  if (limit->part.has_value()) return absl::OkStatus();
  return Wrong(limit->text,
               absl::StrCat("there is no \"", name, "\"; names are ", Names(),
                            ", of a rank's part rank:N.PART, and of a model that is cut into "
                            "partitions work, tensors and between_steps"));
}

// What of the comparison the limit names; nullptr: nothing, and `why` says so.
const Change* ChangeOf(const Limit& limit, const Comparison& comparison, std::string* why) {
  if (limit.cut_part.has_value()) {
    *why = "it names a part of a model that is cut into partitions, which this job's is not";
    return nullptr;
  }
  if (!limit.part.has_value()) return &comparison.step;
  const bool taken = *limit.part == Part::kThrottled || *limit.part == Part::kWaitingForCpu;
  if (taken && !comparison.taken_away_known) {
    *why = "it was not measured on every rank of both recordings";
    return nullptr;
  }
  const auto part = static_cast<size_t>(*limit.part);
  if (!limit.rank.has_value()) return &comparison.parts[part];
  for (const RankChange& rank : comparison.ranks) {
    if (rank.rank == *limit.rank) return &rank.parts[part];
  }
  *why = absl::StrCat("not both recordings have a rank ", *limit.rank);
  return nullptr;
}

// The same of a cut model.
const Change* ChangeOf(const Limit& limit, const CutComparison& comparison, std::string* why) {
  if (limit.part.has_value()) {
    *why =
        "it names a part of a PyTorch rank's step; a model that is cut into partitions has step, "
        "work, tensors and between_steps";
    return nullptr;
  }
  if (!limit.cut_part.has_value()) return &comparison.step;
  const std::optional<Change>& change = *limit.cut_part == CutPart::kWork      ? comparison.work
                                        : *limit.cut_part == CutPart::kTensors ? comparison.tensors
                                                                               : comparison.between;
  if (change.has_value()) return &*change;
  *why = "how far the nodes' clocks are apart is not known";
  return nullptr;
}

// Why no limit at all is judged; empty: they are.
std::string WhyNone(const ComparedSides& comparison) {
  if (comparison.mismatch != Mismatch::kNone) return "the recordings were not compared";
  if (comparison.incomplete()) {
    return absl::StrCat("the recording ", comparison.now.incomplete ? "now" : "before",
                        " is not complete");
  }
  const bool now_fewer = comparison.now.steps < comparison.before.steps;
  const uint64_t steps = now_fewer ? comparison.now.steps : comparison.before.steps;
  if (steps >= kLimitStepsMin) return "";
  return absl::StrCat("only ", steps, " steps were recorded ", now_fewer ? "now" : "before",
                      ", and ", kLimitStepsMin, " are needed on both sides");
}

template <class Compared>
std::vector<LimitResult> Judge(const std::vector<Limit>& limits, const Compared& comparison) {
  const std::string why_none = WhyNone(comparison);
  std::vector<LimitResult> results;
  for (const Limit& limit : limits) {
    LimitResult result{limit, LimitResult::State::kNotJudged, why_none, std::nullopt};
    const Change* change =
        comparison.mismatch == Mismatch::kNone ? ChangeOf(limit, comparison, &result.why) : nullptr;
    if (change != nullptr) result.change = *change;
    if (result.why.empty() && change != nullptr) {
      result.state =
          change->lo_ppm > limit.ppm ? LimitResult::State::kAbove : LimitResult::State::kNotAbove;
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace

absl::StatusOr<Limit> ParseLimit(const std::string& text) {
  Limit limit;
  limit.text = std::string(absl::StripAsciiWhitespace(text));
  const absl::string_view whole = limit.text;
  const size_t above = whole.find('>');
  if (above == absl::string_view::npos) return Wrong(text, "\">\" is missing");
  absl::string_view percent = absl::StripAsciiWhitespace(whole.substr(above + 1));
  if (!absl::ConsumePrefix(&percent, "+") || !absl::ConsumeSuffix(&percent, "%")) {
    return Wrong(text, "behind \">\" stands a percentage with its sign, +5%");
  }
  const std::optional<int64_t> ppm = ParsePercent(absl::StripAsciiWhitespace(percent));
  if (!ppm.has_value()) {
    return Wrong(text, "the percentage is a number with at most 4 decimals");
  }
  limit.ppm = *ppm;
  const absl::Status named = ParseName(absl::StripAsciiWhitespace(whole.substr(0, above)), &limit);
  if (!named.ok()) return named;
  return limit;
}

std::vector<LimitResult> JudgeLimits(const std::vector<Limit>& limits,
                                     const Comparison& comparison) {
  return Judge(limits, comparison);
}

std::vector<LimitResult> JudgeLimits(const std::vector<Limit>& limits,
                                     const CutComparison& comparison) {
  return Judge(limits, comparison);
}

}  // namespace syncline::analysis::why

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

std::optional<DevicePart> DevicePartOf(absl::string_view name) {
  for (size_t part = 0; part < kDeviceParts; ++part) {
    const auto one = static_cast<DevicePart>(part);
    if (name == DevicePartName(one) || name == DevicePartJsonName(one)) return one;
  }
  return std::nullopt;
}

constexpr absl::string_view kOwnWork = "own_work";
constexpr absl::string_view kWork = "work";
constexpr absl::string_view kTensors = "tensors";
constexpr absl::string_view kBetween = "between_steps";

bool IsCutPart(absl::string_view name) {
  return name == kWork || name == kTensors || name == kBetween || name == "between steps";
}

// Names of parts, by the kind of the job.
std::string NamesOfRanks() {
  std::string names = "step";
  for (size_t part = 0; part < kParts; ++part) {
    absl::StrAppend(&names, ", ", PartJsonName(static_cast<Part>(part)));
  }
  return names;
}

std::string NamesOfDevices() {
  std::string names = "step";
  for (size_t part = 0; part < kDeviceParts; ++part) {
    absl::StrAppend(&names, ", ", DevicePartJsonName(static_cast<DevicePart>(part)));
  }
  return absl::StrCat(names, ", rank:N.", kOwnWork);
}

std::string NamesOfCuts() { return absl::StrCat("step, ", kWork, ", ", kTensors, ", ", kBetween); }

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
  const bool known = PartOf(part).has_value() || DevicePartOf(part).has_value() ||
                     (limit->rank.has_value() ? part == kOwnWork : IsCutPart(part));
  limit->part = std::string(part);
  if (known) return absl::OkStatus();
  return Wrong(limit->text,
               absl::StrCat("there is no \"", name, "\"; names are ", NamesOfRanks(),
                            "; of jobs on GPUs ", NamesOfDevices(),
                            "; of a rank's part rank:N.PART; of a model that is cut into "
                            "partitions, without a rank, ",
                            NamesOfCuts()));
}

const Change* Missing(std::string text, std::string* why) {
  *why = std::move(text);
  return nullptr;
}

const Change* NoRank(int32_t rank, std::string* why) {
  return Missing(absl::StrCat("not both recordings have a rank ", rank), why);
}

// These: what of the comparison the limit names; nullptr: nothing, and `why` says so.
const Change* ChangeOf(const Limit& limit, const Comparison& comparison, std::string* why) {
  if (limit.part.empty()) return &comparison.step;
  const std::optional<Part> named = PartOf(limit.part);
  if (!named.has_value()) {
    return Missing(absl::StrCat("of such a job there are ", NamesOfRanks()), why);
  }
  if (!PartKnown(*named, comparison.taken_away_known, comparison.blocked_known)) {
    return Missing("it was not measured on every rank of both recordings", why);
  }
  const auto part = static_cast<size_t>(*named);
  if (!limit.rank.has_value()) return &comparison.parts[part];
  for (const RankChange& rank : comparison.ranks) {
    if (rank.rank == *limit.rank) return &rank.parts[part];
  }
  return NoRank(*limit.rank, why);
}

const Change* ChangeOf(const Limit& limit, const DeviceComparison& comparison, std::string* why) {
  if (limit.part.empty()) return &comparison.step;
  const std::optional<DevicePart> part = DevicePartOf(limit.part);
  const bool own = limit.rank.has_value() && limit.part == kOwnWork;
  if (!part.has_value() && !own) {
    return Missing(absl::StrCat("of a job on GPUs there are ", NamesOfDevices()), why);
  }
  if (own && !comparison.own_work_known) {
    return Missing("collectives run on the host: waiting for another rank is in it", why);
  }
  if (!limit.rank.has_value()) return &comparison.parts[static_cast<size_t>(*part)];
  for (const DeviceRankChange& rank : comparison.ranks) {
    if (rank.rank != *limit.rank) continue;
    return own ? &rank.own : &rank.parts[static_cast<size_t>(*part)];
  }
  return NoRank(*limit.rank, why);
}

const Change* ChangeOf(const Limit& limit, const CutComparison& comparison, std::string* why) {
  if (limit.part.empty()) return &comparison.step;
  if (limit.rank.has_value() || !IsCutPart(limit.part)) {
    return Missing(absl::StrCat("of a model that is cut into partitions there are ", NamesOfCuts()),
                   why);
  }
  const std::optional<Change>& change = limit.part == kWork      ? comparison.work
                                        : limit.part == kTensors ? comparison.tensors
                                                                 : comparison.between;
  if (change.has_value()) return &*change;
  return Missing("how far the nodes' clocks are apart is not known", why);
}

// Why no limit at all is judged; empty: they are.
std::string WhyNone(const ComparedSides& comparison) {
  if (comparison.mismatch != Mismatch::kNone) return "the recordings were not compared";
  if (comparison.incomplete()) {
    return absl::StrCat("the recording ", comparison.now.incomplete ? "now" : "before",
                        " is not complete");
  }
  const uint64_t before = comparison.fewest_steps_before();
  const bool now_fewer = comparison.now.steps < before;
  const uint64_t steps = now_fewer ? comparison.now.steps : before;
  if (steps >= kLimitStepsMin) return "";
  return absl::StrCat("only ", steps, " steps of one class were judged ",
                      now_fewer ? "now" : "before", ", and ", kLimitStepsMin,
                      " are needed on both sides");
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

std::vector<LimitResult> JudgeLimits(const std::vector<Limit>& limits,
                                     const DeviceComparison& comparison) {
  return Judge(limits, comparison);
}

}  // namespace syncline::analysis::why

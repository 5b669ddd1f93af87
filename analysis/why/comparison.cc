// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/why/pooled.h"
#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

constexpr size_t kOperatorsMax = 32;
constexpr double kSameCount = 0.05;  // counts that differ by less are the same: one step of twenty

class Comparer {
 public:
  // `before` is all recordings before together, which have so many steps each.
  Comparer(const Side& before, std::vector<size_t> lengths, const Side& now, Comparison* comparison)
      : before_(before), now_(now), comparison_(*comparison), changes_(std::move(lengths)) {}

  void Run() {
    comparison_.taken_away_known = All(&SideRank::taken_away_known);
    comparison_.blocked_known = comparison_.taken_away_known && All(&SideRank::blocked_known);
    comparison_.redacted = before_.redacted || now_.redacted;
    comparison_.other_detail = before_.detail != now_.detail;
    const size_t step = Add(&StepNs);
    std::vector<size_t> parts;
    for (size_t part = 0; part < kParts; ++part) {
      parts.push_back(Add([part](const PartTable& table) { return table[part]; }));
    }
    AddRanks();
    AddOperators();
    changes_.Sample();
    comparison_.step = changes_.Of(step);
    for (size_t part = 0; part < kParts; ++part) {
      comparison_.parts[part] = changes_.Of(parts[part], OpenNs(part));
    }
    for (size_t i = 0; i < comparison_.ranks.size(); ++i) {
      for (size_t part = 0; part < kParts; ++part) {
        const int64_t open_ns = OpenNs(part, comparison_.ranks[i].rank);
        comparison_.ranks[i].parts[part] = changes_.Of(rank_rows_[i] + part, open_ns);
      }
    }
    TakeOperators();
  }

 private:
  static int64_t StepNs(const PartTable& table) {
    int64_t sum = 0;
    for (const int64_t ns : table) sum += ns;
    return sum;
  }

  // What samples leave open of a part, of both sides: how long ranks were blocked, and so how much
  // is left of what that is taken from. Of one rank, or else the mean over ranks.
  int64_t OpenNs(size_t part, std::optional<int32_t> only = {}) const {
    constexpr std::array kOpen = {Part::kBlocked, Part::kCompute, Part::kInput, Part::kHostCode,
                                  Part::kGarbageCollection};
    const bool open = std::find(kOpen.begin(), kOpen.end(), static_cast<Part>(part)) != kOpen.end();
    if (!open || !comparison_.blocked_known) return 0;
    int64_t sum_ns = 0;
    for (const Side* const side : {&before_, &now_}) {
      for (const SideRank& rank : side->ranks) {
        if (!only.has_value() || rank.rank == *only) sum_ns += rank.blocked_open_ns;
      }
    }
    return only.has_value() ? sum_ns : sum_ns / ranks();
  }

  // Of all ranks of both sides.
  bool All(bool SideRank::*known) const {
    const auto of = [&](const Side& side) {
      return std::all_of(side.ranks.begin(), side.ranks.end(),
                         [&](const SideRank& rank) { return rank.*known; });
    };
    return of(before_) && of(now_);
  }

  const std::vector<PartTable>& TablesOf(const SideRank& rank) const {
    if (!comparison_.taken_away_known) return rank.uncut;
    return comparison_.blocked_known ? rank.cut : rank.unblocked;
  }

  // By step, added up over the ranks.
  template <class Value>
  std::vector<int64_t> Sums(const Side& side, const Value& value) const {
    std::vector<int64_t> sums(side.steps, 0);
    for (const SideRank& rank : side.ranks) {
      const std::vector<PartTable>& tables = TablesOf(rank);
      for (size_t step = 0; step < sums.size(); ++step) sums[step] += value(tables[step]);
    }
    return sums;
  }

  int64_t ranks() const { return static_cast<int64_t>(before_.ranks.size()); }

  template <class Value>
  size_t Add(const Value& value) {
    return changes_.Add(Sums(before_, value), Sums(now_, value), ranks());
  }

  std::vector<int64_t> PartOf(const SideRank& rank, size_t part) const {
    std::vector<int64_t> series;
    for (const PartTable& table : TablesOf(rank)) series.push_back(table[part]);
    return series;
  }

  void AddRanks() {
    size_t i = 0;
    size_t j = 0;
    while (i < before_.ranks.size() || j < now_.ranks.size()) {
      if (j == now_.ranks.size() ||
          (i < before_.ranks.size() && before_.ranks[i].rank < now_.ranks[j].rank)) {
        comparison_.only_before.push_back(before_.ranks[i++].rank);
      } else if (i == before_.ranks.size() || now_.ranks[j].rank < before_.ranks[i].rank) {
        comparison_.only_now.push_back(now_.ranks[j++].rank);
      } else {
        comparison_.ranks.push_back({before_.ranks[i].rank, {}});
        for (size_t part = 0; part < kParts; ++part) {
          const size_t row =
              changes_.Add(PartOf(before_.ranks[i], part), PartOf(now_.ranks[j], part), 1);
          if (part == 0) rank_rows_.push_back(row);
        }
        ++i;
        ++j;
      }
    }
  }

  const std::vector<int64_t>& StepsOf(const SideOperator& one) const {
    return comparison_.taken_away_known ? one.cut_ns : one.uncut_ns;
  }

  // Mean over ranks and steps.
  int64_t MeanNs(const SideOperator& one, const Side& side) const {
    return MeanOf(StepsOf(one)) / static_cast<int64_t>(side.ranks.size());
  }

  static const SideOperator& Find(const Side& side, const std::string& name) {
    static const SideOperator kNever;
    const auto found = side.operators.find(name);
    return found == side.operators.end() ? kNever : found->second;
  }

  void AddOperators() {
    std::set<std::string> names;
    for (const auto& [name, one] : before_.operators) names.insert(name);
    for (const auto& [name, one] : now_.operators) names.insert(name);
    if (comparison_.other_detail) names.clear();
    if (comparison_.redacted) {
      std::erase_if(names, [this](const std::string& name) {
        return !before_.operators.contains(name) || !now_.operators.contains(name);
      });
    }
    std::vector<std::pair<int64_t, std::string>> by_change;
    for (const std::string& name : names) {
      const int64_t change_ns =
          MeanNs(Find(now_, name), now_) - MeanNs(Find(before_, name), before_);
      by_change.emplace_back(-std::abs(change_ns), name);
    }
    std::sort(by_change.begin(), by_change.end());
    if (by_change.size() > kOperatorsMax) by_change.resize(kOperatorsMax);
    for (const auto& [change_ns, name] : by_change) {
      std::vector<int64_t> before = StepsOf(Find(before_, name));
      std::vector<int64_t> now = StepsOf(Find(now_, name));
      before.resize(before_.steps);  // of one that never ran there
      now.resize(now_.steps);
      operator_rows_.push_back(changes_.Add(std::move(before), std::move(now), ranks()));
      comparison_.operators.emplace_back().name = name;
    }
  }

  static double CallsOf(const SideOperator& one, const Side& side) {
    return static_cast<double>(one.calls) /
           static_cast<double>(std::max<uint64_t>(1, side.steps * side.ranks.size()));
  }

  OperatorChange::Work WorkOf(const std::string& name, const OperatorChange& change) const {
    using Work = OperatorChange::Work;
    const double most = std::max(change.calls_before, change.calls_now);
    if (std::abs(change.calls_now - change.calls_before) > kSameCount * most) {
      return Work::kMoreCalls;
    }
    const SideOperator& before = Find(before_, name);
    const SideOperator& now = Find(now_, name);
    if (comparison_.redacted || (before.shapes.empty() && now.shapes.empty())) {
      return Work::kUnknownShapes;
    }
    std::set<std::string> shapes;
    for (const auto& [shape, calls] : before.shapes) shapes.insert(shape);
    for (const auto& [shape, calls] : now.shapes) shapes.insert(shape);
    const auto calls_of = [](const SideOperator& one, const Side& side, const std::string& shape) {
      const auto found = one.shapes.find(shape);
      return found == one.shapes.end() ? 0
                                       : static_cast<double>(found->second) /
                                             static_cast<double>(side.steps * side.ranks.size());
    };
    double differ = 0;
    for (const std::string& shape : shapes) {
      differ += std::max(0.0, calls_of(now, now_, shape) - calls_of(before, before_, shape));
    }
    return differ > kSameCount * most ? Work::kOtherShapes : Work::kSameShapes;
  }

  int64_t RankNs(const SideOperator& one, const Side& side, int32_t rank) const {
    const std::vector<int64_t>& sums =
        comparison_.taken_away_known ? one.rank_cut_ns : one.rank_uncut_ns;
    for (size_t i = 0; i < sums.size(); ++i) {
      if (side.ranks[i].rank == rank) return sums[i] / static_cast<int64_t>(side.steps);
    }
    return 0;
  }

  void TakeOperators() {
    for (size_t i = 0; i < comparison_.operators.size(); ++i) {
      OperatorChange& change = comparison_.operators[i];
      const SideOperator& before = Find(before_, change.name);
      const SideOperator& now = Find(now_, change.name);
      change.time = changes_.Of(operator_rows_[i]);
      change.calls_before = CallsOf(before, before_);
      change.calls_now = CallsOf(now, now_);
      change.work = WorkOf(change.name, change);
      const int64_t sign = change.time.change.est_ns < 0 ? -1 : 1;
      for (const RankChange& rank : comparison_.ranks) {
        const int64_t ns = RankNs(now, now_, rank.rank) - RankNs(before, before_, rank.rank);
        if (change.rank >= 0 && ns * sign <= change.rank_change_ns * sign) continue;
        change.rank = rank.rank;
        change.rank_change_ns = ns;
      }
    }
  }

  const Side& before_;
  const Side& now_;
  Comparison& comparison_;
  Changes changes_;
  std::vector<size_t> rank_rows_;      // of each compared rank: its first part's
  std::vector<size_t> operator_rows_;  // beside comparison_.operators
};

// "all_reduce x3, 1 forward pass, 1 batch loaded".
std::string TextOf(const StepKind& kind) {
  std::string text;
  for (const auto& [name, count] : kind.collectives) {
    absl::StrAppend(&text, name, " x", count, ", ");
  }
  if (text.empty()) text = "no collective, ";
  absl::StrAppend(&text, kind.forwards,
                  kind.forwards == 1 ? " forward pass, " : " forward passes, ", kind.loads,
                  kind.loads == 1 ? " batch loaded" : " batches loaded");
  return text;
}

std::vector<int32_t> RanksOf(const Side& side) {
  std::vector<int32_t> ranks;
  for (const SideRank& rank : side.ranks) ranks.push_back(rank.rank);
  return ranks;
}

// Recordings before are taken as one: they must have the same ranks.
void CheckAlike(std::span<const Side> before, Comparison* comparison) {
  for (const Side& side : before) {
    if (RanksOf(side) == RanksOf(before.front())) continue;
    comparison->Refuse(Mismatch::kOtherWorldSize,
                       "not comparable: the recordings before have not all the same ranks");
  }
}

void CheckComparable(const Side& before, const Side& now, Comparison* comparison) {
  if (AreRefused(before, now, comparison)) return;
  if (before.ranks.size() != now.ranks.size()) {
    comparison->Refuse(Mismatch::kOtherWorldSize,
                       absl::StrCat("not comparable: ", now.ranks.size(),
                                    now.ranks.size() == 1 ? " rank now, " : " ranks now, ",
                                    before.ranks.size(), " before"));
  }
  if (before.kind != now.kind) {
    comparison->Refuse(Mismatch::kOtherSteps,
                       absl::StrCat("not comparable, the steps are of another class: ",
                                    TextOf(now.kind), " now; ", TextOf(before.kind), " before"));
  }
}

}  // namespace

ComparedSide SummaryOf(const Side& side) {
  return {side.job,          side.window_ns,  side.steps,      side.step_class,
          side.ranks.size(), side.incomplete, side.lost_events};
}

Comparison Compare(std::span<const Side> before, const Side& now) {
  auto comparison = Checked<Comparison>(before, now, CheckComparable);
  CheckAlike(before, &comparison);
  if (comparison.mismatch != Mismatch::kNone) return comparison;
  const Side pooled = Pooled(before);
  comparison.before = SummaryOf(pooled);
  Comparer(pooled, comparison.steps_before(), now, &comparison).Run();
  return comparison;
}

Comparison Compare(const Side& before, const Side& now) {
  return Compare(std::span<const Side>(&before, 1), now);
}

}  // namespace syncline::analysis::why

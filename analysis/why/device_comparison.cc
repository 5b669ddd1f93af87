// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/device_comparison.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/why/series.h"
#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

constexpr size_t kKernelsMax = 32;

using Series = std::vector<int64_t>;

int64_t StepNs(const DevicePartTable& table) {
  int64_t sum = 0;
  for (const int64_t ns : table) sum += ns;
  return sum;
}

// By step, added up over the ranks.
template <class Value>
Series SumsOf(const DeviceSide& side, const Value& value) {
  Series sums(side.steps);
  for (const DeviceSide::Rank& rank : side.ranks) {
    for (size_t step = 0; step < sums.size(); ++step) sums[step] += value(rank.tables[step]);
  }
  return sums;
}

Series PartOf(const DeviceSide::Rank& rank, size_t part) {
  Series series;
  for (const DevicePartTable& table : rank.tables) series.push_back(table[part]);
  return series;
}

class Comparer {
 public:
  // `before` is all recordings before together, which have so many steps each.
  Comparer(const DeviceSide& before, std::vector<size_t> lengths, const DeviceSide& now,
           DeviceComparison* comparison)
      : before_(before), now_(now), comparison_(*comparison), changes_(std::move(lengths)) {}

  void Run() {
    const size_t step = Add(&StepNs);
    std::vector<size_t> parts;
    for (size_t part = 0; part < kDeviceParts; ++part) {
      parts.push_back(Add([part](const DevicePartTable& table) { return table[part]; }));
    }
    const std::vector<size_t> ranks = AddRanks();
    const std::vector<size_t> kernels = AddKernels();
    changes_.Sample();
    comparison_.step = changes_.Of(step);
    for (size_t part = 0; part < kDeviceParts; ++part) {
      comparison_.parts[part] = changes_.Of(parts[part]);
    }
    for (size_t i = 0; i < ranks.size(); ++i) {
      comparison_.ranks[i].own = changes_.Of(ranks[i]);
      for (size_t part = 0; part < kDeviceParts; ++part) {
        comparison_.ranks[i].parts[part] = changes_.Of(ranks[i] + 1 + part);
      }
    }
    for (size_t i = 0; i < kernels.size(); ++i) {
      comparison_.kernels[i].time = changes_.Of(kernels[i]);
    }
  }

 private:
  template <class Value>
  size_t Add(const Value& value) {
    const auto ranks = static_cast<int64_t>(before_.ranks.size());
    return changes_.Add(SumsOf(before_, value), SumsOf(now_, value), ranks);
  }

  // Of each rank: where its own work is; its parts follow.
  std::vector<size_t> AddRanks() {
    std::vector<size_t> rows;
    for (size_t i = 0; i < before_.ranks.size(); ++i) {
      const DeviceSide::Rank& before = before_.ranks[i];
      const DeviceSide::Rank& now = now_.ranks[i];
      rows.push_back(changes_.Add(before.own_ns, now.own_ns));
      for (size_t part = 0; part < kDeviceParts; ++part) {
        changes_.Add(PartOf(before, part), PartOf(now, part));
      }
      comparison_.ranks.push_back({before.rank, {}, {}});
    }
    return rows;
  }

  static double CallsOf(const DeviceSide& side, const KernelName& name) {
    const auto found = side.kernels.find(name);
    return found == side.kernels.end() ? 0
                                       : static_cast<double>(found->second.count) /
                                             static_cast<double>(side.steps * side.ranks.size());
  }

  std::vector<size_t> AddKernels() {
    const NamedSeries before{before_.kernels, before_.steps, &DeviceSide::Kernel::ns};
    const NamedSeries now{now_.kernels, now_.steps, &DeviceSide::Kernel::ns};
    const auto ranks = static_cast<int64_t>(before_.ranks.size());
    std::vector<size_t> rows;
    for (KernelName& name : NamesByChange(before, now, kKernelsMax)) {
      rows.push_back(changes_.Add(before.Of(name), now.Of(name), ranks));
      KernelChange& change = comparison_.kernels.emplace_back();
      change.calls_before = CallsOf(before_, name);
      change.calls_now = CallsOf(now_, name);
      change.name = std::move(name);
    }
    return rows;
  }

  const DeviceSide& before_;
  const DeviceSide& now_;
  DeviceComparison& comparison_;
  Changes changes_;
};

std::vector<int32_t> RanksOf(const DeviceSide& side) {
  std::vector<int32_t> ranks;
  for (const DeviceSide::Rank& rank : side.ranks) ranks.push_back(rank.rank);
  return ranks;
}

std::string RanksText(const DeviceSide& side) {
  const std::vector<int32_t> ranks = RanksOf(side);
  if (ranks.front() < 0) return "a rank that is not known";
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", absl::StrJoin(ranks, ", "));
}

void CheckRanks(const DeviceSide& before, const DeviceSide& now, DeviceComparison* comparison) {
  const bool known = before.world_size >= 0 && now.world_size >= 0;
  if (known && before.world_size != now.world_size) {
    comparison->Refuse(Mismatch::kOtherWorldSize,
                       absl::StrCat("not comparable: the job has ", now.world_size,
                                    now.world_size == 1 ? " rank now, " : " ranks now, ",
                                    before.world_size, " before"));
  } else if (RanksOf(before) != RanksOf(now)) {
    comparison->Refuse(
        Mismatch::kOtherWorldSize,
        absl::StrCat("not comparable: ", RanksText(now), " now, ", RanksText(before), " before"));
  }
}

void CheckComparable(const DeviceSide& before, const DeviceSide& now,
                     DeviceComparison* comparison) {
  if (AreRefused(before, now, comparison)) return;
  CheckRanks(before, now, comparison);
  if (before.collectives != now.collectives) {
    comparison->Refuse(
        Mismatch::kOtherSteps,
        absl::StrCat("not comparable, the steps are of another class: ", now.collectives,
                     " kernels of collectives in a step now, ", before.collectives, " before"));
  }
  for (const auto& [side, when] : {std::pair(&now, "now"), std::pair(&before, "before")}) {
    if (side->steps >= kStepsMin) continue;
    comparison->Refuse(Mismatch::kTooFewSteps,
                       absl::StrCat("not comparable: of one class ", side->steps, " of the steps ",
                                    when, " were judged, and ", kStepsMin,
                                    " are needed: record for longer, or profile more steps"));
  }
}

}  // namespace

ComparedSide SummaryOf(const DeviceSide& side) {
  std::string step_class;
  if (side.steps > 0) {
    step_class = absl::StrCat(side.collectives, side.collectives == 1 ? " kernel of a collective"
                                                                      : " kernels of collectives");
  }
  return {side.job,          side.window_ns,  side.steps,       std::move(step_class),
          side.ranks.size(), side.incomplete, side.lost_events, side.left_out};
}

DeviceComparison CompareDevices(std::span<const DeviceSide> before, const DeviceSide& now) {
  auto comparison = Checked<DeviceComparison>(before, now, CheckComparable);
  comparison.has_collectives = now.collectives > 0;
  if (comparison.mismatch != Mismatch::kNone) return comparison;
  const DeviceSide pooled = Pooled(before);
  comparison.own_work_known = !pooled.host_collectives && !now.host_collectives;
  comparison.before = SummaryOf(pooled);
  Comparer(pooled, comparison.steps_before(), now, &comparison).Run();
  return comparison;
}

}  // namespace syncline::analysis::why

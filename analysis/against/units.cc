// SPDX-License-Identifier: Apache-2.0
#include "analysis/against/units.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace syncline::analysis::against {
namespace {

using timeline::Interval;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kParts = 240;  // of the time, where there are no steps

// What any of these covers, in order.
std::vector<Interval> Joined(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::vector<Interval> joined;
  for (const Interval& one : intervals) {
    if (one.end <= one.begin) continue;
    if (joined.empty() || joined.back().end < one.begin) {
      joined.push_back(one);
    } else {
      joined.back().end = std::max(joined.back().end, one.end);
    }
  }
  return joined;
}

bool IsCovered(const std::vector<Interval>& coverage, const Interval& period) {
  return std::any_of(coverage.begin(), coverage.end(), [&](const Interval& one) {
    return one.begin <= period.begin && period.end <= one.end;
  });
}

std::vector<TimelineTime> BeginsOf(const Report& report, std::string* name) {
  std::vector<TimelineTime> begins;
  if (!report.steps.empty()) {
    *name = report.steps.front().name;
    for (const Step& step : report.steps.front().steps) begins.push_back(step.begin);
    return begins;
  }
  for (const NodeReport& node : report.nodes) {
    for (const DeviceReport& device : node.devices) {
      if (!device.has_steps || device.steps.size() < 2) continue;
      *name = "step of the profile";
      for (const DeviceStep& step : device.steps) begins.push_back(step.program.begin);
      return begins;
    }
  }
  return begins;
}

}  // namespace

std::vector<Interval> CoverageOf(const Report& report) {
  if (!report.common_coverage.empty()) return report.common_coverage;
  const bool processes =
      std::any_of(report.nodes.begin(), report.nodes.end(),
                  [](const NodeReport& node) { return !node.processes.empty(); });
  if (processes) return {};  // at no time were all of them recorded
  std::vector<Interval> profiles;
  for (const NodeReport& node : report.nodes) {
    for (const timeline::ProfileResult& profile : node.profiles) {
      if (!profile.begin.has_value() || !profile.end.has_value()) continue;
      profiles.push_back({*profile.begin, *profile.end});
    }
  }
  if (!profiles.empty()) return Joined(std::move(profiles));
  return Joined({{report.window_begin, report.window_end}});
}

Periods PeriodsOf(const Report& report) {
  Periods periods;
  std::vector<TimelineTime> begins = BeginsOf(report, &periods.name);
  std::sort(begins.begin(), begins.end());
  const std::vector<Interval> coverage = CoverageOf(report);
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    const Interval period{begins[i], begins[i + 1]};
    if (period.begin < period.end && IsCovered(coverage, period)) {
      periods.intervals.push_back(period);
    }
  }
  return periods;
}

Units UnitsOf(const Report& report, Per per) {
  Units units;
  units.per = per;
  if (per == Per::kStep) {
    const std::vector<Interval> periods = PeriodsOf(report).intervals;
    const size_t steps = std::max<size_t>(1, (periods.size() + kUnitsMax - 1) / kUnitsMax);
    units.steps = static_cast<int64_t>(steps);
    for (size_t i = 0; i + steps <= periods.size(); i += steps) {
      units.intervals.push_back({periods[i].begin, periods[i + steps - 1].end});
      int64_t length_ns = 0;
      for (size_t k = i; k < i + steps; ++k) length_ns += periods[k].end.ns - periods[k].begin.ns;
      units.lengths_ns.push_back(length_ns);
    }
    return units;
  }
  const std::vector<Interval> coverage = CoverageOf(report);
  int64_t all_ns = 0;
  for (const Interval& one : coverage) all_ns += one.end.ns - one.begin.ns;
  units.part_ns = std::max<int64_t>(1, all_ns / kParts);
  for (const Interval& one : coverage) {
    for (int64_t ns = one.begin.ns; ns + units.part_ns <= one.end.ns; ns += units.part_ns) {
      units.intervals.push_back({{ns}, {ns + units.part_ns}});
      units.lengths_ns.push_back(units.part_ns);
    }
  }
  return units;
}

std::optional<size_t> Units::At(TimelineTime time, size_t* hint) const {
  if (*hint < intervals.size() && intervals[*hint].Contains(time)) return *hint;
  const auto after = std::upper_bound(
      intervals.begin(), intervals.end(), time,
      [](TimelineTime instant, const Interval& interval) { return instant < interval.begin; });
  if (after == intervals.begin()) return std::nullopt;
  const auto at = static_cast<size_t>(after - intervals.begin()) - 1;
  if (!intervals[at].Contains(time)) return std::nullopt;
  *hint = at;
  return at;
}

int64_t Units::PerOne(int64_t sum) const {
  if (per == Per::kStep) return (sum + steps / 2) / steps;
  return std::llround(static_cast<double>(sum) * static_cast<double>(kSecondNs) /
                      static_cast<double>(part_ns));
}

double Units::Ones() const {
  if (per == Per::kStep) return static_cast<double>(size()) * static_cast<double>(steps);
  return static_cast<double>(size()) * static_cast<double>(part_ns) /
         static_cast<double>(kSecondNs);
}

}  // namespace syncline::analysis::against

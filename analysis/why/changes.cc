// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/changes.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

constexpr uint64_t kSeedBefore = 1;
constexpr uint64_t kSeedNow = 2;
constexpr int64_t kMillion = 1'000'000;

// Half of the interval in which one more of these means lies; 0 of fewer than two.
int64_t DriftOf(const std::vector<double>& means) {
  if (means.size() < 2) return 0;
  const double student = StudentQuantile(0.95, means.size() - 1);
  return std::llround(student * Deviation(means) *
                      std::sqrt(1 + 1 / static_cast<double>(means.size())));
}

int64_t Share(int64_t ns, int64_t step_ns) { return step_ns <= 0 ? 0 : ns * kMillion / step_ns; }

}  // namespace

size_t Changes::Add(std::vector<int64_t> before, std::vector<int64_t> now, int64_t divisor) {
  rows_.push_back({std::move(before), std::move(now), divisor});
  return rows_.size() - 1;
}

void Changes::Sample() {
  before_ = SamplesOf(&Row::before, kSeedBefore);
  now_ = SamplesOf(&Row::now, kSeedNow);
}

Change Changes::Of(size_t index, int64_t moved_ns) const {
  const Row& row = rows_[index];
  Change change;
  change.before_ns = MeanOf(row.before) / row.divisor;
  change.now_ns = MeanOf(row.now) / row.divisor;
  change.change.est_ns = change.now_ns - change.before_ns;
  change.est_ppm = Share(change.change.est_ns, StepBeforeNs());
  std::vector<int64_t> differences;
  std::vector<int64_t> shares;
  for (size_t i = 0; i < before_[index].size(); ++i) {
    differences.push_back((now_[index][i] - before_[index][i]) / row.divisor);
    shares.push_back(Share(differences.back(), before_[0][i] / rows_[0].divisor));
  }
  const Interval ns = MiddleOf(std::move(differences));
  const Interval ppm = MiddleOf(std::move(shares));
  change.change.lo_ns = ns.lo;
  change.change.hi_ns = ns.hi;
  change.lo_ppm = ppm.lo;
  change.hi_ppm = ppm.hi;
  Widen(row, &change);
  const int64_t moved_ppm = Share(moved_ns, StepBeforeNs());
  change.change.lo_ns -= moved_ns;
  change.change.hi_ns += moved_ns;
  change.lo_ppm -= moved_ppm;
  change.hi_ppm += moved_ppm;
  return change;
}

int64_t Changes::StepBeforeNs() const { return MeanOf(rows_[0].before) / rows_[0].divisor; }

void Changes::Widen(const Row& row, Change* change) const {
  std::vector<double> means;
  size_t begin = 0;
  for (const size_t length : lengths_) {
    const std::span<const int64_t> part = std::span(row.before).subspan(begin, length);
    means.push_back(static_cast<double>(MeanOf(part)) / static_cast<double>(row.divisor));
    begin += length;
  }
  const int64_t drift_ns = DriftOf(means);
  MeanEstimate& mean = change->change;
  mean.lo_ns = std::min(mean.lo_ns, mean.est_ns - drift_ns);
  mean.hi_ns = std::max(mean.hi_ns, mean.est_ns + drift_ns);
  const int64_t drift_ppm = Share(drift_ns, StepBeforeNs());
  change->lo_ppm = std::min(change->lo_ppm, change->est_ppm - drift_ppm);
  change->hi_ppm = std::max(change->hi_ppm, change->est_ppm + drift_ppm);
}

std::vector<std::vector<int64_t>> Changes::SamplesOf(std::vector<int64_t> Row::*side,
                                                     uint64_t seed) const {
  std::vector<std::span<const int64_t>> series;
  for (const Row& row : rows_) series.emplace_back(row.*side);
  const size_t steps = series[0].size();
  return SampledMeans(series, BlockOf(steps), seed);
}

}  // namespace syncline::analysis::why

// SPDX-License-Identifier: Apache-2.0
#include "clocksync/thinning.h"

#include <algorithm>
#include <map>

#include "clocksync/arithmetic.h"
#include "clocksync/edge_fit.h"
#include "clocksync/hull.h"

namespace syncline::clocksync {
namespace {

using Samples = std::span<const ProbeSample>;

constexpr size_t kSamplesFew = 16;        // of a cell: all are kept
constexpr int64_t kRateSlackPpb = 1'000;  // for what rates wander within a cell, and more

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// A limit of theta, and whose.
struct Owned {
  Limit limit;
  size_t sample = 0;
};

void KeepCorners(std::vector<Owned> owned, const CorridorOptions& options,
                 std::vector<bool>* kept) {
  std::stable_sort(owned.begin(), owned.end(),
                   [](const Owned& a, const Owned& b) { return a.limit.x < b.limit.x; });
  std::vector<Limit> limits;
  for (const Owned& one : owned) limits.push_back(one.limit);
  const std::vector<size_t> corners = CornersOfHull(limits, options.wander_ppb_per_s);
  // Of the lines below the hull that touch it at a corner, one must be possible: between the rates
  // of its two sides lies one that a pair of clocks can have.
  const Int128 rate_ppb_max = Int128{options.rate_ppb_max} + kRateSlackPpb;
  for (size_t i = 0; i < corners.size(); ++i) {
    const auto rate_ppb_after = [&](size_t corner) {
      const Limit& a = limits[corners[corner]];
      const Limit& b = limits[corners[corner + 1]];
      return (Int128{b.theta_ns} - a.theta_ns) * kBillion / std::max<int64_t>(b.x - a.x, 1);
    };
    if (i + 1 < corners.size() && rate_ppb_after(i) < -rate_ppb_max) continue;
    if (i > 0 && rate_ppb_after(i - 1) > rate_ppb_max) continue;
    (*kept)[owned[corners[i]].sample] = true;
  }
}

void KeepFastestOfEachSecond(Samples cell, std::vector<bool>* kept) {
  std::map<int64_t, std::pair<int64_t, size_t>> fastest;
  for (size_t i = 0; i < cell.size(); ++i) {
    const ProbeSample& s = cell[i];
    const bool whole =
        s.t1_local_ns != 0 && s.t2_remote_ns != 0 && s.t3_remote_ns != 0 && s.t4_local_ns != 0;
    const int64_t trip = whole ? SaturatingAdd(SaturatingAdd(s.t4_local_ns, -s.t1_local_ns),
                                               -SaturatingAdd(s.t3_remote_ns, -s.t2_remote_ns))
                               : kUnknownHi;
    const auto [of_second, is_new] = fastest.try_emplace(FloorDiv(s.local_ns(), kBillion), trip, i);
    if (!is_new && trip < of_second->second.first) of_second->second = {trip, i};
  }
  for (const auto& [second, best] : fastest) (*kept)[best.second] = true;
}

void ThinCell(Samples cell, const CorridorOptions& options, std::vector<ProbeSample>* result) {
  if (cell.size() <= kSamplesFew) {
    result->insert(result->end(), cell.begin(), cell.end());
    return;
  }
  const EdgeFit fit = CollectEdge({.samples = {cell.begin(), cell.end()}});
  const Epochs fitted = FitEpochs(fit.constraints, options);
  const bool sound = fit.unusable == 0 && fit.impossible == 0 && fitted.epochs.size() == 1 &&
                     fitted.contradicting == 0 && !fitted.gave_up;
  std::vector<bool> kept(cell.size(), !sound);
  if (sound) {
    std::vector<Owned> upper, lower;
    for (size_t i = 0; i < cell.size(); ++i) {
      const ProbeSample& s = cell[i];
      if (s.t1_local_ns != 0 && s.t2_remote_ns != 0) {
        upper.push_back({{s.t1_local_ns, s.t2_remote_ns - s.t1_local_ns}, i});
      }
      if (s.t3_remote_ns != 0 && s.t4_local_ns != 0) {
        lower.push_back({{s.t4_local_ns, s.t4_local_ns - s.t3_remote_ns}, i});
      }
    }
    KeepCorners(std::move(upper), options, &kept);
    KeepCorners(std::move(lower), options, &kept);
    KeepFastestOfEachSecond(cell, &kept);
  }
  for (size_t i = 0; i < cell.size(); ++i) {
    if (kept[i]) result->push_back(cell[i]);
  }
}

}  // namespace

int64_t ThinningCell(const ProbeSample& sample) {
  return FloorDiv(sample.local_ns(), kThinningCellNs);
}

std::vector<ProbeSample> Thinned(Samples samples, const CorridorOptions& options) {
  std::vector<ProbeSample> result;
  for (size_t first = 0; first < samples.size();) {
    const int64_t cell = ThinningCell(samples[first]);
    size_t last = first + 1;
    while (last < samples.size() && ThinningCell(samples[last]) == cell) ++last;
    ThinCell(samples.subspan(first, last - first), options, &result);
    first = last;
  }
  return result;
}

}  // namespace syncline::clocksync

// SPDX-License-Identifier: Apache-2.0
#include "control_block/cost.h"

#include <algorithm>
#include <cmath>

namespace syncline::control_block {
namespace {

constexpr double kVariancesAt95Percent = 20;  // Chebyshev: 1 / (1 - 0.95)
constexpr uint64_t kSamplesMin = 30;
constexpr double kUntimedCallNsMax = 50'000;  // what took longer was interrupted

// The block may be damaged, and say anything.
int64_t Whole(double ns) { return static_cast<int64_t>(std::clamp(std::round(ns), 0.0, 9e18)); }

}  // namespace

DurationEstimate CostOf(const GateAnswer& gate) {
  const CostSums& cost = gate.cost_since_on;
  const auto counted_ns = static_cast<double>(gate.cost_ns_since_on);
  if (cost.timed_ns == 0) return {.est_ns = Whole(counted_ns)};
  const auto samples = static_cast<double>(cost.samples);
  const auto timed_ns = static_cast<double>(cost.timed_ns);
  const double events = static_cast<double>(gate.events_since_on) +  //
                        static_cast<double>(gate.lost_since_on);
  const double known_calls = static_cast<double>(cost.calls) +  //
                             static_cast<double>(cost.interrupted);
  const double calls = std::max(events, known_calls);
  const double timed_calls = samples + static_cast<double>(cost.interrupted);
  const double most_ns = timed_ns + std::max(0.0, calls - timed_calls) * kUntimedCallNsMax;
  if (cost.samples < 2 || cost.calls == 0) {
    return {Whole(counted_ns), Whole(std::min(timed_ns, counted_ns)),
            Whole(std::max(most_ns, counted_ns))};
  }
  const auto sampled_ns = static_cast<double>(cost.sampled_ns);
  const double squares = static_cast<double>(cost.squares) * 1024;
  const double calls_a_sample = static_cast<double>(cost.calls) / samples;
  const double behind = calls - known_calls;  // the threads' last samples
  const double behind_ns = behind * std::sqrt(squares / samples) / calls_a_sample;
  const double variance =
      std::max(0.0, squares - sampled_ns * sampled_ns / samples) * samples / (samples - 1);
  const double half_ns = std::sqrt(kVariancesAt95Percent * (variance + behind_ns * behind_ns));
  const double est_ns = counted_ns + behind * sampled_ns / static_cast<double>(cost.calls);
  const double hi_ns = cost.samples < kSamplesMin ? most_ns : std::min(est_ns + half_ns, most_ns);
  return {Whole(est_ns), Whole(std::min(est_ns, std::max(timed_ns, est_ns - half_ns))),
          Whole(std::max(est_ns, hi_ns))};
}

}  // namespace syncline::control_block

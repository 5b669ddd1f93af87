// SPDX-License-Identifier: Apache-2.0
// The proof for one pair of clocks: from constraints on single instants to an interval at every
// instant.
//
// Let x be what one clock reads and y(x) the other at the same instant, theta(x) = y(x) - x. Known
// are constraints of two kinds, each exact in x (see samples.h for why):
//     upper   y(x_k) <= y_k    a message left at x_k, and had arrived when the other clock read y_k
//     lower   y(x_k) >= y_k    a message left at y_k, and had arrived when this clock read x_k
// Assumed are |theta'| <= rho and |theta''| <= w. By Taylor's theorem theta(x_k) differs from
// theta(t) + theta'(t) d, d = x_k - t, by at most w d^2 / 2; so for each t the unknown line (theta,
// a) satisfies
//     theta + a d_k <=  y_k - x_k + w d_k^2 / 2     for each upper constraint
//     theta + a d_k >=  y_k - x_k - w d_k^2 / 2     for each lower constraint,     |a| <= rho
// a linear program in two unknowns. Its largest and smallest theta bound the truth. By duality any
// two constraints give a sound bound, so leaving constraints out only loosens: we use those in a
// window.
//
// Worked example: one exchange, t1=0, t2=1060, t3=1070, t4=100 (clock y is 1000 ahead, 60 ns out,
// 30 ns back, 10 ns in between). Upper: y(0) <= 1060. Lower: y(100) >= 1070, so theta(0) <= 1060,
// theta(100) >= 970, and with rho = 0 theta is in [970, 1060]: half of the round trip to each side.
//
// Where no line fits, an assumption broke (a step, a suspend, a false stamp). The constraints are
// then split into epochs that each fit; in the gap between two epochs the interval is the union of
// what either would say, because the break may have been anywhere in it.
//
// Source: Patt-Shamir and Rajsbaum, "A theory of clock synchronization", STOC 1994.
#ifndef SYNCLINE_CLOCKSYNC_CORRIDOR_H_
#define SYNCLINE_CLOCKSYNC_CORRIDOR_H_

#include <cstdint>
#include <span>
#include <vector>

#include "clocksync/bounded_map.h"

namespace syncline::clocksync {

struct Constraint {
  int64_t x = 0;
  int64_t y = 0;
};

// Everything known of y(x), in any order.
struct Constraints {
  std::vector<Constraint> upper;
  std::vector<Constraint> lower;
};

struct CorridorOptions {
  int64_t rate_ppb_max = 200'000;     // rho
  int64_t wander_ppb_per_s = 10;      // w
  int64_t window_ns = 4'000'000'000;  // constraints this far to each side are used, and some beyond
  int64_t knot_ns = 0;                // distance of knots; 0: chosen from the span
};

// The interval in which an assumption broke.
struct Break {
  int64_t begin_ns = 0;  // by clock x
  int64_t end_ns = 0;
  int64_t begin_y_ns = 0;  // by clock y: the widest that the readings allow
  int64_t end_y_ns = 0;
  // How theta stepped, in an instant between the two: estimate, and limits that hold if the rate
  // was one of those that the samples before and after allow. Limits on both sides of zero: the
  // rate alone may have changed.
  int64_t step_ns = 0;
  int64_t step_ns_min = 0;
  int64_t step_ns_max = 0;
  bool backwards = false;  // clock y went back: nothing is known on the shorter side
};

// A stretch in which the assumptions hold: knots with y = x + theta, the interval proven at each
// knot and on the lines between them.
using Epoch = std::vector<BoundedMap::Knot>;

struct Epochs {
  std::vector<Epoch> epochs;   // in the order of x; empty without constraints
  uint64_t contradicting = 0;  // constraints left out: they contradict all others around them
  bool gave_up =
      false;  // so many breaks that the assumptions plainly do not hold: not all is fitted
};

Epochs FitEpochs(const Constraints& constraints, const CorridorOptions& options);

// What theta may do in the gap between two epochs.
struct GapRule {
  bool steps = true;  // theta may jump; otherwise its rate alone changes, within these limits:
  int64_t rate_ppb_lo = -200'000;
  int64_t rate_ppb_hi = 200'000;
  int64_t wander_ppb_per_s = 10;  // of the epochs
};

struct Corridor {
  BoundedMap map;  // x -> y; empty without constraints
  std::vector<Break> breaks;
  uint64_t contradicting = 0;
  bool gave_up = false;
};

// One map of all epochs. `gaps` has one rule per gap, or one for all. For clocks that never go
// back: where one does all the same, only its longest stretch is kept and nothing is claimed
// outside it.
Corridor JoinEpochs(Epochs epochs, const std::vector<GapRule>& gaps, int64_t rate_ppb_outside);

// FitEpochs and JoinEpochs for two clocks whose offset may step. It is taken to have stepped in
// each of `known_gaps` (by clock x, in order), whether these constraints show it or not: those
// inside are left out.
Corridor FitCorridor(const Constraints& constraints, const CorridorOptions& options,
                     std::span<const Interval> known_gaps = {});

// The same for clocks whose rate against each other may change at any time, within rate_ppb_max: of
// theta'' nothing is assumed, so no line is fitted. theta at t is limited by what each constraint
// leaves until there:
//     theta(x_k) - rho |t - x_k|  <=  theta(t)  <=  theta(x_k) + rho |t - x_k|
// The estimate is the line that fits best, as far as it lies inside; of clocks with a limit on one
// side only, that they read the same. Where the constraints
// contradict each other the map is empty and gave_up is set.
Corridor FitVaryingRate(const Constraints& constraints, int64_t rate_ppb_max);

// The largest theta at d = 0 of all lines that pass under every point of `upper`, over every point
// of `lower`, with a slope of at most rate_ppb_max; x is d. kUnknownHi when unlimited. Exposed for
// tests.
int64_t MaxIntercept(const std::vector<Constraint>& upper, const std::vector<Constraint>& lower,
                     int64_t rate_ppb_max);

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_CORRIDOR_H_

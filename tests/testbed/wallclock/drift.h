// SPDX-License-Identifier: Apache-2.0
// A host's clock that drifts and wanders, as an exact function of the machine's: for the library
// that makes it so (wallclock.c) and for tests that must know the truth.
//
//   D(t) = t + rate (t - anchor) + w(t - anchor)
//
// w is the integral of a rate that swings between -wander and +wander like a triangle, once per
// period: its steepest change is 4 wander / period. Few multiplications, because every reading of a
// clock pays for it, and the time between two readings is what bounds are made of.
#ifndef SYNCLINE_TESTS_TESTBED_WALLCLOCK_DRIFT_H_
#define SYNCLINE_TESTS_TESTBED_WALLCLOCK_DRIFT_H_

#include <stdint.h>
#include <stdio.h>

struct Drift {
  int64_t anchor_ns;  // in the clock that drifts: there it is right
  double rate;        // 1e-4: 100 ppm
  double wander;      // of the rate, likewise
  double period_ns;
};

// "ANCHOR_NS RATE_PPB WANDER_PPB PERIOD_NS"; 0: it is something else.
static inline int ParseDrift(const char* text, struct Drift* drift) {
  long long anchor_ns, rate_ppb, wander_ppb, period_ns;
  if (sscanf(text, "%lld %lld %lld %lld", &anchor_ns, &rate_ppb, &wander_ppb, &period_ns) != 4 ||
      period_ns <= 0) {
    return 0;
  }
  drift->anchor_ns = anchor_ns;
  drift->rate = (double)rate_ppb * 1e-9;
  drift->wander = (double)wander_ppb * 1e-9;
  drift->period_ns = (double)period_ns;
  return 1;
}

// D(t) - t.
static inline int64_t DriftedBy(const struct Drift* drift, int64_t t_ns) {
  const double d = (double)(t_ns - drift->anchor_ns);
  const double p = drift->period_ns;
  const double turns = d / p;
  const int64_t whole = (int64_t)turns - (turns < 0);
  const double u = d - (double)whole * p;  // in [0, p]
  double swing = 2 * u * u / p;
  if (u >= 0.75 * p) {
    swing += 2 * p - 4 * u;
  } else if (u >= 0.25 * p) {
    swing = 2 * u - swing - 0.25 * p;
  }
  const double by = drift->rate * d + drift->wander * swing;
  return (int64_t)by - (by < 0);
}

// The t at which D(t) reads `reading_ns`.
static inline int64_t Undrifted(const struct Drift* drift, int64_t reading_ns) {
  int64_t t_ns = reading_ns;
  for (int i = 0; i < 4; ++i) t_ns = reading_ns - DriftedBy(drift, t_ns);
  return t_ns;
}

#endif  // SYNCLINE_TESTS_TESTBED_WALLCLOCK_DRIFT_H_

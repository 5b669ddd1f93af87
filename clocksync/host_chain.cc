// SPDX-License-Identifier: Apache-2.0
#include "clocksync/host_chain.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "clocksync/arithmetic.h"
#include "clocksync/corridor.h"
#include "common/duration_text.h"

namespace syncline::clocksync {
namespace {

// The kernel slews by at most 500 ppm on top of what adjtimex declares (MAXFREQ, adjtime()).
constexpr int64_t kUndeclaredSlewPpb = 500'000;
// With constant adjtimex the rate is constant but for the decaying correction of a kernel PLL.
constexpr int64_t kHostWanderPpbPerS = 20;
// Far beyond any uptime and any date; the arithmetic of corridor.cc has room for these.
constexpr int64_t kRawMax = int64_t{1} << 59;
constexpr int64_t kReadingMax = int64_t{1} << 61;
constexpr int64_t kHostWindowNs = kBillion;
// A run this long shows its own rate better than the kernel's limits tell it.
constexpr int64_t kRunForRateNs = kBillion / 4;

// What adjtimex says of the clock's rate against RAW.
int64_t DeclaredPpb(const ClockTuple& tuple) {
  const int64_t tick_ppb =
      tuple.adjtimex_tick_us == 0 ? 0 : (int64_t{tuple.adjtimex_tick_us} - 10'000) * 100'000;
  const int64_t freq_ppb =
      std::clamp<int64_t>(tuple.adjtimex_freq, -(int64_t{1} << 40), int64_t{1} << 40) * 1000 /
      65536;
  return std::clamp<int64_t>(tick_ppb + freq_ppb, -kBillion / 4, kBillion / 4);
}

bool SameRate(const ClockTuple& a, const ClockTuple& b) {
  return a.adjtimex_freq == b.adjtimex_freq && a.adjtimex_tick_us == b.adjtimex_tick_us &&
         a.adjtimex_status == b.adjtimex_status;
}

struct RateRange {
  int64_t lo = 0;
  int64_t hi = 0;
};

int64_t RatePpb(Int128 theta, Int128 dx) {
  return static_cast<int64_t>(
      std::clamp<Int128>(theta * kBillion / dx, -kBillion / 2, kBillion / 2));
}

// The rate at one end of an epoch: measured where it is long enough, else the kernel's limits.
RateRange RateAtEnd(const Epoch& epoch, bool last, int64_t declared_ppb) {
  const BoundedMap::Knot& end = last ? epoch.back() : epoch.front();
  for (size_t i = 0; i < epoch.size(); ++i) {
    const BoundedMap::Knot& far = last ? epoch[epoch.size() - 1 - i] : epoch[i];
    const int64_t dx = std::abs(end.x - far.x);
    if (dx < kRunForRateNs) continue;
    const BoundedMap::Knot& a = last ? far : end;
    const BoundedMap::Knot& b = last ? end : far;
    const int64_t bend = kHostWanderPpbPerS * dx / kBillion + 1;
    return {RatePpb((Int128{b.lo} - a.hi) - dx, dx) - bend,
            RatePpb((Int128{b.hi} - a.lo) - dx, dx) + bend};
  }
  return {declared_ppb - kUndeclaredSlewPpb, declared_ppb + kUndeclaredSlewPpb};
}

// The readings of one clock: runs of equal adjtimex, fitted and ready to be joined.
struct ClockRuns {
  Epochs epochs;
  std::vector<GapRule> gaps;
  std::vector<bool> torn;  // no slew explains this gap: the clock was set
};

using ReadingOf = int64_t ClockTuple::*;

bool IsTorn(const BoundedMap::Knot& a, const BoundedMap::Knot& b, const GapRule& rule) {
  const Int128 dx = Int128{b.x} - a.x;
  const Int128 most = dx + dx * rule.rate_ppb_hi / kBillion + 2;
  const Int128 least = dx + dx * rule.rate_ppb_lo / kBillion - 2;
  return Int128{b.lo} - a.hi > most || Int128{b.hi} - a.lo < least;
}

ClockRuns FitRuns(const std::vector<ClockTuple>& tuples, ReadingOf reading) {
  ClockRuns runs;
  std::vector<int64_t> declared;  // per epoch
  for (size_t first = 0; first < tuples.size();) {
    size_t last = first + 1;
    while (last < tuples.size() && SameRate(tuples[first], tuples[last])) ++last;
    Constraints constraints;
    for (size_t i = first; i < last; ++i) {
      constraints.upper.push_back({tuples[i].raw_before_ns, tuples[i].*reading});
      constraints.lower.push_back({tuples[i].raw_after_ns, tuples[i].*reading});
    }
    const int64_t rate = DeclaredPpb(tuples[first]);
    Epochs epochs = FitEpochs(constraints, {.rate_ppb_max = std::abs(rate) + kUndeclaredSlewPpb,
                                            .wander_ppb_per_s = kHostWanderPpbPerS,
                                            .window_ns = kHostWindowNs});
    runs.epochs.contradicting += epochs.contradicting;
    for (Epoch& epoch : epochs.epochs) {
      // A run's first instant may lie a bracket before the last one's end.
      while (!runs.epochs.epochs.empty() && !epoch.empty() &&
             epoch.front().x <= runs.epochs.epochs.back().back().x) {
        epoch.erase(epoch.begin());
      }
      if (epoch.empty()) continue;
      runs.epochs.epochs.push_back(std::move(epoch));
      declared.push_back(rate);
    }
    first = last;
  }
  const auto& epochs = runs.epochs.epochs;
  for (size_t i = 0; i + 1 < epochs.size(); ++i) {
    const RateRange before = RateAtEnd(epochs[i], true, declared[i]);
    const RateRange after = RateAtEnd(epochs[i + 1], false, declared[i + 1]);
    GapRule rule{false, std::min(before.lo, after.lo), std::max(before.hi, after.hi)};
    if (IsTorn(epochs[i].back(), epochs[i + 1].front(), rule)) {
      rule.rate_ppb_lo = std::min(declared[i], declared[i + 1]) - kUndeclaredSlewPpb;
      rule.rate_ppb_hi = std::max(declared[i], declared[i + 1]) + kUndeclaredSlewPpb;
    }
    runs.torn.push_back(IsTorn(epochs[i].back(), epochs[i + 1].front(), rule));
    rule.steps = runs.torn.back();
    runs.gaps.push_back(rule);
  }
  return runs;
}

BoundedMap Join(ClockRuns runs) {
  if (runs.gaps.empty()) runs.gaps.push_back({});
  return JoinEpochs(std::move(runs.epochs), runs.gaps, kUndeclaredSlewPpb).map;
}

std::vector<BoundedMap> JoinBetweenSteps(const ClockRuns& runs) {
  std::vector<BoundedMap> maps;
  ClockRuns stretch;
  for (size_t i = 0; i < runs.epochs.epochs.size(); ++i) {
    stretch.epochs.epochs.push_back(runs.epochs.epochs[i]);
    const bool ends = i == runs.gaps.size() || runs.torn[i];
    if (!ends) {
      stretch.gaps.push_back(runs.gaps[i]);
      continue;
    }
    maps.push_back(Join(std::move(stretch)));
    stretch = {};
  }
  return maps;
}

// Changes of MONOTONIC's rate that nothing declared.
void ReportHiddenSlews(const ClockRuns& runs, const std::vector<ClockTuple>& tuples,
                       const std::string& node, std::vector<ClockEvent>* events) {
  const auto tuple_at = [&](int64_t raw_ns) {
    const auto after = std::lower_bound(
        tuples.begin(), tuples.end(), raw_ns,
        [](const ClockTuple& tuple, int64_t at) { return tuple.raw_after_ns < at; });
    return after == tuples.end() ? tuples.back() : *after;
  };
  for (size_t i = 0; i < runs.torn.size(); ++i) {
    const Epoch& before = runs.epochs.epochs[i];
    const Epoch& after = runs.epochs.epochs[i + 1];
    if (runs.torn[i] || !SameRate(tuple_at(before.back().x), tuple_at(after.front().x))) continue;
    const auto rate = [](const BoundedMap::Knot& a, const BoundedMap::Knot& b) {
      return b.x > a.x ? RatePpb(Int128{b.est} - a.est - (b.x - a.x), b.x - a.x) : 0;
    };
    events->push_back(
        {ClockEvent::Kind::kSlew, node, before.back().x, after.front().x,
         absl::StrCat("MONOTONIC changed its rate by about ",
                      rate(after.front(), after.back()) - rate(before.front(), before.back()),
                      " ppb, which adjtimex does not tell")});
  }
}

void ReportTears(const ClockRuns& runs, const std::string& node, ClockEvent::Kind kind,
                 const char* what, std::vector<ClockEvent>* events) {
  for (size_t i = 0; i < runs.torn.size(); ++i) {
    if (!runs.torn[i]) continue;
    const BoundedMap::Knot& a = runs.epochs.epochs[i].back();
    const BoundedMap::Knot& b = runs.epochs.epochs[i + 1].front();
    const int64_t step = SaturatingAdd(SaturatingAdd(b.est, -a.est), -(b.x - a.x));
    events->push_back(
        {kind, node, a.x, b.x, absl::StrCat(what, " by about ", SignedDurationText(step))});
  }
}

bool Sane(int64_t reading, int64_t max) { return reading > -max && reading < max; }

std::vector<ClockTuple> Usable(const HostClocks& host) {
  std::vector<ClockTuple> tuples;
  for (const ClockTuple& tuple : host.tuples) {
    if (tuple.raw_after_ns < tuple.raw_before_ns) continue;
    const bool sane = Sane(tuple.raw_before_ns, kRawMax) && Sane(tuple.raw_after_ns, kRawMax) &&
                      Sane(tuple.monotonic_ns, kReadingMax) &&
                      Sane(tuple.boottime_ns, kReadingMax) && Sane(tuple.realtime_ns, kReadingMax);
    if (!sane) continue;
    if (!tuples.empty() && tuple.raw_before_ns <= tuples.back().raw_after_ns) continue;
    tuples.push_back(tuple);
  }
  return tuples;
}

std::vector<ClockTuple> WithReading(std::vector<ClockTuple> tuples, ReadingOf reading) {
  std::erase_if(tuples, [reading](const ClockTuple& tuple) { return tuple.*reading == 0; });
  return tuples;
}

}  // namespace

HostFit FitHostClocks(const HostClocks& host) {
  HostFit fit;
  const std::vector<ClockTuple> tuples = Usable(host);
  for (size_t i = 0; i + 1 < tuples.size(); ++i) {
    if (SameRate(tuples[i], tuples[i + 1])) continue;
    fit.events.push_back(
        {ClockEvent::Kind::kSlew, host.node, tuples[i].raw_after_ns, tuples[i + 1].raw_before_ns,
         absl::StrCat("MONOTONIC was told to change its rate by ",
                      DeclaredPpb(tuples[i + 1]) - DeclaredPpb(tuples[i]), " ppb (adjtimex)")});
  }
  ClockRuns monotonic =
      FitRuns(WithReading(tuples, &ClockTuple::monotonic_ns), &ClockTuple::monotonic_ns);
  ReportTears(monotonic, host.node, ClockEvent::Kind::kStep, "MONOTONIC jumped against RAW",
              &fit.events);
  ReportHiddenSlews(monotonic, tuples, host.node, &fit.events);
  fit.maps.monotonic = Join(std::move(monotonic));
  ClockRuns boottime =
      FitRuns(WithReading(tuples, &ClockTuple::boottime_ns), &ClockTuple::boottime_ns);
  ReportTears(boottime, host.node, ClockEvent::Kind::kSuspend,
              "the host was suspended: BOOTTIME went on", &fit.events);
  fit.maps.boottime = Join(std::move(boottime));
  const ClockRuns realtime =
      FitRuns(WithReading(tuples, &ClockTuple::realtime_ns), &ClockTuple::realtime_ns);
  ReportTears(realtime, host.node, ClockEvent::Kind::kStep, "the wall clock was set", &fit.events);
  fit.maps.realtime = JoinBetweenSteps(realtime);
  return fit;
}

Bounds RawOfRealtime(const std::vector<BoundedMap>& realtime, int64_t ns) {
  Bounds raw{kUnknownHi, 0, kUnknownLo};
  for (size_t i = 0; i < realtime.size(); ++i) {
    const auto& knots = realtime[i].knots();
    if (knots.empty()) continue;
    const Bounds here = realtime[i].Inverse(Bounds::Exactly(ns));
    // A stretch reaches until the next one begins.
    const bool too_early = i > 0 && here.hi < realtime[i - 1].knots().back().x;
    const bool too_late = i + 1 < realtime.size() && here.lo > realtime[i + 1].knots().front().x;
    if (too_early || too_late) continue;
    raw = {std::min(raw.lo, here.lo), here.est, std::max(raw.hi, here.hi)};
  }
  if (raw.lo <= raw.hi) return raw;
  // In a gap that a step jumped over: between the two stretches around it.
  for (size_t i = 0; i + 1 < realtime.size(); ++i) {
    const int64_t before = realtime[i].knots().back().x, after = realtime[i + 1].knots().front().x;
    if (ns >= realtime[i].knots().back().est && ns <= realtime[i + 1].knots().front().est) {
      return {before, before + (after - before) / 2, after};
    }
  }
  return {};
}

Bounds RealtimeOfRaw(const std::vector<BoundedMap>& realtime, int64_t ns) {
  if (realtime.empty()) return {};
  for (size_t i = 0; i < realtime.size(); ++i) {
    const auto& knots = realtime[i].knots();
    const bool last = i + 1 == realtime.size();
    if (ns >= knots.front().x && ns <= knots.back().x) return realtime[i].At(ns);
    if (last || ns < realtime[i + 1].knots().front().x) {
      return {kUnknownLo, realtime[i].At(ns).est, kUnknownHi};
    }
  }
  return {};
}

}  // namespace syncline::clocksync

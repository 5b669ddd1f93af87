#include "agent/probe/udp/stamper.h"

#include <algorithm>

namespace syncline::probe {

Stamper::Stamper(ProbeClock* clock, ProbeCounters* counters)
    : clock_(clock), counters_(counters), rate_ppb_max_(clock->WallRatePpbMax()) {}

std::optional<int64_t> Stamper::SentRawNs(int64_t realtime_ns, int64_t before_raw_ns) {
  const auto at = Map(realtime_ns);
  if (!at) return std::nullopt;
  // It left before it was handed over: a step that the kernel did not tell of, or another packet's
  // stamp.
  if (at->hi_raw_ns < before_raw_ns) {
    Contradicted();
    return std::nullopt;
  }
  return std::max(at->lo_raw_ns, before_raw_ns);
}

std::optional<int64_t> Stamper::ReceivedRawNs(int64_t realtime_ns, int64_t after_raw_ns) {
  const auto at = Map(realtime_ns);
  if (!at) return std::nullopt;
  if (at->lo_raw_ns > after_raw_ns) {
    Contradicted();
    return std::nullopt;
  }
  return std::min(at->hi_raw_ns, after_raw_ns);
}

std::optional<WallMap::Interval> Stamper::Map(int64_t realtime_ns) {
  // The discipline may have changed between the stamp and now: the faster of the two rates holds.
  const int64_t rate_ppb_max = clock_->WallRatePpbMax();
  map_.set_rate_ppb_max(std::max(rate_ppb_max_, rate_ppb_max));
  rate_ppb_max_ = rate_ppb_max;
  const auto at = map_.ToRaw(realtime_ns);
  // Asked after the readings were used, so that no step can hide between.
  if (clock_->WallWasSet()) {
    ++counters_->wall_steps;
    map_.Forget();
    return std::nullopt;
  }
  if (!at) Contradicted();
  return at;
}

void Stamper::Contradicted() {
  ++counters_->wall_contradictions;
  map_.Forget();
}

}  // namespace syncline::probe

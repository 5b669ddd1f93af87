// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/stamper.h"

#include <algorithm>

namespace syncline::probe {

Stamper::Stamper(ProbeClock* clock, ProbeCounters* counters)
    : clock_(clock), counters_(counters), rate_ppb_max_(clock->WallRatePpbMax()) {}

void Stamper::ReadWall() {
  // The narrower of two: a reading that was interrupted says little.
  for (int i = 0; i < 2; ++i) {
    const ClockReading reading = clock_->ReadWall();
    map_.Add(reading);
    last_read_raw_ns_ = reading.raw_after_ns;
  }
}

void Stamper::ReadWallIfOlderThan(int64_t age_ns, int64_t now_raw_ns) {
  if (now_raw_ns - last_read_raw_ns_ > age_ns) ReadWall();
}

void Stamper::ReadHardware(int clock) {
  const auto reading = clock_->ReadHardware(clock);
  if (!reading) return;
  StampMap& map = hardware_maps_[clock];
  map.Add(*reading);
  // Of the older readings each brings its own.
  map.set_rate_ppb_max(reading->rate_ppb_max);
}

std::optional<int64_t> Stamper::SentRawNs(int64_t realtime_ns, int64_t before_raw_ns) {
  const auto at = Map({.clock_ns = realtime_ns, .before_raw_ns = before_raw_ns}, before_raw_ns);
  if (!at) return std::nullopt;
  return std::max(at->lo_raw_ns, before_raw_ns);
}

std::optional<int64_t> Stamper::ReceivedRawNs(int64_t realtime_ns,
                                              std::optional<int64_t> before_raw_ns,
                                              int64_t after_raw_ns) {
  const auto at = Map({.clock_ns = realtime_ns}, before_raw_ns);
  if (!at) return std::nullopt;
  return std::min(at->hi_raw_ns, after_raw_ns);
}

std::optional<StampMap::Interval> Stamper::Map(StampMap::Stamp stamp,
                                               std::optional<int64_t> before_raw_ns) {
  stamp.fetched_raw_ns = clock_->RawNs();
  ReadWall();
  // The discipline may have changed between the stamp and now: the faster of the two rates holds.
  const int64_t rate_ppb_max = clock_->WallRatePpbMax();
  map_.set_rate_ppb_max(std::max(rate_ppb_max_, rate_ppb_max));
  rate_ppb_max_ = rate_ppb_max;
  const StampMap::Interval at = map_.ToRaw(stamp);
  // Asked after the readings were used, so that no step can hide between.
  if (clock_->WallWasSet()) {
    ++counters_->wall_steps;
    map_.Forget();
    return std::nullopt;
  }
  if (at.answer == StampMap::Answer::kNoReadings) {
    ++counters_->stamps_unbracketed;
    return std::nullopt;
  }
  // What the user read says the same, or the clock was set, or it is another packet's stamp.
  const bool possible = at.answer == StampMap::Answer::kKnown &&
                        at.lo_raw_ns <= stamp.fetched_raw_ns &&
                        at.hi_raw_ns >= before_raw_ns.value_or(at.hi_raw_ns);
  if (possible) return at;
  ++counters_->wall_contradictions;
  map_.Forget();
  return std::nullopt;
}

std::optional<int64_t> Stamper::SentRawNs(const HardwareStamp& stamp, int64_t before_raw_ns) {
  const auto at = MapHardware(stamp, before_raw_ns, before_raw_ns, clock_->RawNs());
  if (!at) return std::nullopt;
  return std::max(at->lo_raw_ns, before_raw_ns);
}

std::optional<int64_t> Stamper::ReceivedRawNs(const HardwareStamp& stamp,
                                              std::optional<int64_t> before_raw_ns,
                                              int64_t after_raw_ns) {
  const auto at = MapHardware(stamp, std::nullopt, before_raw_ns, after_raw_ns);
  if (!at) return std::nullopt;
  return std::min(at->hi_raw_ns, after_raw_ns);
}

std::optional<StampMap::Interval> Stamper::MapHardware(const HardwareStamp& stamp,
                                                       std::optional<int64_t> departed_after_raw_ns,
                                                       std::optional<int64_t> before_raw_ns,
                                                       int64_t after_raw_ns) {
  const StampMap::Stamp mapped{.clock_ns = stamp.ns,
                               .before_raw_ns = departed_after_raw_ns,
                               .fetched_raw_ns = clock_->RawNs()};
  ReadHardware(stamp.clock);
  StampMap& map = hardware_maps_[stamp.clock];
  const StampMap::Interval at = map.ToRaw(mapped);
  if (at.answer == StampMap::Answer::kNoReadings) {
    ++counters_->hardware_unbracketed;
    return std::nullopt;
  }
  const bool possible = at.answer == StampMap::Answer::kKnown && at.lo_raw_ns <= after_raw_ns &&
                        at.hi_raw_ns >= before_raw_ns.value_or(at.hi_raw_ns);
  if (possible) return at;
  ++counters_->hardware_contradictions;
  map.Forget();
  return std::nullopt;
}

}  // namespace syncline::probe

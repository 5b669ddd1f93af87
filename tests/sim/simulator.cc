// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/simulator.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace syncline::sim {
namespace {

constexpr int64_t kWalkStep = 10 * kMs;
constexpr int64_t kTupleEvery = 100 * kMs;

double Uniform(Random* random) { return std::uniform_real_distribution<>(0, 1)(*random); }

}  // namespace

Host::Host(const HostSpec& spec, int64_t length_ns, Random* random) : spec_(spec) {
  double rate = 0, sum = 0;
  const double step_s = static_cast<double>(kWalkStep) * 1e-9;
  for (int64_t t = 0; t <= length_ns + kWalkStep; t += kWalkStep) {
    walk_.push_back(sum);
    walk_rate_.push_back(rate);
    sum += rate * 1e-9 * static_cast<double>(kWalkStep);
    rate += (2 * Uniform(random) - 1) * spec_.raw.walk_ppb_per_s * step_s;
  }
}

double Host::RateError(int64_t t) const {
  const RawSpec& raw = spec_.raw;
  const auto ns = static_cast<double>(t);
  const double s = ns * 1e-9;
  double error = ns * raw.drift_ppm * 1e-6 + raw.ramp_ppb_per_s * 0.5 * s * s;
  if (raw.sine_ppm != 0) {
    const double omega = 2 * std::numbers::pi / raw.sine_period_s;
    error += raw.sine_ppm * 1e3 / omega *
             (std::cos(raw.sine_phase) - std::cos(omega * s + raw.sine_phase));
  }
  if (raw.new_rate_at_ns != 0 && t > raw.new_rate_at_ns) {
    error += static_cast<double>(t - raw.new_rate_at_ns) * raw.new_rate_ppm * 1e-6;
  }
  const size_t k =
      std::min<size_t>(static_cast<size_t>(std::max<int64_t>(t, 0) / kWalkStep), walk_.size() - 1);
  const double dt = ns - static_cast<double>(static_cast<int64_t>(k) * kWalkStep);
  return error + walk_[k] + walk_rate_[k] * 1e-9 * dt;
}

int64_t Host::Slept(int64_t t) const {
  int64_t slept = 0;
  for (const Step& suspend : spec_.suspends) {
    if (t > suspend.at_ns) slept += std::min(t - suspend.at_ns, suspend.by_ns);
  }
  return slept;
}

bool Host::Awake(int64_t t) const {
  return std::none_of(spec_.suspends.begin(), spec_.suspends.end(),
                      [t](const Step& s) { return t >= s.at_ns && t <= s.at_ns + s.by_ns; });
}

int64_t Host::Raw(int64_t t) const {
  const int64_t awake = t - Slept(t);
  int64_t reading = spec_.raw.offset_ns + awake + std::llround(RateError(awake));
  for (const Step& step : spec_.raw.steps) {
    if (t >= step.at_ns) reading += step.by_ns;
  }
  return reading;
}

double Host::Slewed(int64_t t) const {
  double sum = 0;
  for (size_t i = 0; i < spec_.slews.size(); ++i) {
    const int64_t end = i + 1 < spec_.slews.size() ? std::min(t, spec_.slews[i + 1].from_ns) : t;
    if (end > spec_.slews[i].from_ns) {
      sum += static_cast<double>(end - spec_.slews[i].from_ns) * spec_.slews[i].ppm * 1e-6;
    }
  }
  return sum;
}

int64_t Host::Monotonic(int64_t t) const {
  return Raw(t) + spec_.monotonic_ahead_ns + std::llround(Slewed(t));
}

int64_t Host::Boottime(int64_t t) const { return Monotonic(t) + Slept(t); }

int64_t Host::Realtime(int64_t t) const {
  int64_t reading = 1'700'000'000 * kSecond + Boottime(t) - spec_.raw.offset_ns -
                    spec_.monotonic_ahead_ns + spec_.wall_error_ns;
  for (const Step& step : spec_.wall_steps) {
    if (t >= step.at_ns) reading += step.by_ns;
  }
  return reading;
}

int64_t Host::Read(ClockKind kind, int64_t t) const {
  switch (kind) {
    case ClockKind::kMonotonic:
      return Monotonic(t);
    case ClockKind::kBoottime:
      return Boottime(t);
    case ClockKind::kRealtime:
      return Realtime(t);
    default:
      return Raw(t);
  }
}

clocksync::ClockTuple Host::Tuple(int64_t t, Random* random) const {
  // Mostly tens of ns, now and then a preemption between two of the readings.
  const auto pause = [&] {
    return Uniform(random) < 0.01 ? static_cast<int64_t>(50'000 * Uniform(random))
                                  : 10 + static_cast<int64_t>(20 * Uniform(random));
  };
  clocksync::ClockTuple tuple;
  tuple.raw_before_ns = Raw(t);
  tuple.monotonic_ns = Monotonic(t += pause());
  tuple.realtime_ns = Realtime(t += pause());
  tuple.boottime_ns = Boottime(t += pause());
  tuple.raw_after_ns = Raw(t += pause());
  tuple.adjtimex_tick_us = 10'000;
  for (const Slew& slew : spec_.slews) {
    if (t >= slew.from_ns && slew.declared) {
      tuple.adjtimex_tick_us = 10'000 + static_cast<int32_t>(slew.ppm / 100);
      tuple.adjtimex_freq =
          static_cast<int64_t>((slew.ppm - 100.0 * (tuple.adjtimex_tick_us - 10'000)) * 65536);
    }
  }
  return tuple;
}

int64_t DrawDelay(const DelaySpec& spec, int64_t t, Random* random) {
  const bool changed = spec.change_at_ns != 0 && t >= spec.change_at_ns;
  const int64_t least = changed ? spec.min_after_ns : spec.min_ns;
  const auto scale = static_cast<double>(spec.jitter_ns);
  const double u = std::max(Uniform(random), 1e-12);
  double extra = 0;
  switch (spec.jitter) {
    case Jitter::kNone:
      break;
    case Jitter::kUniform:
      extra = scale * u;
      break;
    case Jitter::kExponential:
      extra = -scale * std::log(u);
      break;
    case Jitter::kHeavyTail:  // Pareto, infinite variance
      extra = std::min(scale * (std::pow(u, -1 / 1.5) - 1), 1e9);
      break;
    case Jitter::kBursts:  // congested every other second
      extra = -scale * std::log(u) * (t / kSecond % 2 == 0 ? 1 : 50);
      break;
  }
  if (spec.swing_ns != 0) {
    const double turn = static_cast<double>(t) / static_cast<double>(spec.swing_period_ns);
    extra += static_cast<double>(spec.swing_ns) / 2 * (1 - std::cos(2 * std::numbers::pi * turn));
  }
  return least + static_cast<int64_t>(extra);
}

namespace {

// One exchange, from `at` on; the sample is valid if the flight arrived.
struct Exchange {
  Flight flight;
  clocksync::ProbeSample sample;
  int64_t ends_ns = 0;
};

Exchange Send(const Host& local, const Host& remote, const LinkSpec& link, int64_t at,
              Random* random) {
  const int64_t arrives = at + DrawDelay(link.out, at, random);
  const int64_t answers = arrives + 2'000 + static_cast<int64_t>(Uniform(random) * 3'000);
  const int64_t back = answers + DrawDelay(link.back, answers, random);
  const bool quiet = link.quiet_to_ns != 0 && back > link.quiet_from_ns && at < link.quiet_to_ns;
  const bool asleep =
      !local.Awake(at) || !local.Awake(back) || !remote.Awake(arrives) || !remote.Awake(answers);
  Exchange exchange{.flight = {at, arrives - at, back - answers},
                    .sample = {local.Raw(at), remote.Raw(arrives) + link.remote_lie_ns,
                               remote.Raw(answers) + link.remote_lie_ns, local.Raw(back),
                               clocksync::StampSource::kUserBlocking},
                    .ends_ns = back};
  const bool lost = Uniform(random) < link.loss;
  const bool mute = link.mute_from_ns != 0 && at >= link.mute_from_ns;
  if (Uniform(random) < link.loss_out_only || mute) {
    exchange.sample.t3_remote_ns = exchange.sample.t4_local_ns = 0;
  }
  if (Uniform(random) < link.false_stamp) exchange.sample.t3_remote_ns += 5 * kMs;
  exchange.flight.arrived = !quiet && !asleep && !lost;
  return exchange;
}

clocksync::Edge Probe(const std::vector<Host>& hosts, const LinkSpec& link, int64_t length_ns,
                      Random* random, std::vector<Flight>* flights) {
  const Host& local = hosts[link.local];
  const Host& remote = hosts[link.remote];
  clocksync::Edge edge{.local = local.spec().name, .remote = remote.spec().name};
  const int64_t end = link.end_ns != 0 ? link.end_ns : length_ns;
  int exchanges = 0;
  for (int64_t t = link.begin_ns; t < end && exchanges < link.exchanges_max; t += link.every_ns) {
    int64_t at = t + static_cast<int64_t>(Uniform(random) * 1e6);
    for (int i = 0; i < link.burst && exchanges < link.exchanges_max; ++i, ++exchanges) {
      const Exchange exchange = Send(local, remote, link, at, random);
      flights->push_back(exchange.flight);
      at = exchange.ends_ns + 20'000;
      if (!exchange.flight.arrived) continue;
      edge.samples.push_back(exchange.sample);
      if (Uniform(random) < link.duplicates) edge.samples.push_back(exchange.sample);
      const size_t count = edge.samples.size();
      if (count > 1 && Uniform(random) < link.swapped) {
        std::swap(edge.samples[count - 1], edge.samples[count - 2]);
      }
    }
  }
  return edge;
}

}  // namespace

World Simulate(const std::vector<HostSpec>& hosts, const std::vector<LinkSpec>& links,
               int64_t length_ns, Random* random) {
  World world;
  for (const HostSpec& spec : hosts) world.hosts.emplace_back(spec, length_ns, random);
  for (const Host& host : world.hosts) {
    clocksync::HostClocks clocks{.node = host.spec().name};
    if (host.spec().logs_tuples) {
      for (int64_t t = 0; t < length_ns; t += kTupleEvery) {
        if (host.Awake(t) && host.Awake(t + kMs)) clocks.tuples.push_back(host.Tuple(t, random));
      }
    }
    world.tuples.push_back(std::move(clocks));
  }
  for (const LinkSpec& link : links) {
    std::vector<Flight> flights;
    world.edges.push_back(Probe(world.hosts, link, length_ns, random, &flights));
    world.flights.push_back(std::move(flights));
  }
  return world;
}

}  // namespace syncline::sim

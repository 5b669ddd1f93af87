// SPDX-License-Identifier: Apache-2.0
// A small world with exact truth: clocks that drift, wander, step and sleep; networks that delay
// and lose.
//
// True time is int64 ns from 0. Everything random comes from one seeded generator, so a scenario
// and a seed name one world. Nothing here knows how the clock model works.
#ifndef SYNCLINE_TESTS_SIM_SIMULATOR_H_
#define SYNCLINE_TESTS_SIM_SIMULATOR_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "clocksync/samples.h"
#include "common/time.h"

namespace syncline::sim {

inline constexpr int64_t kMs = 1'000'000;
inline constexpr int64_t kSecond = 1'000'000'000;

using Random = std::mt19937_64;

// A jump of a clock at a true instant: it reads `by_ns` more (or less) from then on.
struct Step {
  int64_t at_ns = 0;
  int64_t by_ns = 0;
};

// CLOCK_MONOTONIC_RAW of one host.
struct RawSpec {
  int64_t offset_ns = 0;  // reading at true time 0
  double drift_ppm = 0;
  // Changes of rate; their sum must keep |second derivative| within the model's assumption, unless
  // the scenario is about breaking it.
  double sine_ppm = 0, sine_period_s = 300, sine_phase = 0;
  double ramp_ppb_per_s = 0;
  double walk_ppb_per_s = 0;  // random walk of the rate, at most this steep
  std::vector<Step> steps;
  int64_t new_rate_at_ns = 0;  // from then on this much faster; 0: never
  double new_rate_ppm = 0;
};

// How MONOTONIC is disciplined: pieces of constant rate against RAW, from a true instant on.
struct Slew {
  int64_t from_ns = 0;
  double ppm = 0;
  bool declared = true;  // visible in adjtimex
};

struct HostSpec {
  std::string name;
  RawSpec raw;
  int64_t monotonic_ahead_ns = 0;  // MONOTONIC - RAW at true time 0
  std::vector<Slew> slews;
  int64_t wall_error_ns = 0;  // of REALTIME
  std::vector<Step> wall_steps;
  std::vector<Step> suspends;  // at_ns, by_ns: RAW and MONOTONIC stand still for by_ns
  bool logs_tuples = true;
};

enum class Jitter { kNone, kUniform, kExponential, kHeavyTail, kBursts };

// One direction of a path.
struct DelaySpec {
  int64_t min_ns = 20'000;
  int64_t jitter_ns = 5'000;  // scale
  Jitter jitter = Jitter::kExponential;
  // From this instant on the minimum is another (a route changed); 0: never.
  int64_t change_at_ns = 0;
  int64_t min_after_ns = 0;
  // On top: a slow swing between 0 and this, as of congestion that comes and goes.
  int64_t swing_ns = 0;
  int64_t swing_period_ns = 5 * kSecond;
};

struct LinkSpec {
  uint32_t local = 0;  // index of the host
  uint32_t remote = 0;
  DelaySpec out;  // local -> remote
  DelaySpec back;
  double loss = 0;
  double loss_out_only = 0;  // the request arrives, the answer never does: t4 is missing
  int64_t every_ns = 100 * kMs;
  int burst = 4;  // exchanges each time
  int64_t begin_ns = 0;
  int64_t end_ns = 0;         // 0: until the end
  int64_t quiet_from_ns = 0;  // nothing arrives in between
  int64_t quiet_to_ns = 0;
  int64_t mute_from_ns = 0;  // from then on requests arrive, answers do not; 0: never
  int exchanges_max = 1 << 30;
  double false_stamp = 0;  // share of samples with a t3 that is far too late
  double duplicates = 0;
  double swapped = 0;         // share of samples that are handed over before the one taken earlier
  int64_t remote_lie_ns = 0;  // both remote stamps are this much too late: another clock's
};

// A host in the world: all its clocks as functions of true time.
class Host {
 public:
  Host(const HostSpec& spec, int64_t length_ns, Random* random);
  const HostSpec& spec() const { return spec_; }
  int64_t Raw(int64_t t) const;
  int64_t Monotonic(int64_t t) const;
  int64_t Boottime(int64_t t) const;
  int64_t Realtime(int64_t t) const;
  int64_t Read(ClockKind kind, int64_t t) const;
  // The tuple and adjtimex that an agent would log at t.
  clocksync::ClockTuple Tuple(int64_t t, Random* random) const;
  // The true instant is never inside a suspend.
  bool Awake(int64_t t) const;

 private:
  double RateError(int64_t t) const;  // integral of the rate error until t, ns
  double Slewed(int64_t t) const;     // MONOTONIC - RAW, less its beginning
  int64_t Slept(int64_t t) const;

  HostSpec spec_;
  std::vector<double> walk_;  // integral of the walk's rate, one value per kWalkStep
  std::vector<double> walk_rate_;
};

// The truth about an exchange whose request was sent.
struct Flight {
  int64_t sent_ns = 0;  // true time
  int64_t out_ns = 0;
  int64_t back_ns = 0;
  bool arrived = false;  // there is a sample of it
};

struct World {
  std::vector<Host> hosts;
  std::vector<clocksync::HostClocks> tuples;
  std::vector<clocksync::Edge> edges;
  std::vector<std::vector<Flight>> flights;  // per edge
};

// `hub_names`: hosts that take part in probing but are no nodes are named "coordinator" by the
// caller.
World Simulate(const std::vector<HostSpec>& hosts, const std::vector<LinkSpec>& links,
               int64_t length_ns, Random* random);

int64_t DrawDelay(const DelaySpec& spec, int64_t t, Random* random);

}  // namespace syncline::sim

#endif  // SYNCLINE_TESTS_SIM_SIMULATOR_H_

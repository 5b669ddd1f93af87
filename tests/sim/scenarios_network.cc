// SPDX-License-Identifier: Apache-2.0
// Scenarios of the network and of the sampling: delays, jitter, routes, losses, silence.
#include <cstdlib>

#include "tests/sim/scenario_kit.h"

namespace syncline::sim {
namespace {

using clocksync::ClockEvent;

int64_t MedianTrip(const World& w) {
  const std::vector<int64_t> trips = RoundTrips(w, 0);
  return trips.empty() ? 0 : trips[trips.size() / 2];
}

void AddDelays(std::vector<NamedScenario>* all) {
  Add(all, "quiet_pair", [](Random* r) {
    Scenario s = Pair(r);
    s.occurred = [](const World& w) { return SamplesIn(w, 0) > 400; };
    return s;
  });
  Add(all, "loopback", [](Random* r) {
    Scenario s = Pair(r);
    s.links = {Link(0, 1, 90, 15)};
    s.bound_median_max_ns = 140;
    s.error_median_max_ns = 40;
    s.occurred = [](const World& w) { return MedianTrip(w) < 300; };
    return s;
  });
  Add(all, "hardware_stamps_in_a_rack", [](Random* r) {
    Scenario s = Pair(r);
    s.links = {Link(0, 1, 700, 60)};
    s.bound_median_max_ns = 900;
    s.error_median_max_ns = 100;
    s.occurred = [](const World& w) { return MedianTrip(w) > 1'400 && MedianTrip(w) < 2'000; };
    return s;
  });
  Add(all, "no_jitter", [](Random* r) {
    Scenario s = Pair(r);
    s.links = {Link(0, 1, 20'000, 0, Jitter::kNone)};
    s.bound_median_max_ns = 20'200;
    s.error_median_max_ns = 100;
    s.occurred = [](const World& w) {
      return RoundTrips(w, 0).back() - RoundTrips(w, 0).front() < 10;
    };
    return s;
  });
  Add(all, "uniform_jitter", [](Random* r) {
    Scenario s = Pair(r);
    s.links = {Link(0, 1, 20'000, 40'000, Jitter::kUniform)};
    s.bound_median_max_ns = 30'000;
    s.occurred = [](const World& w) { return MedianTrip(w) > 60'000; };
    return s;
  });
}

void AddLongDelays(std::vector<NamedScenario>* all) {
  // A relay of 50 us with 20 us of exponential jitter each way, and the same with 60/40.
  Add(all, "relay_50_us", [](Random* r) {
    Scenario s = Pair(r);
    s.links = {Link(0, 1, 50'000, 20'000)};
    s.links[0].burst = 16;
    s.bound_median_max_ns = 51'000;
    s.error_median_max_ns = 1'000;
    s.occurred = [](const World& w) { return MedianTrip(w) > 115'000; };
    return s;
  });
  Add(all, "heavy_tail", [](Random* r) {
    Scenario s = Pair(r);
    s.links = {Link(0, 1, 20'000, 10'000, Jitter::kHeavyTail)};
    s.bound_median_max_ns = 30'000;
    s.occurred = [](const World& w) { return RoundTrips(w, 0).back() > 5 * MedianTrip(w); };
    return s;
  });
  Add(all, "bursts_of_congestion", [](Random* r) {
    Scenario s = Pair(r);
    s.links = {Link(0, 1, 20'000, 5'000, Jitter::kBursts)};
    s.bound_median_max_ns = 30'000;
    s.occurred = [](const World& w) { return RoundTrips(w, 0).back() > 500'000; };
    return s;
  });
  Add(all, "wide_area", [](Random* r) {
    Scenario s = Pair(r);
    s.links = {Link(0, 1, 20 * kMs, 2 * kMs)};
    s.bound_median_max_ns = 22 * kMs;
    s.error_median_max_ns = 2 * kMs;
    s.occurred = [](const World& w) { return MedianTrip(w) > 40 * kMs; };
    return s;
  });
  Add(all, "over_a_satellite", [](Random* r) {
    Scenario s = Pair(r);
    s.links = {Link(0, 1, 280 * kMs, 10 * kMs)};
    s.bound_median_max_ns = 300 * kMs;
    s.error_median_max_ns = 10 * kMs;
    s.occurred = [](const World& w) { return MedianTrip(w) > 560 * kMs; };
    return s;
  });
}

void AddAsymmetry(std::vector<NamedScenario>* all) {
  Add(all, "asymmetric_60_40", [](Random* r) {
    Scenario s = Pair(r);
    s.links[0].out.min_ns = 60'000;
    s.links[0].back.min_ns = 40'000;
    s.bound_median_max_ns = 60'000;
    s.error_median_max_ns = 14'000;
    s.occurred = [](const World& w) { return ShortestOut(w, 0) - ShortestBack(w, 0) > 18'000; };
    return s;
  });
  // The truth lies at the very end of the interval: halving it must be noticed.
  for (bool out : {true, false}) {
    Add(all, out ? "all_delay_out" : "all_delay_back", [out](Random* r) {
      Scenario s = Pair(r);
      s.links[0].out = s.links[0].back = {0, 0, Jitter::kNone};
      (out ? s.links[0].out : s.links[0].back) = {50'000, 2'000, Jitter::kExponential};
      s.bound_median_max_ns = 27'000;
      s.error_median_max_ns = 27'000;
      s.occurred = [out](const World& w) {
        return out ? ShortestOut(w, 0) >= 50'000 && ShortestBack(w, 0) == 0
                   : ShortestBack(w, 0) >= 50'000 && ShortestOut(w, 0) == 0;
      };
      return s;
    });
  }
  Add(all, "asymmetry_changes_sides", [](Random* r) {
    Scenario s = Pair(r);
    s.links[0].out = {60'000, 3'000, Jitter::kExponential, kSecond * 6, 20'000};
    s.links[0].back = {20'000, 3'000, Jitter::kExponential, kSecond * 6, 60'000};
    s.bound_median_max_ns = 60'000;
    s.error_median_max_ns = 30'000;
    s.occurred = [](const World& w) {
      const auto more_out = [&](int64_t from, int64_t to) {
        return ShortestOut(w, 0, from, to) - ShortestBack(w, 0, from, to);
      };
      return more_out(0, 6 * kSecond) > 35'000 && more_out(6 * kSecond, kUnknownHi) < -35'000;
    };
    return s;
  });
  Add(all, "congestion_that_comes_and_goes_one_way", [](Random* r) {
    Scenario s = Pair(r);
    s.links[0].out.swing_ns = 150'000;
    s.bound_median_max_ns = 100'000;
    s.error_median_max_ns = 80'000;
    s.occurred = [](const World& w) {
      return ShortestOut(w, 0, 2'400 * kMs, 2'600 * kMs) > 150'000 &&
             ShortestOut(w, 0, 0, 200 * kMs) < 40'000;
    };
    return s;
  });
}

void AddRoutes(std::vector<NamedScenario>* all) {
  Add(all, "route_change", [](Random* r) {
    Scenario s = Pair(r);
    for (DelaySpec* d : {&s.links[0].out, &s.links[0].back}) {
      d->change_at_ns = 6 * kSecond;
      d->min_after_ns = 90'000;
    }
    s.bound_median_max_ns = 100'000;
    s.error_median_max_ns = 30'000;
    s.occurred = [](const World& w) {
      return ShortestOut(w, 0, 0, 6 * kSecond) < 30'000 && ShortestOut(w, 0, 6 * kSecond) > 80'000;
    };
    return s;
  });
  Add(all, "route_change_to_a_shorter_one", [](Random* r) {
    Scenario s = Pair(r);
    for (DelaySpec* d : {&s.links[0].out, &s.links[0].back}) {
      d->min_ns = 90'000;
      d->change_at_ns = 6 * kSecond;
      d->min_after_ns = 20'000;
    }
    s.bound_median_max_ns = 100'000;
    s.error_median_max_ns = 30'000;
    s.occurred = [](const World& w) {
      return ShortestOut(w, 0, 0, 6 * kSecond) > 80'000 && ShortestOut(w, 0, 6 * kSecond) < 30'000;
    };
    return s;
  });
  Add(all, "route_change_one_way", [](Random* r) {
    Scenario s = Pair(r);
    s.links[0].out.change_at_ns = 6 * kSecond;
    s.links[0].out.min_after_ns = 90'000;
    s.bound_median_max_ns = 60'000;
    s.error_median_max_ns = 60'000;
    s.occurred = [](const World& w) {
      return ShortestOut(w, 0, 6 * kSecond) > 80'000 && ShortestBack(w, 0, 6 * kSecond) < 30'000;
    };
    return s;
  });
}

void AddLosses(std::vector<NamedScenario>* all) {
  Add(all, "a_third_is_lost", [](Random* r) {
    Scenario s = Pair(r);
    s.links[0].loss = 0.33;
    s.occurred = [](const World& w) {
      return w.edges[0].samples.size() < w.flights[0].size() * 8 / 10;
    };
    return s;
  });
  Add(all, "nearly_all_is_lost", [](Random* r) {
    Scenario s = Pair(r);
    s.links[0].loss = 0.95;
    s.bound_median_max_ns = 60'000;
    s.error_median_max_ns = 30'000;
    s.occurred = [](const World& w) {
      return w.edges[0].samples.size() < w.flights[0].size() / 8 && w.edges[0].samples.size() > 4;
    };
    return s;
  });
  Add(all, "silence_of_five_seconds", [](Random* r) {
    Scenario s = Pair(r);
    s.links[0].quiet_from_ns = 4 * kSecond;
    s.links[0].quiet_to_ns = 9 * kSecond;
    s.occurred = [](const World& w) { return HasGap(w, 0, 4 * kSecond); };
    return s;
  });
  Add(all, "answers_mostly_lost", [](Random* r) {
    Scenario s = Pair(r);
    s.links[0].loss_out_only = 0.9;
    s.bound_median_max_ns = 35'000;
    s.error_median_max_ns = 12'000;
    s.occurred = [](const World& w) {
      return RoundTrips(w, 0).size() < w.edges[0].samples.size() / 5;
    };
    return s;
  });
  Add(all, "one_way_only", [](Random* r) {
    Scenario s = Pair(r);
    s.links[0].loss_out_only = 1;
    s.bound_median_max_ns = 0;
    s.error_median_max_ns = 0;
    s.occurred = [](const World& w) {
      return !w.edges[0].samples.empty() && RoundTrips(w, 0).empty();
    };
    return s;
  });
  Add(all, "answers_stop_half_way", [](Random* r) {
    Scenario s = Pair(r);
    s.links[0].mute_from_ns = 6 * kSecond;
    s.bound_median_max_ns = 200'000;
    s.error_median_max_ns = 200'000;
    s.occurred = [](const World& w) {
      return w.edges[0].samples.back().t4_local_ns == 0 && RoundTrips(w, 0).size() > 100;
    };
    return s;
  });
}

void AddDisorder(std::vector<NamedScenario>* all) {
  Add(all, "duplicates", [](Random* r) {
    Scenario s = Pair(r);
    s.links[0].duplicates = 0.5;
    s.occurred = [](const World& w) {
      return w.edges[0].samples.size() > w.flights[0].size() * 5 / 4;
    };
    return s;
  });
  Add(all, "reordered", [](Random* r) {
    Scenario s = Pair(r);
    s.links[0].swapped = 0.4;
    s.occurred = [](const World& w) {
      int back = 0;
      for (size_t i = 1; i < w.edges[0].samples.size(); ++i) {
        back += w.edges[0].samples[i].t1_local_ns < w.edges[0].samples[i - 1].t1_local_ns ? 1 : 0;
      }
      return back > 50;
    };
    return s;
  });
  Add(all, "reordered_duplicated_lost_and_heavy_tailed", [](Random* r) {
    Scenario s = Pair(r);
    s.links = {Link(0, 1, 20'000, 10'000, Jitter::kHeavyTail)};
    s.links[0].swapped = s.links[0].duplicates = s.links[0].loss = 0.3;
    s.bound_median_max_ns = 35'000;
    s.occurred = [](const World& w) { return RoundTrips(w, 0).back() > 5 * MedianTrip(w); };
    return s;
  });
}

void AddRhythms(std::vector<NamedScenario>* all) {
  Add(all, "once_a_second", [](Random* r) {
    Scenario s = Pair(r);
    s.length_ns = 30 * kSecond;
    s.links[0].every_ns = kSecond;
    s.links[0].burst = 8;
    s.occurred = [](const World& w) { return HasGap(w, 0, 900 * kMs) && SamplesIn(w, 0) == 240; };
    return s;
  });
  Add(all, "every_five_seconds", [](Random* r) {
    Scenario s = Pair(r);
    s.length_ns = 60 * kSecond;
    s.links[0].every_ns = 5 * kSecond;
    s.links[0].burst = 16;
    s.occurred = [](const World& w) { return HasGap(w, 0, 4'900 * kMs); };
    return s;
  });
  Add(all, "at_the_ends_only", [](Random* r) {
    Scenario s = Pair(r);
    s.length_ns = 60 * kSecond;
    s.links[0].quiet_from_ns = 2 * kSecond;
    s.links[0].quiet_to_ns = 58 * kSecond;
    s.bound_median_max_ns = 100'000;
    s.error_median_max_ns = 50'000;
    s.occurred = [](const World& w) { return HasGap(w, 0, 55 * kSecond); };
    return s;
  });
  Add(all, "shorter_than_a_second", [](Random* r) {
    Scenario s = Pair(r);
    s.length_ns = 1'400 * kMs;
    s.links[0].every_ns = 50 * kMs;
    s.links[0].end_ns = 700 * kMs;
    s.occurred = [](const World& w) { return SamplesIn(w, 0) > 20; };
    return s;
  });
  Add(all, "five_minutes", [](Random* r) {
    Scenario s = Pair(r);
    s.length_ns = 300 * kSecond;
    s.links[0].every_ns = kSecond;
    s.occurred = [](const World& w) { return SamplesIn(w, 0) == 1200; };
    return s;
  });
}

void AddFewSamples(std::vector<NamedScenario>* all) {
  for (const auto& [name, count] : {std::pair{"three_samples", 3}, std::pair{"two_samples", 2},
                                    std::pair{"one_sample", 1}, std::pair{"no_samples", 0}}) {
    Add(all, name, [count = count](Random* r) {
      Scenario s = Pair(r);
      s.links[0].exchanges_max = count;
      s.bound_median_max_ns = count == 0 ? 0 : 3 * kMs;
      s.error_median_max_ns = count == 0 ? 0 : 2 * kMs;
      if (count < 3) s.reported = {ClockEvent::Kind::kNoSamples};
      s.occurred = [count](const World& w) { return SamplesIn(w, 0) == size_t(count); };
      return s;
    });
  }
  Add(all, "late_joiner", [](Random* r) {
    Scenario s = Star(3, r);
    s.links[2].begin_ns = 8 * kSecond;
    s.occurred = [](const World& w) {
      return SamplesIn(w, 2, 0, 8 * kSecond) == 0 && SamplesIn(w, 2) > 100;
    };
    return s;
  });
  Add(all, "one_leaves_early", [](Random* r) {
    Scenario s = Star(3, r);
    s.links[1].end_ns = 6 * kSecond;
    s.occurred = [](const World& w) {
      return SamplesIn(w, 1, 6 * kSecond) == 0 && SamplesIn(w, 1) > 100;
    };
    return s;
  });
}

}  // namespace

void AddNetworkScenarios(std::vector<NamedScenario>* all) {
  AddDelays(all);
  AddLongDelays(all);
  AddAsymmetry(all);
  AddRoutes(all);
  AddLosses(all);
  AddDisorder(all);
  AddRhythms(all);
  AddFewSamples(all);
}

}  // namespace syncline::sim

// SPDX-License-Identifier: Apache-2.0
// Evaluation of a model, and the building of a large one: 1,000 nodes probed by 8 hubs for 60 s.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>
#include <string>

#include "clocksync/builder.h"

namespace syncline::clocksync {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kOneWayMinNs = 20'000;

struct Fleet {
  BuildInput input;
  std::vector<int64_t> ahead;  // of each node's RAW
  std::vector<double> drift;
};

// `hubs` of the nodes probe all others `rate` times a second, and of the others each the next.
Fleet MakeFleet(uint32_t nodes, uint32_t hubs, int64_t seconds, int rate) {
  std::mt19937_64 random(1);
  std::exponential_distribution<> jitter(1.0 / 6'000);
  Fleet fleet;
  for (uint32_t i = 0; i < nodes; ++i) {
    fleet.input.nodes.push_back("node-" + std::to_string(i));
    fleet.ahead.push_back(static_cast<int64_t>(random() % 1'000'000'000'000));
    fleet.drift.push_back(static_cast<double>(random() % 80) * 1e-6 - 40e-6);
  }
  const auto read = [&](uint32_t node, int64_t t) {
    return fleet.ahead[node] + t + static_cast<int64_t>(fleet.drift[node] * static_cast<double>(t));
  };
  const auto add = [&](uint32_t local, uint32_t remote) {
    Edge edge{.local = fleet.input.nodes[local], .remote = fleet.input.nodes[remote]};
    for (int64_t i = 0; i < seconds * rate; ++i) {
      const int64_t t1 = i * kSecond / rate + static_cast<int64_t>(random() % 1'000'000);
      const int64_t t2 = t1 + kOneWayMinNs + static_cast<int64_t>(jitter(random));
      const int64_t t4 = t2 + 5'000 + kOneWayMinNs + static_cast<int64_t>(jitter(random));
      edge.samples.push_back({read(local, t1), read(remote, t2), read(remote, t2 + 5'000),
                              read(local, t4), StampSource::kKernel});
    }
    fleet.input.edges.push_back(std::move(edge));
  };
  for (uint32_t hub = nodes - hubs; hub < nodes; ++hub) {
    for (uint32_t leaf = 0; leaf < hub; ++leaf) add(hub, leaf);
  }
  for (uint32_t leaf = 0; leaf + 1 < nodes - hubs; ++leaf) add(leaf, leaf + 1);
  return fleet;
}

BuildResult BuildFleet(const Fleet& fleet) {
  return BuildModel(fleet.input, {.reference = "node-0", .zero_reference_raw_ns = fleet.ahead[0]})
      .value();
}

void BM_Build(benchmark::State& state) {
  const Fleet fleet = MakeFleet(static_cast<uint32_t>(state.range(0)),
                                static_cast<uint32_t>(state.range(1)), 60, 8);
  for (auto _ : state) {
    BuildResult result = BuildFleet(fleet);
    benchmark::DoNotOptimize(result);
    state.PauseTiming();
    // The interval of any pair, in one-way minima.
    std::mt19937_64 random(2);
    std::vector<double> bounds;
    for (int i = 0; i < 200; ++i) {
      const auto a = static_cast<uint32_t>(random() % fleet.ahead.size());
      const auto b = static_cast<uint32_t>(random() % fleet.ahead.size());
      if (a == b) continue;
      const auto d = result.model.Difference({{a, ClockKind::kRaw}, fleet.ahead[a] + 30 * kSecond},
                                             {{b, ClockKind::kRaw}, fleet.ahead[b] + 30 * kSecond});
      bounds.push_back(static_cast<double>(d.hi_ns - d.lo_ns) / 2 / kOneWayMinNs);
    }
    std::sort(bounds.begin(), bounds.end());
    state.counters["pair_bound_p50_minima"] = bounds[bounds.size() / 2];
    state.counters["pair_bound_p99_minima"] = bounds[bounds.size() * 99 / 100];
    state.ResumeTiming();
  }
}
BENCHMARK(BM_Build)->Args({2, 1})->Args({64, 2})->Args({1000, 8})->Unit(benchmark::kMillisecond);

void BM_MapperInSequence(benchmark::State& state) {
  const Fleet fleet = MakeFleet(2, 1, 60, 8);
  const BuildResult result = BuildFleet(fleet);
  auto mapper = result.model.MapperFor({1, ClockKind::kRaw});
  int64_t t = fleet.ahead[1];
  for (auto _ : state) {
    benchmark::DoNotOptimize(mapper.At(t));
    t += 137;
  }
}
BENCHMARK(BM_MapperInSequence);

void BM_Locate(benchmark::State& state) {
  const Fleet fleet = MakeFleet(2, 1, 60, 8);
  const BuildResult result = BuildFleet(fleet);
  int64_t t = fleet.ahead[1];
  for (auto _ : state) {
    benchmark::DoNotOptimize(result.model.Locate({{1, ClockKind::kRaw}, t}));
    t += 137;
  }
}
BENCHMARK(BM_Locate);

void BM_Difference(benchmark::State& state) {
  const Fleet fleet = MakeFleet(3, 1, 60, 8);
  const BuildResult result = BuildFleet(fleet);
  int64_t t = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(result.model.Difference({{0, ClockKind::kRaw}, fleet.ahead[0] + t},
                                                     {{1, ClockKind::kRaw}, fleet.ahead[1] + t}));
    t += 137;
  }
}
BENCHMARK(BM_Difference);

}  // namespace
}  // namespace syncline::clocksync

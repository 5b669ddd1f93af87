// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/node_connections.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/network.h"
#include "coordinator/merge/growth.h"
#include "coordinator/merge/node_file.h"

namespace syncline::merge {
namespace {

using evidence::ConnectionSample;
using evidence::ConnectionSamples;
using evidence::ConnectionValue;

constexpr size_t kDrawnMost = 16;  // connections of a node
constexpr double kNsPerSecond = 1e9;
constexpr double kBytesPerMb = 1e6;

// By connection.
std::vector<std::vector<const ConnectionSample*>> ByConnection(const ConnectionSamples& samples) {
  std::vector<std::vector<const ConnectionSample*>> all(samples.connections.size());
  for (const ConnectionSample& sample : samples.samples) {
    all[sample.connection].push_back(&sample);
  }
  return all;
}

int64_t Grown(const std::vector<const ConnectionSample*>& readings, ConnectionValue value) {
  if (readings.size() < 2) return 0;
  const int64_t begin = readings.front()->values.Get(value).value_or(0);
  return readings.back()->values.Get(value).value_or(0) - begin;
}

void Draw(const std::string& name, const std::vector<const ConnectionSample*>& readings,
          ConnectionValue value, std::vector<timeline::CounterSeries>* all) {
  Growth growth(kNsPerSecond / kBytesPerMb);
  for (const ConnectionSample* reading : readings) {
    const auto amount = reading->values.Get(value);
    if (amount.has_value()) growth.Add(*reading, *amount);
  }
  timeline::CounterSeries series;
  series.name = name;
  series.unit = "MB/s";
  growth.Finish(std::move(series), all);
}

}  // namespace

std::vector<timeline::CounterSeries> ConnectionCounters(const ConnectionSamples& samples) {
  const auto readings = ByConnection(samples);
  std::vector<size_t> order(readings.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return Grown(readings[a], ConnectionValue::kSentBytes) >
           Grown(readings[b], ConnectionValue::kSentBytes);
  });
  std::vector<timeline::CounterSeries> all;
  for (size_t i = 0; i < order.size(); ++i) {
    const evidence::Connection& connection = samples.connections[order[i]];
    const std::string name = absl::StrCat("TCP ", connection.local, " → ", connection.remote);
    const auto& its = readings[order[i]];
    if (i < kDrawnMost) {
      Draw(absl::StrCat(name, " · sent"), its, ConnectionValue::kSentBytes, &all);
    }
    Draw(absl::StrCat(name, " · retransmitted"), its, ConnectionValue::kRetransmittedBytes, &all);
  }
  return all;
}

void AddConnectionSamples(timeline::Interval counted, bool draw, OpenedInputs* inputs) {
  if (inputs->run.empty()) return;
  for (size_t i = 0; i < inputs->nodes.size(); ++i) {
    const std::string& node = inputs->nodes[i].name;
    const auto samples =
        ReadNodeFile(node,
                     {evidence::kConnectionsFileName, "what its kernel said of its TCP connections",
                      "connections' samples"},
                     evidence::ParseConnectionSamples, inputs);
    if (!samples.has_value()) continue;
    if (!samples->ended) {
      inputs->notes.push_back(absl::StrCat(node, ": evidence/", evidence::kConnectionsFileName,
                                           " ends early: its connections are known up to there"));
    }
    for (const std::string& note : samples->notes) {
      inputs->notes.push_back(absl::StrCat(node, ": ", note));
    }
    if (draw) {
      for (timeline::CounterSeries& series : ConnectionCounters(*samples)) {
        inputs->nodes[i].counters.push_back(std::move(series));
      }
    }
    const timeline::Placement* placement = inputs->facts[i].placement;
    if (placement == nullptr || !inputs->build.window.has_value()) continue;
    inputs->facts[i].connections = analysis::UsagesOf(*samples, placement->ClockNs(counted.begin),
                                                      placement->ClockNs(counted.end));
  }
}

}  // namespace syncline::merge

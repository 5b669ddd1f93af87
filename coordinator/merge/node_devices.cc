// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/node_devices.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/device_health.h"
#include "coordinator/merge/growth.h"
#include "coordinator/merge/node_file.h"

namespace syncline::merge {
namespace {

using evidence::DeviceSample;
using evidence::DeviceValue;

struct Drawn {
  DeviceValue value;
  const char* name;
  const char* unit;
  double scale;
};
constexpr std::array<Drawn, 5> kDrawn = {{
    {DeviceValue::kSmMhz, "SM clock", "MHz", 1},
    {DeviceValue::kPowerMw, "power", "W", 1e-3},
    {DeviceValue::kDeviceCelsius, "temperature", "°C", 1},
    {DeviceValue::kBusyPercent, "busy", "%", 1},
    {DeviceValue::kMemoryUsedBytes, "memory used", "GiB", 1.0 / (int64_t{1} << 30)},
}};
constexpr double kPercent = 100;

int64_t MiddleOf(const DeviceSample& sample) {
  return sample.at_ns + (sample.until_ns - sample.at_ns) / 2;
}

// Appends where the value changes, and time goes on.
void AddPoint(int64_t clock_ns, double value, std::vector<timeline::CounterPoint>* points) {
  if (!points->empty() && points->back().clock_ns >= clock_ns) return;
  if (points->empty() || points->back().value != value) points->push_back({clock_ns, value});
}

void AddLevels(const std::string& device, const std::vector<const DeviceSample*>& samples,
               std::vector<timeline::CounterSeries>* all) {
  for (const Drawn& drawn : kDrawn) {
    timeline::CounterSeries series;
    series.name = absl::StrCat(device, " · ", drawn.name);
    series.unit = drawn.unit;
    for (const DeviceSample* sample : samples) {
      const auto amount = sample->values.Get(drawn.value);
      if (!amount.has_value()) continue;
      AddPoint(MiddleOf(*sample), static_cast<double>(*amount) * drawn.scale, &series.points);
    }
    if (!series.points.empty()) all->push_back(std::move(series));
  }
}

void AddHeldBack(const std::string& device, const std::vector<const DeviceSample*>& samples,
                 std::vector<timeline::CounterSeries>* all) {
  for (size_t i = 0; i < evidence::kDeviceValues; ++i) {
    const auto value = static_cast<DeviceValue>(i);
    if (!analysis::IsHeldBackTime(value)) continue;
    timeline::CounterSeries series;
    series.name = absl::StrCat(device, " · held back ", analysis::HeldBackBy(value));
    series.unit = "%";
    Growth growth(kPercent, kPercent);
    for (const DeviceSample* sample : samples) {
      const auto amount = sample->values.Get(value);
      if (amount.has_value()) growth.Add(*sample, *amount);
    }
    growth.Finish(std::move(series), all);
  }
}

// nullopt: recorded without, or unreadable, which is then a complaint.
std::optional<evidence::DeviceSamples> ReadNode(const std::string& node, OpenedInputs* inputs) {
  std::optional<evidence::DeviceSamples> parsed = ReadNodeFile(
      node, {evidence::kDevicesFileName, "how the node's devices were", "devices' samples"},
      evidence::ParseDeviceSamples, inputs);
  if (!parsed.has_value()) return std::nullopt;
  if (!parsed->ended) {
    inputs->notes.push_back(
        absl::StrCat(node, ": evidence/", evidence::kDevicesFileName,
                     " ends early: how its devices were is known up to there alone"));
  }
  for (const std::string& note : parsed->notes) {
    inputs->notes.push_back(absl::StrCat(node, ": devices: ", note));
  }
  return parsed;
}

}  // namespace

std::vector<timeline::CounterSeries> DeviceCounters(const evidence::DeviceSamples& samples) {
  std::vector<std::vector<const DeviceSample*>> by_device(samples.devices.size());
  for (const DeviceSample& sample : samples.samples) by_device[sample.device].push_back(&sample);
  std::vector<timeline::CounterSeries> all;
  for (size_t i = 0; i < by_device.size(); ++i) {
    const std::string device = absl::StrCat("GPU ", i);
    AddLevels(device, by_device[i], &all);
    AddHeldBack(device, by_device[i], &all);
  }
  return all;
}

void AddDeviceSamples(timeline::Interval counted, bool draw, OpenedInputs* inputs) {
  if (inputs->run.empty()) return;
  for (size_t i = 0; i < inputs->nodes.size(); ++i) {
    const auto samples = ReadNode(inputs->nodes[i].name, inputs);
    if (!samples.has_value()) continue;
    if (draw) {
      for (timeline::CounterSeries& series : DeviceCounters(*samples)) {
        inputs->nodes[i].counters.push_back(std::move(series));
      }
    }
    const timeline::Placement* placement = inputs->facts[i].placement;
    if (placement == nullptr || !inputs->build.window.has_value()) continue;
    inputs->facts[i].health = analysis::HealthOf(
        *samples, {placement->ClockNs(counted.begin), placement->ClockNs(counted.end)});
  }
}

}  // namespace syncline::merge

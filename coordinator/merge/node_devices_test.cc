// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/node_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncline::merge {
namespace {

using evidence::DeviceValue;

constexpr int64_t kMs = 1'000'000;

using Points = std::vector<std::pair<int64_t, double>>;

Points PointsOf(const timeline::CounterSeries& series) {
  Points points;
  for (const timeline::CounterPoint& point : series.points) {
    points.emplace_back(point.clock_ns, point.value);
  }
  return points;
}

evidence::DeviceSample At(int64_t ms, int64_t mhz, int64_t thermal_ms) {
  evidence::DeviceSample sample{.device = 1, .at_ns = (ms - 1) * kMs, .until_ns = (ms + 1) * kMs};
  sample.values.Set(DeviceValue::kSmMhz, mhz);
  sample.values.Set(DeviceValue::kThermalNs, thermal_ms * kMs);
  sample.values.Set(DeviceValue::kPowerNs, 7);
  return sample;
}

TEST(DeviceCounters, LevelsAndWhatGrewOfEachDevice) {
  evidence::DeviceSamples samples;
  samples.devices.resize(2);
  samples.samples = {At(100, 1980, 5), At(300, 1980, 5), At(500, 1170, 87), At(700, 1170, 287)};
  const std::vector<timeline::CounterSeries> all = DeviceCounters(samples);
  ASSERT_EQ(all.size(), 2U);  // the counter that did not grow is left out
  EXPECT_EQ(all[0].name, "GPU 1 · SM clock");
  EXPECT_EQ(all[0].unit, "MHz");
  EXPECT_EQ(all[0].process, std::nullopt);
  EXPECT_EQ(PointsOf(all[0]), (Points{{100 * kMs, 1980}, {500 * kMs, 1170}}));
  EXPECT_EQ(all[1].name, "GPU 1 · held back by its temperature");
  EXPECT_EQ(all[1].unit, "%");
  EXPECT_EQ(PointsOf(all[1]),
            (Points{{100 * kMs, 0}, {300 * kMs, 41}, {500 * kMs, 100}, {700 * kMs, 0}}));
}

}  // namespace
}  // namespace syncline::merge

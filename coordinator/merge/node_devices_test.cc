// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/node_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "common/files.h"
#include "coordinator/merge/why_devices.h"
#include "coordinator/recording/recording.h"

namespace syncline::merge {
namespace {

using evidence::DeviceValue;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

// Ranks 1 and 0, on nodes 0 and 1; rank 1's device is held back.
struct HeldBackJob {
  HeldBackJob() {
    inputs.facts.resize(2);
    for (uint32_t node = 0; node < 2; ++node) {
      const int32_t rank = 1 - static_cast<int32_t>(node);
      job.processes.push_back({node, 5, 10 + rank, 7});
      job.input.ranks.emplace_back().rank = rank;
      const double share = rank == 1 ? 0.41 : 0.01;
      analysis::DeviceHealth health;
      health.users = {{.process = {0, 5, 10 + rank, 7}}};
      health.held_back = {{DeviceValue::kThermalNs, {share, share, share}}};
      inputs.facts[node].health = {health};
    }
    answer.ranks.resize(2);
    answer.ranks[1].rank = 1;
    answer.ranks[0].rank = 0;
    answer.findings.resize(1);
    answer.findings[0].index = 1;
    answer.findings[0].causes.resize(1);
    Work().longer_ns = 5;
  }
  analysis::why::KernelWork& Work() {
    auto& work = answer.findings[0].causes[0].work;
    return work.has_value() ? *work : work.emplace();
  }
  size_t Found() {
    AddHeldBack(job, inputs, &answer);
    return answer.findings[0].held_back.size();
  }

  WhyJob job;
  OpenedInputs inputs;
  analysis::why::DeviceAnswer answer;
};

TEST(AddHeldBack, FindsTheDeviceOfEachRankByItsProcess) {
  HeldBackJob held;
  ASSERT_EQ(held.Found(), 1U);
  EXPECT_DOUBLE_EQ(held.answer.findings[0].held_back[0].own.est, 0.41);
  EXPECT_DOUBLE_EQ(held.answer.findings[0].held_back[0].others.est, 0.01);
}

TEST(AddHeldBack, IsNoEvidenceForAnotherCause) {
  HeldBackJob held;
  held.answer.findings[0].causes[0].part = analysis::why::DevicePart::kLaunch;
  EXPECT_EQ(held.Found(), 0U);
}

// More work makes a device warm, and draw more power.
TEST(AddHeldBack, IsNoEvidenceWhereTheDeviceHasOtherWorkOrItIsNotKnown) {
  HeldBackJob more;
  more.Work().more_ns = 6;
  EXPECT_EQ(more.Found(), 0U);
  HeldBackJob not_comparable;
  not_comparable.Work().is_comparable = false;
  EXPECT_EQ(not_comparable.Found(), 0U);
  HeldBackJob not_known;
  not_known.answer.findings[0].causes[0].work.reset();
  EXPECT_EQ(not_known.Found(), 0U);
}

TEST(AddDeviceSamples, AFileThatEndsEarlyIsNoted) {
  const std::filesystem::path run = ::testing::TempDir() + "node_devices_run";
  const recording::Layout layout(run);
  std::filesystem::create_directories(layout.Evidence("worker-0"));
  for (const bool ended : {false, true}) {
    std::string text = "syncline-devices 1\nD =a =H100 =b 1 1 1\n";
    if (ended) text += "E\n";
    const auto path = layout.Evidence("worker-0") / evidence::kDevicesFileName;
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
    OpenedInputs inputs;
    inputs.run = run;
    inputs.nodes.resize(1);
    inputs.nodes[0].name = "worker-0";
    inputs.facts.resize(1);
    AddDeviceSamples({}, false, &inputs);
    EXPECT_THAT(inputs.complaints, IsEmpty());
    if (ended) {
      EXPECT_THAT(inputs.notes, IsEmpty());
    } else {
      EXPECT_THAT(inputs.notes,
                  ElementsAre(HasSubstr("worker-0: evidence/devices.txt ends early")));
    }
  }
  std::filesystem::remove_all(run);
}

TEST(AddHeldBack, SaysNothingOfARankWithSeveralDevicesOrNone) {
  HeldBackJob several;
  several.inputs.facts[0].health.push_back(several.inputs.facts[0].health[0]);
  EXPECT_EQ(several.Found(), 0U);
  HeldBackJob none;
  none.inputs.facts[0].health[0].users.clear();
  EXPECT_EQ(none.Found(), 0U);
}

}  // namespace
}  // namespace syncline::merge

// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/cut.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

namespace syncline::merge {
namespace {

TEST(ChooseLookBack, OfALongRecordingACutIsReadInPartUnlessAllIsWanted) {
  constexpr int64_t kSecond = 1'000'000'000;
  using How = LookBack::How;
  const auto chosen = [](LookBack look_back, int64_t begin_s, int64_t end_s) {
    OpenedInputs inputs;
    inputs.build.window = timeline::Interval{{0}, {200 * kSecond}};
    inputs.build.cut = timeline::Interval{{begin_s * kSecond}, {end_s * kSecond}};
    ChooseLookBack(look_back, &inputs);
    return inputs.build.look_back_ns;
  };
  EXPECT_EQ(chosen({}, 10, 90), std::nullopt);
  EXPECT_EQ(chosen({}, 10, 89), 32 * kSecond);
  EXPECT_EQ(chosen({}, 199, 200), 32 * kSecond);
  EXPECT_EQ(chosen({How::kAll}, 199, 200), std::nullopt);
  EXPECT_EQ(chosen({How::kAtMost, 7}, 10, 90), 7);
  OpenedInputs whole;
  ChooseLookBack({How::kAtMost, 7}, &whole);
  EXPECT_EQ(whole.build.look_back_ns, std::nullopt);
}

TEST(Shown, EndsThatLieOutsideAreCutThereAndOthersAreNot) {
  OpenedInputs inputs;
  inputs.build.window = timeline::Interval{{0}, {1000}};
  const auto shown = [&](Range range) {
    EXPECT_TRUE(ChooseCut(range, &inputs).ok());
    const timeline::Interval interval = Shown(range, inputs);
    return std::pair(interval.begin.ns, interval.end.ns);
  };
  EXPECT_EQ(shown({}), std::pair(kUnknownLo, kUnknownHi));
  EXPECT_EQ(shown({TimelineTime{900}, TimelineTime{5000}}), std::pair(int64_t{900}, int64_t{1000}));
  EXPECT_EQ(inputs.complaints.size(), 1u);
  EXPECT_EQ(shown({TimelineTime{-5}, std::nullopt}), std::pair(int64_t{0}, kUnknownHi));
  EXPECT_EQ(shown({std::nullopt, TimelineTime{7}}), std::pair(kUnknownLo, int64_t{7}));
}

}  // namespace
}  // namespace syncline::merge

#include "coordinator/merge/cut.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace syncline::merge

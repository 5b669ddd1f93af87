// SPDX-License-Identifier: Apache-2.0
#include "common/duration_text.h"

#include <limits>

#include "gtest/gtest.h"

namespace syncline {
namespace {

TEST(DurationText, OneSpellingWithThreeDigits) {
  EXPECT_EQ(DurationText(0), "0 ns");
  EXPECT_EQ(DurationText(999), "999 ns");
  EXPECT_EQ(DurationText(1'000), "1.00 µs");
  EXPECT_EQ(DurationText(-12'345), "-12.3 µs");
  EXPECT_EQ(DurationText(999'499), "999 µs");
  EXPECT_EQ(DurationText(999'999), "1.00 ms");
  EXPECT_EQ(DurationText(999'999'999), "1.000 s");
  EXPECT_EQ(DurationText(4'998'000'000), "4.998 s");
  EXPECT_EQ(DurationText(3'600'000'000'000), "60.0 min");
  EXPECT_EQ(DurationText(std::numeric_limits<int64_t>::min()).front(), '-');
}

TEST(DurationText, Signed) {
  EXPECT_EQ(SignedDurationText(12'300), "+12.3 µs");
  EXPECT_EQ(SignedDurationText(-12'300), "-12.3 µs");
  EXPECT_EQ(SignedDurationText(0), "0 ns");
}

}  // namespace
}  // namespace syncline

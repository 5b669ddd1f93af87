// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/held_back.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncline::analysis::why {
namespace {

using evidence::DeviceValue;
using ::testing::IsEmpty;
using ::testing::SizeIs;

DeviceHealth Device(double share, int64_t mhz) {
  DeviceHealth health;
  health.held_back = {{DeviceValue::kThermalNs, {share, share - 0.01, share + 0.01}},
                      {DeviceValue::kLowUseNs, {share, share, share}}};
  health.values = {{DeviceValue::kSmMhz, {mhz, mhz, mhz, mhz}}};
  return health;
}

TEST(HeldBackMore, ThanEveryOtherRankOfWhichItIsKnown) {
  const DeviceHealth cool = Device(0.01, 1980);
  const DeviceHealth warm = Device(0.02, 1965);
  const DeviceHealth hot = Device(0.41, 1200);
  const std::vector<const DeviceHealth*> ranks = {&cool, &hot, nullptr, &warm};
  const auto found = HeldBackMore(ranks, 1);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].reason, DeviceValue::kThermalNs);
  EXPECT_DOUBLE_EQ(found[0].own.est, 0.41);
  EXPECT_DOUBLE_EQ(found[0].others.lo, 0.0);
  EXPECT_DOUBLE_EQ(found[0].others.hi, 0.03);
  EXPECT_EQ(found[0].known, 2U);
  EXPECT_EQ(found[0].unknown, 1U);
  EXPECT_EQ(found[0].own_mhz, 1200);
  EXPECT_EQ(found[0].others_mhz, 1980);
  for (const size_t other : {0, 2, 3}) EXPECT_THAT(HeldBackMore(ranks, other), IsEmpty());
}

TEST(HeldBackMore, NotByLessThanTheLimitNorWhereItIsNotCertain) {
  const DeviceHealth one = Device(0.30, 1980);
  const DeviceHealth other = Device(0.36, 1980);  // 0.35 to 0.37 against 0.29 to 0.31
  EXPECT_THAT(HeldBackMore(std::vector<const DeviceHealth*>{&one, &other}, 1), IsEmpty());
  const DeviceHealth more = Device(0.38, 1980);
  EXPECT_THAT(HeldBackMore(std::vector<const DeviceHealth*>{&one, &more}, 1), SizeIs(1));
}

TEST(HeldBackMore, WithNothingToCompareItIsNoEvidence) {
  const DeviceHealth hot = Device(0.41, 1200);
  EXPECT_THAT(HeldBackMore(std::vector<const DeviceHealth*>{&hot, nullptr}, 0), IsEmpty());
}

}  // namespace
}  // namespace syncline::analysis::why

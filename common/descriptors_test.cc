// SPDX-License-Identifier: Apache-2.0
#include "common/descriptors.h"

#include "gtest/gtest.h"

namespace syncline {
namespace {

rlimit Now() {
  rlimit limit{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  return limit;
}

TEST(Descriptors, RaisedForThisProcessAndAsBeforeForItsChildren) {
  const rlimit before = Now();
  ASSERT_GE(before.rlim_max, 256u);
  const DescriptorLimit few(200);
  EXPECT_EQ(Now().rlim_cur, 200u);
  const rlim_t soft = RaiseDescriptorLimit();
  EXPECT_EQ(soft, 200u);
  EXPECT_EQ(Now().rlim_cur, before.rlim_max);
  {
    const DescriptorLimit of_children(soft);
    EXPECT_EQ(Now().rlim_cur, 200u);
  }
  EXPECT_EQ(Now().rlim_cur, before.rlim_max);
  EXPECT_EQ(Now().rlim_max, before.rlim_max);
}

}  // namespace
}  // namespace syncline

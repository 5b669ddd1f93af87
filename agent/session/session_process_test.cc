// SPDX-License-Identifier: Apache-2.0
#include "agent/session/session_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncline::agent {
namespace {

using ::testing::HasSubstr;

TEST(SessionProcess, NamesBothDaemonsWhereLttngDoesNotAnswer) {
  SessionLimits limits;
  limits.alive_ms = 50;
  SessionProcess process({"/bin/sleep", "60"}, {}, limits);
  // The second time with a new child.
  for (int i = 0; i < 2; ++i) {
    const auto alive = process.DaemonAlive();
    ASSERT_TRUE(absl::IsDeadlineExceeded(alive.status())) << alive.status();
    EXPECT_THAT(alive.status().message(), HasSubstr("did not answer \"alive\" within 50 ms"));
    EXPECT_THAT(alive.status().message(),
                HasSubstr("lttng-sessiond, or the lttng-consumerd that it waits for, is stopped"));
    EXPECT_THAT(alive.status().message(), HasSubstr("`ps -C lttng-sessiond,lttng-consumerd"));
  }
}

TEST(SessionProcess, SaysThatItsChildEnded) {
  SessionProcess process({"/bin/sh", "-c", "head -c 1 <&3 >/dev/null"}, {}, {});
  const auto alive = process.DaemonAlive();
  ASSERT_TRUE(absl::IsUnavailable(alive.status())) << alive.status();
}

}  // namespace
}  // namespace syncline::agent

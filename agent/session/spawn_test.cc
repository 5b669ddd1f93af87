// SPDX-License-Identifier: Apache-2.0
#include "agent/session/spawn.h"

#include <cstdlib>
#include <string>

#include "agent/recording/canary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::HasSubstr;
using testing::Not;

class Remembering : public ProcessRunner {
 public:
  absl::StatusOr<RunResult> Run(const SpawnOptions& options, int) override {
    last = options;
    return RunResult{};
  }
  SpawnOptions last;
};

TEST(Spawn, AProgramOfAnotherUserGetsNoSecrets) {
  ::setenv("SYNCLINE_TEST_TOKEN", "secret", 1);
  ::setenv("SYNCLINE_RUNTIME_DIR", "/run/x", 1);
  SystemProcessRunner runner;
  SpawnOptions options = {.arguments = {"env"}, .environment = {{"LTTNG_HOME", "/run/x/lttng"}}};
  EXPECT_THAT(runner.Run(options, 5'000).value().output, HasSubstr("secret"));
  options.for_another_user = true;
  const std::string given = runner.Run(options, 5'000).value().output;
  EXPECT_THAT(given, Not(HasSubstr("secret")));
  EXPECT_THAT(given, HasSubstr("SYNCLINE_RUNTIME_DIR=/run/x\n"));
  EXPECT_THAT(given, HasSubstr("LTTNG_HOME=/run/x/lttng\n"));
  EXPECT_THAT(given, HasSubstr("PATH="));
  ::unsetenv("SYNCLINE_TEST_TOKEN");
  ::unsetenv("SYNCLINE_RUNTIME_DIR");
}

TEST(Spawn, TheCanaryOfAnotherUserIsSuchAProgram) {
  Remembering runner;
  SystemCanary canary(&runner, {.own_uid = 0, .canary_program = "c", .agent_program = "a"});
  EXPECT_TRUE(canary.Sing(61234, 1).ok());
  EXPECT_TRUE(runner.last.for_another_user);
  EXPECT_TRUE(canary.Sing(0, 1).ok());
  EXPECT_FALSE(runner.last.for_another_user);
}

TEST(Spawn, WhatAProgramSaysTakesNoMoreMemoryThanItsStart) {
  SystemProcessRunner runner;
  const auto said = runner.Run(
      {.arguments = {"sh", "-c", "printf hello; stat -Lc %s /proc/self/fd/1 >&2"}}, 5'000);
  EXPECT_EQ(said.value().output, "hello4096\n");
  const auto full = runner.Run({.arguments = {"dd", "if=/dev/zero", "bs=8k", "count=1"}}, 5'000);
  EXPECT_NE(full.value().exit_code, 0);
}

}  // namespace
}  // namespace syncline::agent

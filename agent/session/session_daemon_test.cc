// SPDX-License-Identifier: Apache-2.0
#include "agent/session/session_daemon.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "agent/recording/fakes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

TEST(SessionDaemon, IsNotStartedWhereOthersCanPutLinks) {
  std::string pattern = testing::TempDir() + "daemon-XXXXXX";
  const std::filesystem::path root = ::mkdtemp(pattern.data());
  FakeLttngControl lttng;
  FakeProcessRunner runner;
  lttng.alive = false;
  runner.on_run = [&] { lttng.alive = true; };
  SessionDaemon daemon(&lttng, &runner, {{"LTTNG_HOME", root / "runtime/lttng"}}, root / "pid");
  std::filesystem::create_directory(root / "runtime");
  ::chmod((root / "runtime").c_str(), 0777);
  const absl::Status refused = daemon.Ensure();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("others may write there"));
  EXPECT_TRUE(runner.runs.empty());
  EXPECT_TRUE(std::filesystem::is_empty(root / "runtime"));
  ::chmod((root / "runtime").c_str(), 0700);
  EXPECT_EQ(daemon.Ensure(), absl::OkStatus());
  EXPECT_EQ(runner.runs.size(), 1u);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace syncline::agent

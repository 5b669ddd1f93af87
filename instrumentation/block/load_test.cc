// SPDX-License-Identifier: Apache-2.0
// Forks while another thread loads the tracer: the children end by themselves.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "instrumentation/block/block.h"

namespace {

constexpr unsigned kLimitS = 5;  // then the alarm ends a child that hangs

TEST(LoadTest, ChildrenForkedMeanwhileEnd) {
  char directory[] = "/tmp/load_test.XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  ::setenv("SYNCLINE_RUNTIME_DIR", directory, 1);
  std::atomic<bool> loaded = false;
  std::jthread loads([&loaded] {
    EXPECT_EQ(syncline_open(SYNCLINE_SOURCE_ITT), 0);
    loaded = true;
  });
  std::vector<pid_t> children;
  while (!loaded && children.size() < 200) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(kLimitS);
      std::exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  loads.join();
  std::filesystem::remove_all(directory);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/local_agent.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::cli {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;
namespace fs = std::filesystem;

TEST(PlaceOfLocalAgent, IsThisUsersOnThisMachine) {
  const LocalAgentPlace place = PlaceOfLocalAgent("/opt/syncline/bin/syncline", 1000, {});
  EXPECT_EQ(place.program, "/opt/syncline/bin/syncline-agent");
  EXPECT_EQ(place.data_directory, "/var/tmp/syncline-1000");
  EXPECT_EQ(place.socket, "/dev/shm/syncline-1000/agent.sock");
}

TEST(PlaceOfLocalAgent, CanBeChosen) {
  const LocalAgentPlace place = PlaceOfLocalAgent(
      "/usr/bin/syncline", 7, {{"SYNCLINE_DATA_DIR", "/big"}, {"SYNCLINE_RUNTIME_DIR", "/run/x"}});
  EXPECT_EQ(place.data_directory, "/big");
  EXPECT_EQ(place.socket, "/run/x/agent.sock");
  const LocalAgentPlace relative =
      PlaceOfLocalAgent("/usr/bin/syncline", 7, {{"SYNCLINE_DATA_DIR", "here"}});
  EXPECT_EQ(relative.data_directory, fs::current_path() / "here");
}

TEST(EnvironmentOfLocalAgent, HasNothingThatMakesAProgramTraced) {
  EXPECT_THAT(EnvironmentOfLocalAgent({{"HOME", "/home/ann"},
                                       {"LD_PRELOAD", "libsyncline_net.so"},
                                       {"INTEL_LIBITTNOTIFY64", "libsyncline_itt.so"},
                                       {"PYTHONPATH", "/x"},
                                       {"SYNCLINE_JOB", "nightly"},
                                       {"LTTNG_HOME", "/dev/shm/syncline-7/lttng"}}),
              UnorderedElementsAre(Pair("HOME", "/home/ann"),
                                   Pair("LTTNG_HOME", "/dev/shm/syncline-7/lttng")));
}

class EnsureLocalAgentTest : public testing::Test {
 protected:
  EnsureLocalAgentTest()
      : directory_(fs::path(testing::TempDir()) /
                   (std::string("local_agent_") +
                    testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(directory_);
    EXPECT_TRUE(MakeDirectories(directory_, 0700).ok());
    place_ = {directory_ / "syncline-agent", directory_ / "data", directory_ / "agent.sock"};
  }
  ~EnsureLocalAgentTest() override { fs::remove_all(directory_); }

  void WriteProgram(const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(place_.program, "#!/bin/sh\n" + text).ok());
    fs::permissions(place_.program, fs::perms::owner_all);
  }

  const fs::path directory_;
  LocalAgentPlace place_;
};

TEST_F(EnsureLocalAgentTest, WhoeverServesIsUsed) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, place_.socket.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(fd, 4), 0);
  const auto started = EnsureLocalAgent(place_, {});  // there is no program that could be started
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_FALSE(*started);
  ::close(fd);
}

// A neighbour has made the directory, or opened it: whoever listens there is not believed.
TEST_F(EnsureLocalAgentTest, ADirectoryThatIsOpenToOthersIsRefused) {
  fs::permissions(directory_, fs::perms::all);
  const auto started = EnsureLocalAgent(place_, {});
  EXPECT_TRUE(absl::IsFailedPrecondition(started.status()));
  EXPECT_THAT(std::string(started.status().message()), HasSubstr("mode 0700"));
  fs::permissions(directory_, fs::perms::owner_all);
  place_.socket = directory_ / "link" / "agent.sock";
  fs::create_symlink(directory_, directory_ / "link");
  EXPECT_TRUE(absl::IsFailedPrecondition(EnsureLocalAgent(place_, {}).status()));
}

TEST_F(EnsureLocalAgentTest, AProgramThatIsMissingIsNamed) {
  const auto started = EnsureLocalAgent(place_, {});
  EXPECT_TRUE(absl::IsFailedPrecondition(started.status()));
  EXPECT_THAT(std::string(started.status().message()), HasSubstr(place_.program.string()));
}

TEST_F(EnsureLocalAgentTest, WhatTheAgentSaysOnItsWayOutIsTheError) {
  WriteProgram("echo \"syncline-agent: The data directory is somebody else's: $*\" >&2; exit 1\n");
  const auto started = EnsureLocalAgent(place_, {{"PATH", "/usr/bin:/bin"}});
  EXPECT_TRUE(absl::IsFailedPrecondition(started.status()));
  EXPECT_THAT(std::string(started.status().message()),
              testing::AllOf(HasSubstr("does not start: The data directory is somebody else's"),
                             HasSubstr("--socket " + place_.socket.string()),
                             HasSubstr("--idle-minutes 10")));
}

}  // namespace
}  // namespace syncline::cli

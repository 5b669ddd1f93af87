// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/daemon_watch.h"

#include <poll.h>

#include <cstdlib>
#include <string>

#include "agent/host/fake_process.h"
#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::HasSubstr;

constexpr uint32_t kOwn = 1000;

class DaemonWatchTest : public testing::Test {
 protected:
  DaemonWatchTest() {
    std::string pattern = testing::TempDir() + "watch-XXXXXX";
    proc_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directories(proc_ / "self/ns");
    std::filesystem::create_symlink("pid:[4026531836]", proc_ / "self/ns/pid");
  }
  ~DaemonWatchTest() override { std::filesystem::remove_all(proc_); }
  void SetState(char state, const std::string& name = "lttng-sessiond") {
    std::string stat = ReadFile(proc_ / "1234/stat").value();
    const size_t open = stat.find('(');
    const size_t close = stat.rfind(')');
    stat[close + 2] = state;
    stat.replace(open + 1, close - open - 1, name);
    EXPECT_TRUE(WriteFileAtomically(proc_ / "1234/stat", stat).ok());
  }
  std::filesystem::path proc_;
};

TEST_F(DaemonWatchTest, OneThatRunsIsNoTrouble) {
  AddFakeProcess(proc_, 'S', kOwn);
  SetState('S');
  EXPECT_EQ(DaemonWatch(proc_, kOwn).AllRan(), absl::OkStatus());
}

TEST_F(DaemonWatchTest, OneThatWasStoppedForAWhileIsNotForgotten) {
  AddFakeProcess(proc_, 'S', kOwn);
  SetState('S');
  DaemonWatch watch(proc_, kOwn);
  SetState('T');
  for (int i = 0; i < 3000 && watch.AllRan().ok(); ++i) ::poll(nullptr, 0, 1);
  SetState('S');
  EXPECT_TRUE(absl::IsFailedPrecondition(watch.AllRan()));
  EXPECT_THAT(std::string(watch.AllRan().message()), HasSubstr("lttng-sessiond (process 1234)"));
}

TEST_F(DaemonWatchTest, AnotherUsersDaemonAndOtherProgramsDoNotMatter) {
  AddFakeProcess(proc_, 'T', 1001);
  SetState('T');
  EXPECT_EQ(DaemonWatch(proc_, kOwn).AllRan(), absl::OkStatus());
  AddFakeProcess(proc_, 'T', kOwn);
  EXPECT_EQ(DaemonWatch(proc_, kOwn).AllRan(), absl::OkStatus()) << "of another name";
}

}  // namespace
}  // namespace syncline::agent

// SPDX-License-Identifier: Apache-2.0
#include "coordinator/selftest/demo_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "coordinator/host/fake_clock.h"
#include "coordinator/selftest/shifted_clock.h"

namespace syncline::selftest {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DemoJob, SwitchNamesTheRankAndItsMilliseconds) {
  EXPECT_EQ(SwitchText({.rank = 1, .delay_ns = 7'250'000}), "1 7.250000\n");
}

TEST(DemoJob, NewestStepOfALog) {
  EXPECT_EQ(NewestStep(""), 0u);
  EXPECT_EQ(NewestStep("rank 0, step 20: 31.0 ms a step\nrank 0, step 40: 30.1 ms a step\n"), 40u);
  EXPECT_EQ(NewestStep("rank 0, step 20: 31.0 ms a step\nrank 0, step 4"), 20u) << "half a line";
  EXPECT_EQ(NewestStep("step x: no\n"), 0u);
}

// A program in place of `syncline`.
class DemoJobTest : public ::testing::Test {
 protected:
  DemoJobTest() : scratch_(ScratchDirectory::Make()) {
    clock_.on_wait = [] { ::poll(nullptr, 0, 20); };  // the ranks are real
  }

  DemoPlace Place(const std::string& script) const {
    const std::filesystem::path program = scratch_->path() / "syncline";
    EXPECT_TRUE(WriteFileAtomically(program, "#!/bin/sh\n" + script, 0755).ok());
    return {.syncline = program,
            .job = "train.py",
            .directory = scratch_->path(),
            .environment = {{"PATH", "/usr/bin:/bin"}}};
  }
  std::string Log(int rank) const {
    return ReadFile(scratch_->path() / absl::StrCat("rank", rank, ".log")).value_or("");
  }

  absl::StatusOr<ScratchDirectory> scratch_;
  host::FakeClock clock_;
  std::stop_source stop_;
};

TEST_F(DemoJobTest, StartsTwoRanksAndEndsThem) {
  std::string log;
  {
    auto job =
        DemoJob::Start(Place("echo $$ $RANK of $WORLD_SIZE \"$@\"; i=0; while :; do i=$((i + 20)); "
                             "echo rank, step $i: 1 ms; sleep 0.05; done"));
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_TRUE(job->AwaitSteps(60, &clock_, stop_.get_token()).ok());
    log = Log(0);
    ASSERT_TRUE(job->Apply({.rank = 1, .delay_ns = 2'000'000}).ok());
    EXPECT_EQ(*ReadFile(scratch_->path() / "switch"), "1 2.000000\n");
  }
  EXPECT_THAT(log, HasSubstr("0 of 2 run --job selftest -- python3 train.py --parent "));
  pid_t pid = 0;
  ASSERT_TRUE(absl::SimpleAtoi(log.substr(0, log.find(' ')), &pid)) << log;
  EXPECT_EQ(::kill(pid, 0), -1) << "it was ended, and waited for";
}

TEST_F(DemoJobTest, SaysWhyARankEnded) {
  auto job = DemoJob::Start(Place("echo \"No module named 'torch'\"; exit 1"));
  ASSERT_TRUE(job.ok()) << job.status();
  const absl::Status status = job->AwaitSteps(60, &clock_, stop_.get_token());
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("--python"), HasSubstr("No module named 'torch'")));
}

TEST_F(DemoJobTest, StopsWaitingWhenItIsInterrupted) {
  auto job = DemoJob::Start(Place("exec sleep 100"));
  ASSERT_TRUE(job.ok()) << job.status();
  stop_.request_stop();
  EXPECT_TRUE(absl::IsCancelled(job->AwaitSteps(60, &clock_, stop_.get_token())));
}

TEST_F(DemoJobTest, NamesAProgramThatIsMissing) {
  DemoPlace place = Place("");
  place.syncline = scratch_->path() / "nothing";
  EXPECT_TRUE(absl::IsNotFound(DemoJob::Start(place).status()));
}

}  // namespace
}  // namespace syncline::selftest

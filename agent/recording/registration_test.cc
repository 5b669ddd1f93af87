// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/registration.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "agent/host/fake_process.h"
#include "agent/recording/fakes.h"
#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::HasSubstr;

v1::ProcessInfo Program(int32_t pid) {
  v1::ProcessInfo process;
  process.set_pid(pid + 1000);  // the agent looks from outside the process's pid namespace
  process.set_own_pid(pid);
  process.set_command_line("python train.py");
  process.set_has_control_block(true);
  return process;
}

class RegistrationTest : public testing::Test {
 protected:
  FakeClock clock_;
  FakeLttngControl lttng_;
  FakeGate gate_{&clock_};
  RegistrationPatience patience_;
  int64_t WaitedNs() {
    const int64_t begin_ns = clock_.now_ns;
    EXPECT_TRUE(AwaitRegistration(lttng_, gate_, clock_, &patience_).ok());
    return clock_.now_ns - begin_ns;
  }
};

TEST_F(RegistrationTest, KnownProgramsAreNotWaitedFor) {
  gate_.processes = {Program(7)};
  lttng_.programs = {7};
  clock_.on_sleep = [] { FAIL() << "slept"; };
  const auto unknown = AwaitRegistration(lttng_, gate_, clock_, &patience_);
  ASSERT_TRUE(unknown.ok());
  EXPECT_TRUE(unknown->empty());
}

TEST_F(RegistrationTest, OneThatWasHeldUpIsWaitedFor) {
  gate_.processes = {Program(7), Program(8)};
  lttng_.programs = {7};
  int sleeps = 0;
  clock_.on_sleep = [&] {
    if (++sleeps == 3) lttng_.programs.push_back(8);
  };
  const auto unknown = AwaitRegistration(lttng_, gate_, clock_, &patience_);
  ASSERT_TRUE(unknown.ok());
  EXPECT_TRUE(unknown->empty());
  EXPECT_EQ(sleeps, 3);
}

TEST_F(RegistrationTest, OneThatNeverComesIsNamedAfterABoundedTime) {
  gate_.processes = {Program(7)};
  const int64_t begin_ns = clock_.now_ns;
  const auto unknown = AwaitRegistration(lttng_, gate_, clock_, &patience_);
  ASSERT_TRUE(unknown.ok());
  ASSERT_EQ(unknown->size(), 1u);
  EXPECT_THAT(NotRegistered(unknown->front()).what(), HasSubstr("Process 1007 (python train.py)"));
  EXPECT_LT(clock_.now_ns - begin_ns, 7'000'000'000);
}

TEST_F(RegistrationTest, OneThatDidNotComeIsNotWaitedForEachTime) {
  gate_.processes = {Program(7)};
  gate_.processes[0].set_uid(1000);  // the gate's own
  EXPECT_GT(WaitedNs(), 5'000'000'000);
  EXPECT_LT(WaitedNs(), 100'000'000);
  gate_.processes.push_back(Program(8));  // another one may come
  gate_.processes[1].set_uid(1000);
  EXPECT_GT(WaitedNs(), 5'000'000'000);
  EXPECT_LT(WaitedNs(), 100'000'000);
  clock_.now_ns += 700'000'000'000;
  EXPECT_GT(WaitedNs(), 5'000'000'000) << "it may have been held up then";
}

TEST_F(RegistrationTest, AnotherUserHoldsUpNobodyMoreThanOnceInAWhile) {
  for (int32_t pid = 7; pid < 27; ++pid) {  // each time another one of his
    gate_.processes = {Program(pid)};
    gate_.processes[0].set_uid(1001);
    EXPECT_EQ(WaitedNs() > 1'000'000'000, pid == 7);
  }
  gate_.processes.push_back(Program(30));
  gate_.processes[1].set_uid(1002);
  int sleeps = 0;
  clock_.on_sleep = [&] {
    if (++sleeps == 3) lttng_.programs.push_back(30);
  };
  EXPECT_LT(WaitedNs(), 1'000'000'000) << "for the third user alone";
  EXPECT_EQ(sleeps, 3);
}

TEST_F(RegistrationTest, OneWithoutAFreeDescriptorIsToldWhy) {
  std::string pattern = testing::TempDir() + "registration-XXXXXX";
  const std::filesystem::path proc = ::mkdtemp(pattern.data());
  const std::filesystem::path at = proc / "1007";
  ASSERT_TRUE(MakeDirectories(at / "fd").ok());
  const auto limit_to = [&](int files) {
    return WriteFileAtomically(at / "limits", absl::StrCat("Max open files            ", files,
                                                           "                 524288   files\n"));
  };
  for (const char* number : {"0", "1", "2"}) {
    ASSERT_TRUE(WriteFileAtomically(at / "fd" / number, "").ok());
  }
  ASSERT_TRUE(limit_to(3).ok());
  EXPECT_THAT(NotRegistered(Program(7), proc).what(), HasSubstr("can open no more files"));
  EXPECT_THAT(NotRegistered(Program(7), proc).fix(), HasSubstr("ulimit -n"));
  ASSERT_TRUE(limit_to(1024).ok());
  EXPECT_FALSE(WantOfDescriptors(proc, Program(7)).has_value());
  EXPECT_THAT(NotRegistered(Program(7), proc).what(), HasSubstr("is not registered"));
  EXPECT_FALSE(WantOfDescriptors(proc, Program(8)).has_value());  // it is gone
  std::filesystem::remove_all(proc);
}

TEST_F(RegistrationTest, StoppedOnesAndThoseWithoutABlockDelayNobody) {
  gate_.processes = {Program(7), Program(8)};
  gate_.processes[0].set_stopped(true);
  gate_.processes[1].set_has_control_block(false);
  clock_.on_sleep = [] { FAIL() << "slept"; };
  const auto unknown = AwaitRegistration(lttng_, gate_, clock_, &patience_);
  ASSERT_TRUE(unknown.ok());
  EXPECT_TRUE(unknown->empty());
}

class StoppedProgramsTest : public testing::Test {
 protected:
  StoppedProgramsTest() {
    std::string pattern = testing::TempDir() + "stopped-XXXXXX";
    proc_ = ::mkdtemp(pattern.data());
  }
  ~StoppedProgramsTest() override { std::filesystem::remove_all(proc_); }
  void Add(int count, uint32_t uid, char state = 'T',
           const std::string& maps =
               "7f00-7f01 rw-s 0 00:18 7 "
               "/dev/shm/shm-event-notifier-error-accounting-8 (deleted)\n") {
    for (int i = 0; i < count; ++i) {
      AddFakeProcess(proc_, state, uid);
      EXPECT_TRUE(WriteFileAtomically(proc_ / "1234/maps", maps).ok());
      std::filesystem::rename(proc_ / "1234", proc_ / std::to_string(++last_pid_));
    }
  }
  std::filesystem::path proc_;
  int last_pid_ = 2000;
  v1::PrepareResponse response_;
};

TEST_F(StoppedProgramsTest, WhoHasManyIsLeftOutAndNobodyElse) {
  Add(1, 1000);
  Add(2, 1001);
  Add(7, 1002);
  Add(20, 1003, 'S');
  Add(20, 1004, 'T', "7f00-7f01 r-xp 0 00:18 7 /bin/sleep\n");  // LTTng knows nothing of them
  const auto left_out = UsersWhoHoldUp(StoppedPrograms(proc_), 1000, &response_);
  ASSERT_TRUE(left_out.ok()) << left_out.status();
  EXPECT_THAT(*left_out, testing::ElementsAre(1002));
  ASSERT_EQ(response_.complaints_size(), 1);
  EXPECT_THAT(response_.complaints(0).what(), HasSubstr("User 1002 has 7 stopped programs"));
}

TEST_F(StoppedProgramsTest, ManyUsersWithOneEachAreBoundedToo) {
  for (uint32_t uid = 1001; uid <= 1010; ++uid) Add(1, uid);
  const auto left_out = UsersWhoHoldUp(StoppedPrograms(proc_), 1000, &response_);
  ASSERT_TRUE(left_out.ok()) << left_out.status();
  EXPECT_EQ(left_out->size(), 6u);
}

TEST_F(StoppedProgramsTest, ThoseOfTheAgentsOwnUserAreSaidAtOnce) {
  Add(4, 1000);
  EXPECT_TRUE(UsersWhoHoldUp(StoppedPrograms(proc_), 1000, &response_)->empty());
  Add(1, 1000);
  const auto refused = UsersWhoHoldUp(StoppedPrograms(proc_), 1000, &response_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("5 programs of this user are stopped"));
}

TEST_F(RegistrationTest, OneThatEndsMeanwhileIsNoComplaint) {
  gate_.processes = {Program(7)};
  clock_.on_sleep = [&] { gate_.processes.clear(); };
  const auto unknown = AwaitRegistration(lttng_, gate_, clock_, &patience_);
  ASSERT_TRUE(unknown.ok());
  EXPECT_TRUE(unknown->empty());
}

TEST_F(RegistrationTest, OneThatIsKnownAndWasNotReachedIsTold) {
  const auto coverage = [](int32_t pid, uint64_t lost, int64_t on_ns) {
    v1::ProcessCoverage one;
    one.set_own_pid(pid);
    one.set_lost_count(lost);
    one.set_on_monotonic_ns(on_ns);
    return one;
  };
  EXPECT_THAT(
      Unreached({coverage(7, 5, 0), coverage(8, 5, 0), coverage(9, 5, 1), coverage(10, 0, 0)},
                {Program(8)}),
      testing::ElementsAre(7));
}

TEST_F(RegistrationTest, WhatLttngSaysIsTheError) {
  gate_.processes = {Program(7)};
  lttng_.failures["programs"] = absl::UnavailableError("no daemon");
  EXPECT_EQ(AwaitRegistration(lttng_, gate_, clock_, &patience_).status().message(), "no daemon");
}

}  // namespace
}  // namespace syncline::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/guard.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>

#include "agent/recording/fakes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::HasSubstr;
using testing::Optional;

constexpr int64_t kSecondNs = 1'000'000'000;

journal::GuardOrders OpenedOrders() {
  journal::GuardOrders orders;
  orders.set_opened(true);
  orders.set_end_raw_ns(100 * kSecondNs);
  orders.set_lease_end_monotonic_ns(200 * kSecondNs);
  orders.set_size_limit_bytes(1000);
  orders.set_keep_free_bytes(1000);
  return orders;
}

GuardSight SightAt(int64_t now_ns) {
  return {.now_raw_ns = now_ns, .now_monotonic_ns = now_ns, .disk_free_bytes = 5000};
}

TEST(WhyGuardEnds, AnAgentThatLivesEndsItsRecordingItself) {
  EXPECT_EQ(WhyGuardEnds(OpenedOrders(), SightAt(300 * kSecondNs)), std::nullopt);
}

TEST(WhyGuardEnds, OfADeadAgentAtTheEndAndNotBefore) {
  GuardSight sight = SightAt(100 * kSecondNs - 1);
  sight.agent_gone = true;
  EXPECT_EQ(WhyGuardEnds(OpenedOrders(), sight), std::nullopt);
  sight.now_raw_ns += 1;
  EXPECT_THAT(WhyGuardEnds(OpenedOrders(), sight),
              Optional(HasSubstr("agent was dead at the end of the recording")));
}

TEST(WhyGuardEnds, ASilentAgentHasThirtySecondsMore) {
  GuardSight sight = SightAt(100 * kSecondNs + kSilentAgentNs - 1);
  sight.silent_ns = kSilentAgentNs;
  EXPECT_EQ(WhyGuardEnds(OpenedOrders(), sight), std::nullopt);
  sight.now_raw_ns += 1;
  EXPECT_THAT(WhyGuardEnds(OpenedOrders(), sight), Optional(HasSubstr("did not respond at the")));
  sight.silent_ns = kSilentAgentNs - 1;
  EXPECT_EQ(WhyGuardEnds(OpenedOrders(), sight), std::nullopt);
}

TEST(WhyGuardEnds, WithoutAnEndTheLeaseAndTheDiskCount) {
  journal::GuardOrders orders = OpenedOrders();
  orders.clear_end_raw_ns();
  GuardSight sight = SightAt(150 * kSecondNs);
  sight.agent_gone = true;
  EXPECT_EQ(WhyGuardEnds(orders, sight), std::nullopt);
  sight.now_monotonic_ns = 200 * kSecondNs;
  EXPECT_THAT(WhyGuardEnds(orders, sight), Optional(HasSubstr("lease expired")));
  sight.now_monotonic_ns = 0;
  sight.bytes = 1000;
  EXPECT_THAT(WhyGuardEnds(orders, sight), Optional(HasSubstr("size limit")));
  sight.bytes = 0;
  sight.disk_free_bytes = 999;
  EXPECT_THAT(WhyGuardEnds(orders, sight), Optional(HasSubstr("disk was nearly full")));
}

TEST(WhyGuardEnds, WhatNobodyCanStartAnyMoreEndsAtOnce) {
  journal::GuardOrders orders = OpenedOrders();
  orders.set_opened(false);
  GuardSight sight = SightAt(0);
  sight.agent_gone = true;
  EXPECT_THAT(WhyGuardEnds(orders, sight), Optional(HasSubstr("before the recording started")));
}

// A guard in a thread of this process, and the agent's end of its socket.
class RunGuardTest : public testing::Test {
 protected:
  RunGuardTest() {
    std::string pattern = testing::TempDir() + "guard-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair_), 0);
    exit_code_ = std::async(std::launch::async, [this] {
      return RunGuard(pair_[1], {.clock = &clock_, .room = &room_, .end = [this](const auto&) {
                                   ++ends_;
                                   v1::StopResponse response;
                                   response.set_complete(true);
                                   return response;
                                 }});
    });
  }
  ~RunGuardTest() override {
    CloseAgent();
    ::close(pair_[1]);
    std::filesystem::remove_all(directory_);
  }
  void CloseAgent() {
    if (pair_[0] >= 0) ::close(pair_[0]);
    pair_[0] = -1;
  }
  void Tell(journal::GuardOrders orders) {
    orders.set_directory(directory_.string());
    const std::string packet = orders.SerializeAsString();
    ASSERT_EQ(::send(pair_[0], packet.data(), packet.size(), 0),
              static_cast<ssize_t>(packet.size()));
  }

  std::filesystem::path directory_;
  FakeClock clock_;
  FakeRoom room_;
  std::atomic<int> ends_ = 0;
  int pair_[2] = {-1, -1};
  std::future<int> exit_code_;
};

TEST_F(RunGuardTest, DoesNothingForAnAgentThatEndsItsRecording) {
  Tell(OpenedOrders());
  journal::GuardOrders done;
  done.set_done(true);
  Tell(done);
  CloseAgent();
  EXPECT_EQ(exit_code_.get(), 0);
  EXPECT_EQ(ends_, 0);
  EXPECT_FALSE(GuardResult(directory_).has_value());
}

TEST_F(RunGuardTest, EndsTheRecordingOfADeadAgentWhenItIsOver) {
  Tell(OpenedOrders());
  CloseAgent();
  EXPECT_EQ(exit_code_.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  EXPECT_EQ(ends_, 0);
  clock_.now_ns = 100 * kSecondNs;
  EXPECT_EQ(exit_code_.get(), 0);
  EXPECT_EQ(ends_, 1);
  const auto result = GuardResult(directory_);
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->complete());
  EXPECT_THAT(result->stop_reason(), HasSubstr("the agent was dead"));
}

TEST_F(RunGuardTest, AnAgentThatDiesBeforeItSaidWhatToGuard) {
  CloseAgent();
  EXPECT_EQ(exit_code_.get(), 0);
  EXPECT_EQ(ends_, 0);
}

TEST(EndLeftoverGuard, LeavesAnotherProcessAlone) {
  // This process is not a guard: it is still there afterwards.
  EndLeftoverGuard("/proc", ::getpid(), "r1");
  EndLeftoverGuard("/proc", 0, "r1");
  EndLeftoverGuard("/proc", -1, "r1");
}

}  // namespace
}  // namespace syncline::agent

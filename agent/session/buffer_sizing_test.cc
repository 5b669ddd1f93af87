// SPDX-License-Identifier: Apache-2.0
#include "agent/session/buffer_sizing.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(PlanBuffers, ChoosesTheFullSizeWhereThereIsRoom) {
  const auto plan = PlanBuffers({.possible_cpus = 2}, {.shm_free_bytes = 1024 * kMiB});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->subbuffer_bytes, kMiB);
  EXPECT_EQ(plan->subbuffer_count, 4u);
  EXPECT_FALSE(plan->shrunk);
}

// Docker's default of 64 MiB equals 32 CPUs of LTTng's own default channel.
TEST(PlanBuffers, ShrinksForDockersSharedMemory) {
  const auto plan = PlanBuffers({.possible_cpus = 32}, {.shm_free_bytes = 64 * kMiB});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->shrunk);
  EXPECT_LE(plan->total_bytes, 16 * kMiB);
  EXPECT_GE(plan->subbuffer_bytes, 16u << 10);
}

TEST(PlanBuffers, RespectsTheCgroup) {
  const auto plan = PlanBuffers({.possible_cpus = 4},
                                {.shm_free_bytes = 4096 * kMiB, .cgroup_headroom_bytes = 8 * kMiB});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LE(plan->total_bytes, 2 * kMiB);
}

TEST(PlanBuffers, RefusesWhatCannotFit) {
  const auto plan = PlanBuffers({.possible_cpus = 128}, {.shm_free_bytes = 4 * kMiB});
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(plan.status().message()), testing::HasSubstr("--shm-size"));
}

// What was seen in /dev/shm on two CPUs while such a session ran, the metadata channel included.
TEST(PlanBuffers, AnnouncesAtLeastWhatLttngTakes) {
  struct Seen {
    uint64_t subbuffer_bytes;
    uint32_t subbuffer_count;
    uint64_t kib;
  };
  for (const Seen& seen :
       {Seen{4096, 2, 108}, Seen{16 << 10, 4, 244}, Seen{64 << 10, 4, 724}, Seen{kMiB, 4, 10324}}) {
    const auto plan = PlanBuffers({.possible_cpus = 2,
                                   .requested_subbuffer_bytes = seen.subbuffer_bytes,
                                   .requested_subbuffer_count = seen.subbuffer_count},
                                  {.shm_free_bytes = 1024 * kMiB});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_GE(plan->total_bytes, seen.kib << 10) << seen.subbuffer_bytes;
    EXPECT_LE(plan->total_bytes, (seen.kib + 256) << 10) << seen.subbuffer_bytes;
  }
}

TEST(PlanBuffers, TakesWhatWasAskedForOrRefuses) {
  const BufferNeeds asked{
      .possible_cpus = 2, .requested_subbuffer_bytes = 4096, .requested_subbuffer_count = 2};
  const auto plan = PlanBuffers(asked, {.shm_free_bytes = kMiB});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->subbuffer_bytes, 4096u);
  EXPECT_EQ(plan->subbuffer_count, 2u);
  BufferNeeds large = asked;
  large.requested_subbuffer_bytes = 4 * kMiB;
  EXPECT_EQ(PlanBuffers(large, {.shm_free_bytes = 8 * kMiB}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(PlanBuffers, RefusesSizesThatLttngWouldRound) {
  EXPECT_EQ(
      PlanBuffers({.requested_subbuffer_bytes = 5000}, {.shm_free_bytes = kMiB}).status().code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PlanBuffers({.requested_subbuffer_count = 3}, {.shm_free_bytes = kMiB}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PlanBuffers({.requested_subbuffer_count = 1}, {.shm_free_bytes = kMiB}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(PlanBuffers, RefusesSizesWhoseProductWouldOverflow) {
  BufferNeeds needs{.possible_cpus = 2, .requested_subbuffer_bytes = uint64_t{1} << 63};
  EXPECT_EQ(PlanBuffers(needs, {.shm_free_bytes = kMiB}).status().code(),
            absl::StatusCode::kInvalidArgument);
  needs.requested_subbuffer_bytes = 4096;
  needs.requested_subbuffer_count = uint32_t{1} << 31;
  EXPECT_EQ(PlanBuffers(needs, {.shm_free_bytes = kMiB}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace syncline::agent

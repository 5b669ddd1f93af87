// SPDX-License-Identifier: Apache-2.0
// Whose it is that a broadcast sends.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "timeline/collectives.h"

namespace syncline::timeline {
namespace {

using testing::ElementsAre;
using testing::Eq;

constexpr uint32_t kMain = 1;
constexpr uint32_t kOther = 2;

class Rank {
 public:
  Rank(CollectiveMatcher* matcher, int32_t rank)
      : matcher_(matcher), process_(matcher->AddProcess(static_cast<uint32_t>(rank))) {
    for (const std::string name : {"0", "1"}) {
      matcher->OnGroup(process_, kMain, {{"", "", name, "0-1", "", 2}, rank, 0});
    }
  }

  void Root(int32_t root, const std::string& group = "0", uint32_t thread = kMain) {
    matcher_->OnRoot(process_, thread, group, root);
  }
  void Launch(const std::string& name = "broadcast") {
    const CollectiveMatcher::Place now = {{{0}, now_ns_}, {now_ns_}, 0};
    matcher_->OnCall(process_, kMain, "0", name, next_++, 4, now);
    matcher_->OnLaunch(process_, kMain, name, now);
    now_ns_ += 100;
  }

 private:
  CollectiveMatcher* matcher_;
  uint32_t process_;
  uint64_t next_ = 0;
  int64_t now_ns_ = 1000;
};

std::vector<std::optional<int32_t>> RootsOf(CollectiveMatcher* matcher) {
  std::vector<std::optional<int32_t>> roots;
  for (const Collective& one : matcher->Match().collectives) roots.push_back(one.root);
  return roots;
}

TEST(CollectiveRootsTest, OfBroadcastsWhileItIsSaid) {
  CollectiveMatcher matcher;
  for (const int32_t rank : {0, 1}) {
    Rank one(&matcher, rank);
    one.Launch();
    one.Root(1);
    one.Launch();
    one.Launch("allreduce");
    one.Launch();
    one.Root(-1);
    one.Launch();
  }
  EXPECT_THAT(RootsOf(&matcher),
              ElementsAre(Eq(std::nullopt), Eq(1), Eq(std::nullopt), Eq(1), Eq(std::nullopt)));
}

TEST(CollectiveRootsTest, AnotherThreadOrGroupSaysNothing) {
  CollectiveMatcher matcher;
  for (const int32_t rank : {0, 1}) {
    Rank one(&matcher, rank);
    one.Root(1, "0", kOther);
    one.Launch();
    one.Root(1, "1");
    one.Launch();
  }
  EXPECT_THAT(RootsOf(&matcher), ElementsAre(Eq(std::nullopt), Eq(std::nullopt)));
}

TEST(CollectiveRootsTest, OneRankIsEnoughButNotTwoThatDiffer) {
  CollectiveMatcher matcher;
  Rank first(&matcher, 0);
  Rank second(&matcher, 1);
  first.Root(0);
  first.Launch();
  first.Launch();
  second.Launch();
  second.Root(1);
  second.Launch();
  EXPECT_THAT(RootsOf(&matcher), ElementsAre(Eq(0), Eq(std::nullopt)));
}

}  // namespace
}  // namespace syncline::timeline

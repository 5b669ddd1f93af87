// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/merge_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "coordinator/fleet/fake_agent.h"
#include "coordinator/host/fake_clock.h"

namespace syncline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kSecond = 1'000'000'000;
constexpr char kHint[] = "--look-back";

class MergeViewTest : public ::testing::Test {
 protected:
  MergeViewTest() {
    context_.clock = &clock_;
    context_.err = &err_;
    context_.err_is_terminal = true;
    options_.range.from = TimelineTime{60 * kSecond};
  }

  // What a merge shows that reports every second for `seconds`.
  std::string Shown(int64_t seconds) {
    err_.str("");
    MergeView view(&context_, options_);
    for (int64_t second = 1; second <= seconds; ++second) {
      clock_.Wait(kSecond, {});
      const TimelineTime time{4 * second * kSecond};
      view.OnProgress({"worker-0", time, static_cast<uint64_t>(second) * 1000,
                       options_.range.from.has_value() && time < *options_.range.from});
    }
    return err_.str();
  }
  static int Count(const std::string& text, const std::string& part) {
    int count = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
    return count;
  }

  host::FakeClock clock_;
  std::ostringstream err_;
  Context context_;
  merge::MergeOptions options_;
};

TEST_F(MergeViewTest, SaysWhatIsReadAndOnceThatOneMayReadLess) {
  EXPECT_EQ(Shown(1), "");
  const std::string soon = Shown(4);
  EXPECT_THAT(soon, HasSubstr("worker-0: reading what was at"));
  EXPECT_THAT(soon, Not(HasSubstr(kHint)));
  EXPECT_EQ(Count(Shown(14), kHint), 1);
}

TEST_F(MergeViewTest, NotWhereOneCannotReadLess) {
  options_.look_back = {merge::LookBack::How::kAtMost, kSecond};
  EXPECT_THAT(Shown(14), Not(HasSubstr(kHint)));
  options_ = {};
  EXPECT_THAT(Shown(14), Not(HasSubstr(kHint)));
}

TEST_F(MergeViewTest, NothingOnAFile) {
  context_.err_is_terminal = false;
  EXPECT_EQ(Shown(14), "");
}

}  // namespace
}  // namespace syncline::cli

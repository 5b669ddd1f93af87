// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/record_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "coordinator/fleet/fake_agent.h"
#include "coordinator/host/fake_clock.h"

namespace syncline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kSecond = 1'000'000'000;
constexpr uint64_t kMiB = uint64_t{1} << 20;

// What a recording of `window_ns` shows when two nodes have written `bytes` each.
std::string Shown(int64_t window_ns, int64_t elapsed_ns, uint64_t bytes) {
  host::FakeClock clock;
  std::ostringstream err;
  Context context;
  context.clock = &clock;
  context.err = &err;
  context.progress = "always";
  RecordView view(&context, window_ns);
  record::NodeCounters node;
  node.reachable = true;
  node.bytes = bytes;
  view.OnCounters(elapsed_ns, std::vector<record::NodeCounters>{node, node});
  return err.str();
}

TEST(RecordView, SaysHowLargeTheTracesWillBe) {
  EXPECT_THAT(Shown(60 * kSecond, 15 * kSecond, 10 * kMiB), HasSubstr("about 80.0 MiB of traces"));
}

TEST(RecordView, GuessesNothing) {
  EXPECT_THAT(Shown(0, 15 * kSecond, kMiB), Not(HasSubstr("about")));            // until Ctrl-C
  EXPECT_THAT(Shown(60 * kSecond, kSecond / 2, kMiB), Not(HasSubstr("about")));  // too early
  EXPECT_THAT(Shown(60 * kSecond, 15 * kSecond, 0), Not(HasSubstr("about")));    // all in buffers
  EXPECT_THAT(Shown(60 * kSecond, 61 * kSecond, kMiB), Not(HasSubstr("about")));
}

}  // namespace
}  // namespace syncline::cli

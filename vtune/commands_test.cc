// SPDX-License-Identifier: Apache-2.0
#include "vtune/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncline::vtune {
namespace {

using ::testing::ElementsAre;

TEST(CollectCommand, AttachesPaused) {
  EXPECT_THAT(
      CollectCommand("/opt/vtune", {.analysis = "hotspots"}, 17, "/var/tmp/r"),
      ElementsAre("/opt/vtune", "-collect", "hotspots", "-knob", "sampling-mode=hw", "-knob",
                  "sampling-interval=0.1", "-start-paused", "-finalization-mode=deferred",
                  "-target-pid=17", "-result-dir", "/var/tmp/r"));
}

TEST(CollectCommand, HasTheLimitsThatWereAskedFor) {
  EXPECT_THAT(
      CollectCommand("v", {.analysis = "io", .data_limit_mb = 200, .ring_buffer_s = 10}, 1, "r"),
      ElementsAre("v", "-collect", "io", "-start-paused", "-data-limit=200", "-ring-buffer=10",
                  "-finalization-mode=deferred", "-target-pid=1", "-result-dir", "r"));
}

TEST(ControlCommand, NamesTheResult) {
  EXPECT_THAT(ControlCommand("v", "resume", "r"),
              ElementsAre("v", "-command", "resume", "-result-dir", "r"));
}

TEST(Texts, AreCommandsForAShell) {
  EXPECT_EQ(FinalizeText("run/a b"), "vtune -finalize -result-dir 'run/a b'");
  EXPECT_EQ(HotspotsText("r"), "vtune -report hotspots -result-dir r -group-by thread,function");
  EXPECT_EQ(TimelineText("r", {.begin_ns = 1'500'000'000, .end_ns = 2'000'000'000}),
            "vtune -report timeline -result-dir r -report-knob column-by=CPUTime "
            "-report-knob start=1.500000 -report-knob end=2.000000");
  EXPECT_EQ(ImportText("a-hostname-b.csv", "r"), "vtune -import a-hostname-b.csv -result-dir r");
  const std::vector<std::string> hostile = {"a'b", "", "$(id)"};
  EXPECT_EQ(ShellText(hostile), "'a'\\''b' '' '$(id)'");
}

}  // namespace
}  // namespace syncline::vtune

// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/record_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "coordinator/cli/process_text.h"
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

// One in a container that the agent does not see into.
TEST(RecordView, APidThatIsNotKnownIsNotZero) {
  v1::ProcessInfo process;
  process.set_own_pid(26);
  process.set_rank(-1);
  EXPECT_THAT(ProcessText(process), ::testing::StartsWith("pid 26 in its own namespace · "));
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

TEST(ProcessTexts, WorkersOfOneRankAreOneLine) {
  std::vector<v1::ProcessInfo> processes(8);
  for (size_t i = 0; i < processes.size(); ++i) {
    v1::ProcessInfo& process = processes[i];
    process.set_pid(static_cast<int32_t>(10 + i));
    process.set_rank(i == 0 ? -1 : 0);
    process.set_world_size(2);
    process.set_command_line("train");
    process.set_has_control_block(true);
    process.add_sources("net");
    process.set_part(i == 0 ? "launcher" : i == 1 ? "rank" : "loader worker");
  }
  processes[7].set_rank(1);
  EXPECT_THAT(ProcessTexts(processes),
              ::testing::ElementsAre("pid 10 · launcher · net · train",
                                     "pid 11 · rank 0 of 2 · net · train",
                                     "5 loader workers of rank 0 · pids 12, 13, 14, 15 and 1 more",
                                     "pid 17 · loader worker of rank 1 · net · train"));
  for (const size_t i : {2u, 3u, 7u}) processes[i].set_part("child");
  processes[7].set_rank(0);
  processes[7].set_command_line("ffmpeg");
  EXPECT_THAT(ProcessTexts(processes),
              ::testing::ElementsAre("pid 10 · launcher · net · train",
                                     "pid 11 · rank 0 of 2 · net · train",
                                     "2 children of rank 0 · pids 12, 13 · train",
                                     "3 loader workers of rank 0 · pids 14, 15, 16",
                                     "pid 17 · child of rank 0 · net · ffmpeg"));
  for (const size_t i : {2u, 3u, 7u}) processes[i].set_part("loader worker");
  processes[3].set_stopped(true);
  processes[4].clear_sources();
  processes[4].add_sources("itt");
  processes[5].set_has_control_block(false);
  EXPECT_THAT(ProcessTexts(processes)[2],
              HasSubstr(" · 1 not traceable · messages of 1 not recorded · 1 stopped"));
}

}  // namespace
}  // namespace syncline::cli

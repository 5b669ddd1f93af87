// SPDX-License-Identifier: Apache-2.0
// Two ranks of PyTorch's as a recording's text, for tests: rank 1 is late by a known time.
#ifndef SYNCLINE_COORDINATOR_MERGE_WHY_JOB_TEST_H_
#define SYNCLINE_COORDINATOR_MERGE_WHY_JOB_TEST_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "timeline/testing/two_node_job.h"

namespace syncline::merge {

using timeline::testing::kJobOffsetNs;
using timeline::testing::kJobStepNs;
using timeline::testing::kJobSteps;
using timeline::testing::kJobZeroNs;

inline constexpr int64_t kUs = 1'000;
inline constexpr int64_t kSteps = 62;
inline constexpr int64_t kPeriodNs = 3'000 * kUs;  // of steps
inline constexpr int64_t kBeginNs = 5'000 * kUs;   // of the first step, on the timeline
inline constexpr int64_t kLateNs = 800 * kUs;      // rank 1 launches so much later
inline constexpr uint64_t kFirstNumber = 40;       // of the collectives

struct FakeRank {
  const char* node = "master-0";
  int64_t zero_ns = kJobZeroNs;
  int rank = 0;
  int64_t late_ns = 0;
  const char* ranks = "0-1";
  int size = 2;
  int64_t killed_ns = INT64_MAX;  // on the timeline
  bool transfers = false;         // rank 0 sends to rank 1 in each step
  int root = -1;                  // what it launches is a broadcast of this rank's
};

// A rank that steps, launches one collective a step, and waits for it.
class RankText {
 public:
  explicit RankText(const FakeRank& rank) : rank_(rank) {}

  std::string Text() {
    const auto operators = [](int thread) {
      return absl::StrCat("syncline_torch:operators thread=", thread, " on=1");
    };
    Add(50 * kUs, "syncline:on generation=1 process=1 pid=+10 pidns=5 start_ticks=7");
    Add(60 * kUs, operators(7));
    Add(61 * kUs, operators(8));
    Add(70 * kUs, absl::StrCat("syncline_torch:group thread=7 group=5 description=6 ranks=7 "
                               "rank=+",
                               rank_.rank, " size=", rank_.size, " sequence=", kFirstNumber));
    for (int64_t step = 0; step < kSteps; ++step) {
      const int64_t at = kBeginNs + step * kPeriodNs;
      const int64_t launch_ns = at + 1'000 * kUs + rank_.late_ns;
      const int64_t left_ns = at + 1'600 * kUs + kLateNs;
      Task(7, 1, at, launch_ns - 10 * kUs);
      if (rank_.root >= 0) {
        Add(launch_ns - 5 * kUs,
            absl::StrCat("syncline_torch:root thread=7 group=5 root=+", rank_.root));
      }
      Task(7, 2, launch_ns, launch_ns + 50 * kUs);
      Task(8, 3, launch_ns + 60 * kUs, left_ns);
      Task(7, 4, left_ns + 50 * kUs, left_ns + 250 * kUs);
      if (rank_.transfers) Transfer(step, at + 2'700 * kUs);
    }
    const int64_t end_ns = kJobSteps * kJobStepNs + 10 * kUs;
    Add(end_ns, absl::StrCat("syncline:off generation=1 process=1 events=", events_.size() + 1,
                             " lost=0 cost_ns=1000"));
    std::stable_sort(events_.begin(), events_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::string text = absl::StrCat(
        "node ", rank_.node, " shift ", -rank_.zero_ns,
        "\nenv tracer_buffering_scheme uid\nenv tracer_buffering_id 0\n"
        "process key=1 uid=0 pid=10 pidns=5 ticks=7 rank=",
        rank_.rank,
        " command=\"/usr/bin/python -u /home/ann/train.py --lr 1\"\n"
        "thread 7 10 python\nthread 8 11 pt_gloo_runner\n"
        "name 1 aten::conv2d\n",
        rank_.root < 0 ? "name 2 c10d::allreduce_\nname 3 gloo:all_reduce\n"
                       : "name 2 c10d::broadcast_\nname 3 gloo:broadcast\n",
        "name 4 Optimizer.step#SGD.step\nname 5 0\nname 6 default_pg\nname 7 ", rank_.ranks,
        "\nname 8 PyTorch\nname 9 send\nname 10 recv\nstream syncline_0\n");
    for (const auto& [time_ns, event] : events_) absl::StrAppend(&text, time_ns, " ", event, "\n");
    return text;
  }

 private:
  void Add(int64_t at_ns, const std::string& event) {
    if (at_ns < rank_.killed_ns) events_.emplace_back(rank_.zero_ns + at_ns, event);
  }
  // Rank 1 has waited for it for 150 us.
  void Transfer(int64_t id, int64_t at_ns) {
    Add(at_ns, absl::StrCat("syncline_torch:transfer_begin thread=7 d1=", id,
                            " group=5 name=", rank_.rank == 0 ? 9 : 10, " peer=+", 1 - rank_.rank,
                            " tag=+0 bytes=8"));
    if (rank_.rank == 0) return;
    Add(at_ns + 200 * kUs, absl::StrCat("syncline_torch:transfer_end thread=7 d1=", id,
                                        " peer=-1 waited=", 150 * kUs));
  }
  void Task(int thread, int name, int64_t begin_ns, int64_t end_ns) {
    const std::string fields =
        absl::StrCat(" thread=", thread, " domain=8 name=", name, " depth=0");
    Add(begin_ns, "syncline_itt:task_begin" + fields);
    Add(end_ns, "syncline_itt:task_end" + fields);
  }

  const FakeRank rank_;
  std::vector<std::pair<int64_t, std::string>> events_;
};

inline std::string Job(const FakeRank& first, const FakeRank& second) {
  return absl::StrCat("window 0 ", kJobSteps * kJobStepNs, "\n", RankText(first).Text(),
                      RankText(second).Text());
}

inline const FakeRank kFirst;
inline const FakeRank kSecond{"worker-0", kJobZeroNs + kJobOffsetNs, 1, kLateNs};

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_WHY_JOB_TEST_H_

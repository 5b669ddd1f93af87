// SPDX-License-Identifier: Apache-2.0
// Small jobs whose times are written down, for tests of what ranks wait for.
#ifndef SYNCLINE_ANALYSIS_WHY_TESTING_HAND_JOB_H_
#define SYNCLINE_ANALYSIS_WHY_TESTING_HAND_JOB_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "analysis/why/job_input.h"

namespace syncline::analysis::why {

inline constexpr int64_t kUs = 1'000;
inline constexpr int64_t kMs = 1'000'000;
inline constexpr size_t kSteps = 80;

// A job written down task by task: what a rank does in a step, again and again. Times in ms.
class HandJob {
 public:
  explicit HandJob(int32_t ranks = 2) {
    input_.names = {"",
                    "aten::conv2d",
                    "c10d::allreduce_",
                    "Optimizer.step#SGD.step",
                    "PyTorch",
                    "gloo:all_reduce",
                    "allreduce",
                    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                    "send/recv"};
    for (int32_t rank = 0; rank < ranks; ++rank) {
      RankInput& of_rank = input_.ranks.emplace_back();
      of_rank.rank = rank;
      of_rank.node = "node";
      of_rank.threads = {{1, {}}, {2, {}}};
    }
    input_.clock_bound_ns = 0;
  }

  void Compute(size_t rank, int64_t begin, int64_t end) { Add(rank, 0, 1, begin, end); }
  void Load(size_t rank, int64_t begin, int64_t end) { Add(rank, 0, 7, begin, end); }
  void StepOptimizer(size_t rank, int64_t begin, int64_t end) { Add(rank, 0, 3, begin, end); }
  // Launched on the driver at `at`, carried out by a thread of Gloo's.
  void Collective(size_t rank, uint64_t number, int64_t at, int64_t begin, int64_t end) {
    Add(rank, 0, 2, at, at, 10 * kUs);
    Add(rank, 1, 5, begin, end);
    const auto ns = [&](int64_t ms) { return base_ns_ + ms * kMs; };
    input_.ranks[rank].collectives.push_back({0, number, 6, ns(at), ns(end), ns(at)});
    if (rank == 1) input_.arrivals.push_back({0, number, true, std::nullopt, 0, 0, Level::kProven});
  }
  // The last one comes from rank 0.
  void Broadcast() {
    input_.arrivals.back().everybody_waits = false;
    input_.arrivals.back().root = 0;
  }
  // One rank's side of what two ranks send and receive: called for at `at`, waited for from `asked`
  // until `end`. Each channel is a group.
  void Transfer(size_t rank, uint32_t group, uint64_t number, int64_t at, int64_t asked,
                int64_t end) {
    const auto ns = [&](int64_t ms) { return base_ns_ + ms * kMs; };
    CollectiveEntry entry{group, number, 8, ns(at), ns(end), ns(at)};
    entry.transfer = true;
    entry.tid = entry.waited_tid = 1;
    entry.waited_ns = (end - asked) * kMs;
    input_.ranks[rank].collectives.push_back(entry);
    if (rank == 1) {
      input_.arrivals.push_back({group, number, true, std::nullopt, 0, 0, Level::kProven});
    }
  }
  void NextStep(int64_t ms) { base_ns_ += ms * kMs; }
  JobInput& Done() {
    for (RankInput& rank : input_.ranks) rank.window = {0, base_ns_};
    return input_;
  }

 private:
  void Add(size_t rank, size_t thread, NameId name, int64_t begin, int64_t end,
           int64_t longer_ns = 0) {
    TaskSpan span;
    span.begin_ns = base_ns_ + begin * kMs;
    span.end_ns = base_ns_ + end * kMs + longer_ns;
    span.name = name;
    span.category = 4;
    input_.ranks[rank].threads[thread].spans.push_back(span);
  }

  JobInput input_;
  int64_t base_ns_ = 0;
};

// The rest of a step in which rank 0 has worked for 30 ms, rank 1 for 10: each waits for the other
// once.
inline void MeetInTurn(uint64_t step, HandJob* job) {
  job->Collective(0, 2 * step, 30, 30, 34);
  job->Collective(1, 2 * step, 10, 10, 34);
  job->Compute(0, 34, 44);
  job->Compute(1, 34, 64);
  job->Collective(0, 2 * step + 1, 44, 44, 68);
  job->Collective(1, 2 * step + 1, 64, 64, 68);
  for (const size_t rank : {0, 1}) job->StepOptimizer(rank, 68, 70);
  job->NextStep(70);
}

// Rank 0 has more work before the first collective, rank 1 as much more before the second: nobody
// has more work than the other, and each waits for the other once.
inline JobInput InTurn() {
  HandJob job;
  for (uint64_t step = 0; step < kSteps; ++step) {
    job.Compute(0, 0, 30);
    job.Compute(1, 0, 10);
    MeetInTurn(step, &job);
  }
  return job.Done();
}

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_TESTING_HAND_JOB_H_

// The same for every node, at once.
#ifndef SYNCLINE_COORDINATOR_RECORD_PARALLEL_H_
#define SYNCLINE_COORDINATOR_RECORD_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace syncline::record {

// Calls `work(i)` for every i below `count`, up to `threads_max` at a time, and waits for all.
// Calls that wait for an instant (start, stop) need a thread per node; a waiting thread costs a
// stack, no CPU.
template <class Work>
void InParallel(size_t count, size_t threads_max, const Work& work) {
  std::atomic<size_t> next{0};
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < std::min(count, threads_max); ++i) threads.emplace_back(run);
  run();
}

inline constexpr size_t kThreadPerNode = ~size_t{0};

}  // namespace syncline::record

#endif  // SYNCLINE_COORDINATOR_RECORD_PARALLEL_H_

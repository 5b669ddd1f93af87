// SPDX-License-Identifier: Apache-2.0
// Work that is cut into many pieces, shared out over threads.
#ifndef SYNCLINE_COMMON_PARALLEL_H_
#define SYNCLINE_COMMON_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace syncline {

// Calls `work(i, thread)` for every i below `count`, each once, up to `threads_max` at a time, and
// waits for all. Calls with the same `thread`, which is below `threads_max`, come one after the
// other. The caller's thread is number 0, and the only one where one is enough.
template <class Work>
void InParallelByThread(size_t count, size_t threads_max, const Work& work) {
  std::atomic<size_t> next{0};
  const auto run = [&](size_t thread) {
    for (size_t i = next++; i < count; i = next++) work(i, thread);
  };
  std::vector<std::jthread> others;
  for (size_t thread = 1; thread < std::min(count, threads_max); ++thread) {
    others.emplace_back(run, thread);
  }
  run(0);
}

// The same where it does not matter which thread it is.
template <class Work>
void InParallel(size_t count, size_t threads_max, const Work& work) {
  InParallelByThread(count, threads_max, [&work](size_t i, size_t) { work(i); });
}

// For calls that wait for an instant, or for somebody else: a waiting thread costs a stack, no CPU.
inline constexpr size_t kThreadForEach = ~size_t{0};

}  // namespace syncline

#endif  // SYNCLINE_COMMON_PARALLEL_H_

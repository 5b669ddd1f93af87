// SPDX-License-Identifier: Apache-2.0
// oneTBB as its users build it with profiling: libtbb is an ITT program that is not ours.
#define TBB_USE_PROFILING_TOOLS 2
#include <oneapi/tbb/parallel_for.h>

#include <atomic>
#include <chrono>

int main() {
  std::atomic<long> sum = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(3000);
  while (std::chrono::steady_clock::now() < until) {
    oneapi::tbb::parallel_for(0, 2000, [&](int i) { sum += i; });
  }
  return sum > 0 ? 0 : 1;
}

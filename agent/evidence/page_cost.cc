// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/page_cost.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "agent/probe/clock.h"

namespace syncline::agent {
namespace {

constexpr size_t kPages = 64;  // far fewer than a huge page holds
constexpr size_t kTries = 7;

// -1: there is no memory.
int64_t TryNs(size_t page_bytes) {
  const size_t bytes = kPages * page_bytes;
  const int64_t begin_ns = ThreadCpuNs();
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return -1;
  auto* const first = static_cast<volatile std::byte*>(memory);
  for (size_t at = 0; at < bytes; at += page_bytes) first[at] = std::byte{1};
  ::munmap(memory, bytes);
  return (ThreadCpuNs() - begin_ns) / static_cast<int64_t>(kPages);
}

}  // namespace

int64_t MeasurePageNs() {
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  if (page_bytes <= 0) return 0;
  std::array<int64_t, kTries> tries{};
  for (int64_t& one : tries) one = TryNs(static_cast<size_t>(page_bytes));
  std::sort(tries.begin(), tries.end());
  return tries.front() < 0 ? 0 : tries[kTries / 2];
}

}  // namespace syncline::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/code/software_cost.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "agent/probe/clock.h"

namespace syncline::agent {
namespace {

constexpr size_t kPages = 256;
constexpr int kRounds = 7;  // the fastest counts: others were interrupted
// What is measured below these is the noise of the measurement.
constexpr int64_t kFaultNsMin = 20;
constexpr int64_t kNoteNsMin = 200;

// ns of processor time for each of kPages new pages. -1: no memory.
int64_t FaultNs() {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* const mapped =
      ::mmap(nullptr, kPages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return -1;
  ::madvise(mapped, kPages * page, MADV_NOHUGEPAGE);
  auto* const memory = static_cast<volatile char*>(mapped);
  const int64_t begin_ns = ThreadCpuNs();
  for (size_t i = 0; i < kPages; ++i) memory[i * page] = 1;
  const int64_t passed_ns = ThreadCpuNs() - begin_ns;
  ::munmap(mapped, kPages * page);
  return passed_ns / static_cast<int64_t>(kPages);
}

}  // namespace

SoftwareCost MeasureSoftwareCost(const OpenSoftwareRing& open, bool kernel) {
  constexpr uint64_t kNever = uint64_t{1} << 40;
  constexpr std::array<uint64_t, 3> kPeriods = {0, kNever, 1};  // 0: not watched
  std::array<int64_t, 3> best_ns = {INT64_MAX, INT64_MAX, INT64_MAX};
  SoftwareCost cost;
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < kPeriods.size(); ++i) {
      std::unique_ptr<SoftwareRing> ring;
      if (kPeriods[i] > 0) {
        auto opened = open(0, kernel, kPeriods[i]);
        if (!opened.ok()) return cost;
        ring = *std::move(opened);
        ring->Enable();
      }
      const int64_t ns = FaultNs();
      if (ns < 0) return cost;
      best_ns[i] = std::min(best_ns[i], ns);
    }
  }
  cost.fault_ns = std::max(best_ns[1] - best_ns[0], kFaultNsMin);
  cost.note_ns = std::max(best_ns[2] - best_ns[1], kNoteNsMin);
  return cost;
}

}  // namespace syncline::agent

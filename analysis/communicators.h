// SPDX-License-Identifier: Apache-2.0
// NCCL's communicators: what the devices of all of its ranks did for one collective, and who was
// waited for.
//
// Two ranks' kernels are of one collective when they have the communicator, the function and the
// number in common: NCCL counts a communicator's calls of each function alike on all of its ranks.
// Not matched is a number that a rank shows twice (graphs that are replayed do not count), one that
// not all ranks show, and one whose sizes differ.
//
// Of a collective whose every result needs every rank's part (all-reduce, all-gather,
// reduce-scatter) kernels end together: who begins late has the shortest, and one that is longer
// waits by the difference. Both are measured by each device's own clock; how far two clocks are
// apart does not matter. Differences up to CommunicatorWait::skew_ns may be none, because kernels
// of one collective need not end at the same instant: 0.05 ms, a tenth of the shortest, or two
// steps of a device's clock, whichever is most. Of others nothing is said: ranks ahead of a late
// one in a broadcast's chain are done before it comes. Pure. Thread-safety: no state.
#ifndef SYNCLINE_ANALYSIS_COMMUNICATORS_H_
#define SYNCLINE_ANALYSIS_COMMUNICATORS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/levels.h"
#include "timeline/builder.h"

namespace syncline::analysis {

inline constexpr int64_t kCommunicatorSkewNs = 50'000;

struct CommunicatorMember {
  ProcessKey key;
  std::string process;       // its name
  int32_t job_rank = -1;     // as the process says it; -1: it does not
  uint32_t rank = 0;         // in the communicator
  uint64_t collectives = 0;  // and transfers, recorded
  bool placed = true;        // its device's clock could be placed
  // Of the collectives that CommunicatorReport::waits has:
  int64_t kernels_ns = 0;  // these two: what overlaps counts once
  int64_t waited_ns = 0;
  uint64_t last_in =
      0;  // it was waited for, by at least one other rank, and itself waited for none
};

// A collective that all ranks were recorded in, of a kind that shows who waits.
struct CommunicatorWait {
  TimelineTime begin;                // of the first kernel
  std::vector<TimelineTime> begins;  // these three by rank
  std::vector<int64_t> kernels_ns;
  std::vector<int64_t> waited_ns;
  int64_t skew_ns = 0;  // a shorter wait may be none
};

// What is covered by any of [begin, begin + length): sorts, and joins what overlaps.
struct Stretch {
  int64_t begin_ns = 0;
  int64_t length_ns = 0;
};
void JoinStretches(std::vector<Stretch>* stretches);

struct CommunicatorReport {
  uint64_t id = 0;
  uint32_t size = 0;
  std::string job;
  std::vector<CommunicatorMember> members;  // by rank; those that were recorded
  std::vector<CommunicatorWait> waits;      // by begin
  uint64_t other = 0;                       // matched, of a kind that does not show who waits
  uint64_t transfers = 0;                   // sends and receives, of all ranks
  // Collectives of which it is not known which are one.
  uint64_t repeated = 0;
  uint64_t incomplete = 0;  // not all ranks show it, and it is not at an edge of the recording
  uint64_t different = 0;
  uint64_t impossible = 0;  // a kernel ended before another had begun
  bool twice = false;       // two processes are one rank: nothing is matched

  bool has_all() const { return members.size() == size && !twice; }
};

// By job, then the largest first, then id. With a `window` only what begins in it. `models` say how
// far nodes' clocks may be apart.
std::vector<CommunicatorReport> CommunicatorsOf(
    std::span<const timeline::NodeResult> nodes, const Models& models = {},
    const std::optional<timeline::Interval>& window = std::nullopt);

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_COMMUNICATORS_H_

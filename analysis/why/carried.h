// SPDX-License-Identifier: Apache-2.0
// How ranks carried their collectives out: when Gloo's thread began each, what kept it busy before,
// and how ranks' clocks lie beside each other. What the critical path and the replay are made of.
// Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_CARRIED_H_
#define SYNCLINE_ANALYSIS_WHY_CARRIED_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "analysis/why/job_input.h"
#include "analysis/why/task_names.h"

namespace syncline::analysis::why {

// Of one collective on one rank.
struct Carried {
  int64_t begun_ns = 0;  // by Gloo's thread; not recorded: when it was entered
  bool recorded = false;
  // What that thread carried out before: index into the rank's collectives.
  std::optional<uint32_t> before;
};

// Beside rank.collectives.
std::vector<Carried> CarriedOf(const RankInput& rank, const TaskNames& names);

// A rank's clock beside the timeline's, by its collectives' entries. `rank` outlives this, has a
// collective, and all of them are placed on the timeline.
class RankClock {
 public:
  explicit RankClock(const RankInput& rank) : entries_(rank.collectives) {}

  int64_t TimelineNs(int64_t own_ns) const;

 private:
  std::span<const CollectiveEntry> entries_;
};

// Whether entries of different ranks can be compared.
bool ArePlaced(const JobInput& input);

// Whose collective it is: index into JobInput::ranks, and into the rank's collectives.
struct Member {
  size_t rank = 0;
  uint32_t entry = 0;
};

// By group and number, the members of collectives in which everybody waits for everybody and of
// which all entries were recorded.
using Meetings = std::map<std::pair<uint32_t, uint64_t>, std::vector<Member>>;
Meetings MeetingsOf(const JobInput& input);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_CARRIED_H_

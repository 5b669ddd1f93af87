// SPDX-License-Identifier: Apache-2.0
// How ranks carried their collectives out: when Gloo's thread began each, what kept it busy before,
// and how ranks' clocks lie beside each other. What the critical path and the replay are made of.
// Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_CARRIED_H_
#define SYNCLINE_ANALYSIS_WHY_CARRIED_H_

#include <cstddef>
#include <cstdint>
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

// Of all ranks: sends and receives.
uint64_t TransfersOf(const JobInput& input);

// Whose collective it is: index into JobInput::ranks, and into the rank's collectives.
struct Member {
  size_t rank = 0;
  uint32_t entry = 0;
};

// Who waits for whom in a collective: `waiting` until all of `awaited` have begun it.
struct Circle {
  std::vector<Member> awaited;
  std::vector<Member> waiting;  // some of them
};

// Of the collectives of which all entries were recorded and it is known who waits for whom. Where
// everybody waits for everybody all are one circle. In a broadcast of Gloo's a rank waits for those
// on its way from the root, down a binomial tree, and, as Gloo sends nothing to whoever does not
// take it yet, for those that it sends to: there each rank waits in a circle of its own.
class Circles {
 public:
  explicit Circles(const JobInput& input);

  static constexpr uint32_t kNone = 0xffffffff;
  // Index into all().
  uint32_t Of(const Member& waiting) const { return of_[waiting.rank][waiting.entry]; }
  const std::vector<Circle>& all() const { return all_; }

 private:
  void Add(Circle circle);
  void AddTree(const std::vector<Member>& members, size_t root);

  std::vector<Circle> all_;
  std::vector<std::vector<uint32_t>> of_;  // by rank, beside its collectives
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_CARRIED_H_

// SPDX-License-Identifier: Apache-2.0
// A job's steps once more, as they would have been if a rank had had less to do: each rank works,
// launches and waits in the order that was recorded, a collective begins when its last rank does,
// and lasts as long as it did. Pure.
//
// Worked example: rank 0 works 30 ms, then 10; rank 1 10 ms, then 30; each time they all reduce. A
// step takes 60 ms, though each works 40. Without 20 of the first 30 ms of rank 0 it takes 40.
#ifndef SYNCLINE_ANALYSIS_WHY_REPLAY_H_
#define SYNCLINE_ANALYSIS_WHY_REPLAY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "analysis/why/carried.h"
#include "analysis/why/judged.h"

namespace syncline::analysis::why {

class Replay {
 public:
  // nullopt: there is no path (path.h), it is not known what ranks waited for or who waits for
  // whom, or what was recorded contradicts itself. Both outlive this.
  static std::optional<Replay> Of(const JobInput& input, const Judged& judged);

  // What is taken from the own work of one rank: of each judged step, ns by part.
  struct Less {
    size_t rank = 0;
    std::span<const PartTable> of_steps;
  };
  // Of each judged step, by how much it is shorter then: mean over ranks, ns. A rank that found a
  // collective over may have waited for it without our seeing it.
  struct Saved {
    std::vector<int64_t> least;   // as if it had, where the collective was over
    std::vector<int64_t> likely;  // where it waited next, at the latest for its optimizer
    std::vector<int64_t> most;    // as if it had not
  };
  Saved SavedBy(const Less& less) const;

  // By how much the mean step differs from the recorded one if nothing is taken, ns.
  int64_t error_ns() const { return error_ns_; }

 private:
  struct Act {
    enum class Kind : uint8_t { kWork, kLaunch, kWait, kJoin, kLateJoin } kind = Kind::kWork;
    uint32_t index = 0;  // of a stretch, a collective (launched, joined), or a wait, of the rank
    int32_t step = -1;
  };
  // A collective on one rank.
  struct Part {
    int64_t entered_ns = 0;  // by the timeline, as all times here
    int64_t delay_ns = 0;    // from its launch, or what its thread did before, to its begin
    // From when all whom the rank waits for have begun it to its end here; from its own begin where
    // it is not known whom.
    int64_t lasts_ns = 0;
    std::optional<uint32_t> before;
  };

  struct Rank {
    std::vector<Act> acts;
    std::vector<Part> parts;       // beside its collectives
    std::vector<int64_t> lags_ns;  // beside its waits: from the end of what was awaited to theirs
    int64_t begin_ns = 0;
  };
  class Run;

  Replay(const JobInput& input, const Judged& judged);
  void AddRank(const JobInput& input, const Judged& judged, size_t rank);
  void SetLengths(const JobInput& input, const std::vector<RankClock>& clocks,
                  const std::vector<std::vector<Carried>>& carried);
  // Of each judged step, the sum over ranks; empty: a rank never comes to its last one.
  enum class Joins : uint8_t { kEarly, kLate, kNone };
  std::vector<int64_t> StepsWith(const Less* less, Joins joins) const;

  const Judged* judged_;
  std::vector<Rank> ranks_;
  const Circles circles_;
  // Beside a rank's collectives, the circles in which it is awaited.
  std::vector<std::vector<absl::InlinedVector<uint32_t, 2>>> awaited_in_;
  std::array<std::vector<int64_t>, 3> steps_ns_;  // by Joins, with nothing taken: sums over ranks
  int64_t error_ns_ = 0;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_REPLAY_H_

// SPDX-License-Identifier: Apache-2.0
// Where ranks stand in the program's own Python code while they run host code, by the samples of
// their stacks that our hook takes about ten times a second. Pure.
//
// Worked example: rank 1 has 76 samples in host code, 56 of them in CB.on_step_begin, one a step;
// rank 0 has none there. If chance alone made the difference, 56 would be off by sqrt(56) = 7.5:
// three times that is less than 56, so it is said. Its caller, `train`, has 76 of 76 and, on rank
// 0, 9 of 9: no larger part.
#ifndef SYNCLINE_ANALYSIS_WHY_PLACES_H_
#define SYNCLINE_ANALYSIS_WHY_PLACES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/why/job_input.h"
#include "analysis/why/parts.h"
#include "analysis/why/stood_in.h"

namespace syncline::analysis::why {

// One sample of a driver in host code.
struct HostSample {
  size_t step = 0;
  NameId name = 0;  // as PlaceSample has it
};

struct PlaceCounts {
  uint64_t samples = 0;          // of the driver, in judged steps
  std::vector<HostSample> host;  // of them, in host code; by time
  std::vector<NameId> others;    // and in other parts
};

// `pieces`: of the driver, in order.
PlaceCounts CountPlaces(const RankInput& rank, int32_t driver_tid, std::span<const Piece> pieces);

// Where single ranks stood: what is said of all of them is taken apart once.
class StoodPlaces {
 public:
  // Both outlive it.
  StoodPlaces(std::span<const PlaceCounts> ranks, std::span<const std::string> names);
  ~StoodPlaces();

  // Where `rank` stood more often than the median of the others, by more than three standard errors
  // (the variance of a count is the sum of the squares of its steps'; those of the others that do
  // not tell where count as if they were there; all as if ranks had as many samples), in a larger
  // part of host code than they, and by at least `least_per_sample` of all its samples (0 to 1).
  // Functions and their lines are looked at, with what they call, but for those that a quarter of
  // all samples beside host code are in, too: the training itself. Of the places that have most of
  // what the one with most of it has, those where the others hardly ever are come first, then the
  // most certain one, and of those that are as certain what the others call. Where there is none,
  // that Python or C code kept the interpreter's lock is looked at likewise. nullopt: neither; or
  // fewer than half of the others have three quarters as many samples.
  std::optional<StoodIn> Of(size_t rank, double least_per_sample) const;

 private:
  struct Parsed;
  std::span<const PlaceCounts> ranks_;
  std::unique_ptr<const Parsed> parsed_;
};

// The function, or line of it, in which all ranks together stood most often, without what it calls
// of the program's own, at least in a quarter of 20 or more samples in host code; and in a quarter
// of its own on more than half of the ranks. `others` is 0.
std::optional<StoodIn> MostStoodIn(std::span<const PlaceCounts> ranks,
                                   std::span<const std::string> names);

// Of one rank's driver, times that are to be told apart; each in order, apart from each other.
struct PlacesDuring {
  const RankInput* rank = nullptr;
  int32_t driver_tid = 0;
  std::vector<OwnInterval> during;
  std::vector<OwnInterval> beside;
};

// Where the ranks stood in half or more of at least 4 samples `during` these times, whatever they
// did, and in at most a quarter as large a part of those `beside`: the innermost such function of
// the program's own, or line of it. `host_samples` and `others_host` are here all samples, during
// and beside; `others` those beside that are there, too.
std::optional<StoodIn> StoodDuring(std::span<const PlacesDuring> ranks,
                                   std::span<const std::string> names);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_PLACES_H_

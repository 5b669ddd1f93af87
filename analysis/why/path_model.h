// SPDX-License-Identifier: Apache-2.0
// What `syncline why` says of the critical path. Plain values.
#ifndef SYNCLINE_ANALYSIS_WHY_PATH_MODEL_H_
#define SYNCLINE_ANALYSIS_WHY_PATH_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/why/mean_estimate.h"
#include "analysis/why/part.h"
#include "analysis/why/small_collectives_model.h"

namespace syncline::analysis::why {

// A piece of the critical path (path.h): own work of a rank, or a collective under way.
struct PathPiece {
  enum class Kind : uint8_t {
    kOwnWork,
    kCollective,   // from its last rank's entry on
    kNotFollowed,  // a collective, from the rank's own entry on: for whom it waited is not known
  };
  Kind kind = Kind::kOwnWork;
  size_t rank = 0;        // index into Answer::ranks; of a collective: who waited for its end
  int64_t end_ns = 0;     // in that rank's clock
  size_t begin_rank = 0;  // of a collective: who entered last
  int64_t begin_ns = 0;   // in that rank's clock
  int64_t length_ns = 0;  // estimated, where it has two clocks
  int32_t step = -1;      // index into the judged steps; -1: in none of them
  PartTable parts{};      // of own work
  std::string name;       // of a collective: "all_reduce"
  uint32_t group = 0;     // of a collective
  int64_t bytes = -1;     // that it carries; -1: not known
  // Of a followed collective, on the rank that it takes least, and by that rank's clock alone: from
  // its entry, or the end of the one that its thread carried out before. -1: not known.
  int64_t own_length_ns = -1;
};

// The name of a collective of two ranks that send and receive.
inline constexpr std::string_view kTransferName = "send/recv";

// What the steps waited for, one thing after the other: means of a step.
struct CriticalPath {
  std::vector<PathPiece> pieces;    // by time, one behind the other
  MeanEstimate step;                // of the path; the rest adds up to its estimate
  std::vector<MeanEstimate> ranks;  // own work, by rank
  std::vector<PartTable> parts;     // of it, by rank
  MeanEstimate collectives;         // those that were not followed, too
  struct Kind {
    std::string name;
    int64_t ns = 0;
    bool followed = true;
  };
  std::vector<Kind> kinds;      // of them; the longest first
  int64_t not_followed_ns = 0;  // of them
  int64_t least_wait_ns = 0;    // of a step, of the rank whose own work leaves least of it
  int64_t unsure_ns = 0;        // of own work on it: may be a wait
  // nullopt: ranks work beside collectives, so that it does not matter.
  std::optional<MeanEstimate>
      uneven;  // own work on it, less the mean of what all ranks worked meanwhile
  std::optional<SmallCollectives> small;
  uint64_t crossings = 0;  // times at which it goes on on another rank
  uint64_t proven = 0;     // of them: that rank entered last whatever the clocks' error
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_PATH_MODEL_H_

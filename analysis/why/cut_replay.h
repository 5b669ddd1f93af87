// SPDX-License-Identifier: Apache-2.0
// One step of a model that is cut into partitions, run again with something changed: when would it
// have ended?
//
// A partition does what it did in the same order, and waits where it waited: for tensors that came
// while nothing of it ran. Idle time that no tensor ended stays as it was.
#ifndef SYNCLINE_ANALYSIS_WHY_CUT_REPLAY_H_
#define SYNCLINE_ANALYSIS_WHY_CUT_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "analysis/why/cut_model.h"
#include "analysis/why/cut_path.h"

namespace syncline::analysis::why {

struct CutChange {
  bool no_tensors = false;  // no tensor takes any time
  // Those from the first partition to the second take none.
  std::optional<std::pair<size_t, size_t>> no_direction;
  std::optional<size_t> half_work;  // all that this partition does takes half as long
};

class CutReplay {
 public:
  // `transfers`: indices of those of the step. `input`, `paths` outlive this; the step ended on all
  // partitions that began it.
  CutReplay(const CutInput& input, const CutPaths& paths, int64_t step,
            std::span<const size_t> transfers);

  // The end of the last partition, as it was if nothing is changed.
  int64_t EndWith(const CutChange& change) const;

 private:
  enum class Kind : uint8_t { kSent, kAsked, kReceived, kEnd };
  struct Event {
    int64_t at_ns = 0;
    Kind kind = Kind::kEnd;
    size_t partition = 0;
    size_t transfer = 0;
  };
  struct Partition {
    int64_t begin_ns = 0;
    std::vector<std::pair<int64_t, int64_t>> busy;   // apart, by begin
    std::vector<std::pair<int64_t, int64_t>> waits;  // for tensors; the same
  };

  int64_t NextNs(size_t partition, int64_t from_ns, int64_t to_ns, const CutChange& change) const;

  const CutInput& input_;
  std::vector<std::optional<Partition>> partitions_;
  std::vector<Event> events_;  // of all partitions, by time
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_CUT_REPLAY_H_

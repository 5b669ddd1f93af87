// SPDX-License-Identifier: Apache-2.0
// The critical path of one step of a model that is cut into partitions: from the end of its last
// partition back to where the step began, always to what happened last before.
//
// Within a partition the path goes from an operator to what ran before it on its thread, or to
// where it was made ready, whichever was later: who feeds whom the recording does not say. Where a
// tensor from another partition was what came last, it goes to the send of that tensor; but if the
// tensor had been sent before the receiver asked for it, to where the receiver asked.
#ifndef SYNCLINE_ANALYSIS_WHY_CUT_PATH_H_
#define SYNCLINE_ANALYSIS_WHY_CUT_PATH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/why/cut_model.h"

namespace syncline::analysis::why {

struct CutPiece {
  enum class Kind : uint8_t {
    kOperator,  // `name` ran
    kExecutor,  // the executor, between operators
    kIdle,      // nothing that is recorded: what was ready had not begun
    kTensor,    // `transfer` was under way
    kAsked,     // the same, since the receiver asked for it
  };
  Kind kind = Kind::kExecutor;
  size_t partition = 0;  // of a tensor: the receiver
  NameId name = 0;
  size_t transfer = 0;  // index into CutInput::transfers
  int64_t duration_ns = 0;
};

struct CutPath {
  std::vector<CutPiece> pieces;  // from the end back
  int64_t end_ns = 0;
  bool whole = false;  // false: it ends where nothing was recorded
};

// Where a tensor's way began: at its send, or, if it was there already, where the receiver asked.
struct CutWay {
  int64_t begin_ns = 0;
  bool asked = false;
};
CutWay WayOf(const CutTransfer& transfer);

class CutPaths {
 public:
  // `input` outlives this.
  explicit CutPaths(const CutInput& input);

  // Of a step that ended on all partitions that began it; at least one did.
  CutPath Of(int64_t step) const;
  // Of the partition, in [begin, end): when any of its threads worked, by begin, apart.
  std::vector<std::pair<int64_t, int64_t>> Busy(size_t partition, int64_t begin_ns,
                                                int64_t end_ns) const;

 private:
  struct Place {  // a lane of a partition, at an instant
    size_t partition = 0;
    size_t lane = 0;
    int64_t at_ns = 0;
  };
  struct Partition {
    std::vector<std::vector<size_t>> outermost;              // of each lane, by begin
    std::vector<std::pair<int64_t, size_t>> ready;           // begins, and their lanes, by begin
    std::vector<std::pair<int64_t, size_t>> lane_of_record;  // recorded begins, sorted
    std::map<NameId, std::vector<std::pair<int64_t, size_t>>> asked;  // begins and lanes, sorted
    std::set<NameId> operators;
  };
  class Walk;

  std::optional<size_t> LaneOf(size_t partition, int64_t recorded_ns) const;
  // The last of the lane that began before the instant; nullptr: none.
  const CutSpan* Outermost(const Place& place) const;
  const CutTransfer* ReceivedAs(size_t partition, int64_t step, int64_t recorded_ns) const;

  const CutInput& input_;
  std::vector<Partition> partitions_;
  // By partition, step and record: the transfer.
  std::map<std::tuple<size_t, int64_t, int64_t>, size_t> received_;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_CUT_PATH_H_

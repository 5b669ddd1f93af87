// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/cut_times.h"

namespace syncline::analysis::why {
namespace {

// Sums up one piece of a step.
class Adder {
 public:
  Adder(const CutInput& input, size_t steps, CutTimes* times)
      : input_(input), steps_(steps), times_(*times) {}

  void Add(const CutPiece& piece, size_t step) {
    if (IsTensor(piece)) {
      const CutTransfer& transfer = input_.transfers[piece.transfer];
      times_.tensors[step] += piece.duration_ns;
      To(transfer.edge, &times_.edges)[step] += piece.duration_ns;
      AddClock(piece, transfer);
      return;
    }
    To(piece.partition, &times_.partitions)[step] += piece.duration_ns;
    if (piece.kind != CutPiece::Kind::kOperator) return;
    To(std::pair(piece.partition, piece.name), &times_.operators)[step] += piece.duration_ns;
  }

 private:
  template <class Key>
  CutTimes::Series& To(const Key& key, std::map<Key, CutTimes::Series>* all) const {
    const auto [found, is_new] = all->try_emplace(key);
    if (is_new) found->second.resize(steps_);
    return found->second;
  }

  // What began when the receiver asked is of the receiver's clock alone, if it had certainly been
  // sent by then: that is by both clocks.
  void AddClock(const CutPiece& piece, const CutTransfer& transfer) {
    std::optional<int64_t>& clock = times_.clocks.try_emplace(transfer.edge, 0).first->second;
    if (!transfer.clock_ns.has_value()) clock.reset();
    if (!clock.has_value()) return;
    const bool asked = piece.kind == CutPiece::Kind::kAsked &&
                       WayOf(transfer).begin_ns - transfer.sent_ns > *transfer.clock_ns;
    if (!asked) *clock += *transfer.clock_ns;
  }

  const CutInput& input_;
  const size_t steps_;
  CutTimes& times_;
};

}  // namespace

bool IsTensor(const CutPiece& piece) {
  return piece.kind == CutPiece::Kind::kTensor || piece.kind == CutPiece::Kind::kAsked;
}

CutTimes CutTimesOf(const CutInput& input, std::span<const CutStep> steps) {
  CutTimes times;
  times.tensors.resize(steps.size());
  Adder adder(input, steps.size(), &times);
  for (size_t i = 0; i < steps.size(); ++i) {
    int64_t left_ns = steps[i].duration_ns();
    times.steps.push_back(left_ns);
    for (const CutPiece& piece : steps[i].path.pieces) {
      left_ns -= piece.duration_ns;
      adder.Add(piece, i);
    }
    times.between.push_back(left_ns);
  }
  return times;
}

}  // namespace syncline::analysis::why

// SPDX-License-Identifier: Apache-2.0
#include "timeline/loss_ledger.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_replace.h"

namespace syncline::timeline {

void LossLedger::AddStream(const ClockInterval& extent) {
  if (!extent_.has_value()) extent_ = extent;
  extent_->begin_ns = std::min(extent_->begin_ns, extent.begin_ns);
  extent_->end_ns = std::max(extent_->end_ns, extent.end_ns);
}

ClockInterval LossLedger::BoundsOf(const Loss& loss) const {
  ClockInterval known{0, 0};
  if (context_.options.window.has_value()) {
    known = context_.Window();
  } else if (extent_.has_value()) {
    known = *extent_;
  } else if (seen_.has_value()) {
    known = *seen_;
  }
  const bool unknown =
      loss.begin_ns == 0 && loss.end_ns == 0;  // the reader could not tell: all of it
  ClockInterval bounds{loss.begin_ns, loss.end_ns};
  if (unknown || loss.begin_ns == kUnknownLo) bounds.begin_ns = known.begin_ns;
  if (unknown || loss.end_ns == kUnknownHi) bounds.end_ns = known.end_ns;
  bounds.end_ns = std::max(bounds.begin_ns, bounds.end_ns);
  return bounds;
}

Loss LossLedger::Bounded(Loss loss) const {
  const ClockInterval bounds = BoundsOf(loss);
  loss.begin_ns = bounds.begin_ns;
  loss.end_ns = bounds.end_ns;
  if (!context_.node.root.empty()) {
    loss.source = absl::StrReplaceAll(loss.source, {{context_.node.root + "/", ""}});
    loss.detail = absl::StrReplaceAll(loss.detail, {{context_.node.root + "/", ""}});
  }
  return loss;
}

void LossLedger::PushHole(TrackId track, const Loss& loss) const {
  Hole hole;
  hole.track = track;
  hole.begin = context_.At(loss.begin_ns).timeline;
  hole.end = std::max(hole.begin, context_.At(loss.end_ns).timeline);
  hole.loss = loss;
  context_.emitter->Push(hole);
}

void LossLedger::Add(const Loss& loss, bool draw_on_node) {
  const Loss whole = Bounded(loss);
  const TimelineTime begin = context_.At(whole.begin_ns).timeline;
  const TimelineTime end = std::max(begin, context_.At(whole.end_ns).timeline);
  // What was lost in the process is not among the events that it counted.
  if (whole.reason != LossReason::kNotCovered && whole.reason != LossReason::kLostInProcess) {
    counts_are_known_ = counts_are_known_ && whole.count.has_value() &&
                        whole.reason == LossReason::kDiscardedEvents;
    declared_ += whole.count.value_or(0);
  }
  if (draw_on_node) PushHole(tracks_.node_track(), whole);
  if (context_.options.cut.has_value() &&
      (end < context_.options.cut->begin || begin >= context_.options.cut->end))
    return;
  const auto [entry, inserted] = totals_.try_emplace({whole.source, whole.reason});
  LossTotal& total = entry->second;
  if (inserted) {
    total = {whole.reason, whole.source, whole.detail, 1, whole.count, begin, end};
  } else {
    ++total.intervals;
    if (total.count.has_value() && loss.count.has_value()) {
      *total.count += *loss.count;
    } else {
      total.count.reset();
    }
    total.begin = std::min(total.begin, begin);
    total.end = std::max(total.end, end);
  }
}

std::vector<LossTotal> LossLedger::TakeTotals() {
  std::vector<LossTotal> totals;
  for (auto& [key, total] : totals_) totals.push_back(std::move(total));
  return totals;
}

}  // namespace syncline::timeline

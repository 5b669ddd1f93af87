// SPDX-License-Identifier: Apache-2.0
// What was lost of a node, and which threads it hit.
#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_replace.h"
#include "timeline/node_builder.h"

namespace syncline::timeline {
namespace {

constexpr uint64_t kNumbers = uint64_t{1} << 16;  // of the tasks of a thread

}  // namespace

void NodeBuilder::UpdateLosses(uint32_t source) {
  Source& entry = sources_[source];
  const std::span<const Loss> losses = merger_.cursor(source)->losses();
  if (losses.size() == entry.losses_added) return;
  // The threads that it hit have it; of other traces than Syncline's none are known.
  const bool draw_on_node = tables_.processes().empty();
  for (; entry.losses_added < losses.size(); ++entry.losses_added) {
    AddLoss(losses[entry.losses_added], draw_on_node);
  }
  entry.losses->Update(losses);
}

void NodeBuilder::TrackLosses(uint32_t thread, uint32_t source, int64_t time_ns) {
  Thread& entry = tracks_.ThreadAt(thread);
  const std::optional<int64_t> previous_ns = entry.last_ns;
  if (previous_ns.has_value() && entry.last_source != source) {
    sources_[entry.last_source].losses->Left(thread, *previous_ns, time_ns);
  }
  entry.last_ns = time_ns;
  entry.last_source = source;
  sources_[source].losses->Seen(thread, previous_ns, time_ns);
}

// Where a thread's tasks are numbered, a gap is a loss of tasks of its own: also of a thread that
// went to another CPU, lost what it did there, and came back, which no stream tells. And where
// there is no gap, none of its tasks was among what the streams lost until now; of what is not
// numbered (metadata, marks) the streams' losses are all that is known.
void NodeBuilder::TrackNumber(uint32_t thread, int64_t time_ns) {
  if (!event_.Has(Field::kNumber)) return;
  const auto number = static_cast<uint16_t>(event_.U64(Field::kNumber));
  Thread& entry = tracks_.ThreadAt(thread);
  if (entry.next_number != kNoNumber && entry.next_number != number) {
    Loss gap;
    gap.begin_ns = entry.task_ns;
    gap.end_ns = time_ns - 1;  // what begins now is known
    gap.detail = "the thread counted more tasks than were found";
    // Numbers begin anew after 65,536.
    if (counts_are_known_ && declared_lost_ < kNumbers) {
      gap.count = static_cast<uint16_t>(number - entry.next_number);
    }
    entry.spans->Lost(context_.At(gap.begin_ns), gap.end_ns);
    PushHole(entry.spans->track(), gap);
  }
  entry.next_number = static_cast<uint16_t>(number + 1);
  entry.task_ns = time_ns;
  // Losses are known before the events of their packet: this may be one of them.
  std::erase_if(entry.pending_losses, [&](Loss& loss) { return !IsAfterTasks(entry, &loss); });
}

bool NodeBuilder::IsAfterTasks(const Thread& thread, Loss* loss) const {
  const ClockInterval bounds = BoundsOf(*loss);
  loss->begin_ns = std::max(bounds.begin_ns, thread.task_ns);
  loss->end_ns = bounds.end_ns;
  return loss->end_ns > thread.task_ns;
}

void NodeBuilder::OnSuspect(const Loss& loss, uint32_t thread) {
  Thread& entry = tracks_.ThreadAt(thread);
  if (entry.next_number == kNoNumber) {
    HitBy(loss, &entry);
    return;
  }
  // It may become known when the last of the thread's tasks was read.
  Loss rest = loss;
  if (IsAfterTasks(entry, &rest)) entry.pending_losses.push_back(std::move(rest));
}

void NodeBuilder::HitBy(const Loss& stream_loss, Thread* thread) {
  const Loss loss = Bounded(stream_loss);
  thread->spans->Lost(context_.At(loss.begin_ns), loss.end_ns);
  PushHole(thread->spans->track(), loss);
}

void NodeBuilder::HitByPending(Thread* thread) {
  for (const Loss& loss : thread->pending_losses) HitBy(loss, thread);
  thread->pending_losses.clear();
}

ClockInterval NodeBuilder::BoundsOf(const Loss& loss) const {
  ClockInterval known{0, 0};
  if (context_.options.window.has_value()) {
    known = {context_.node.placement->ClockNs(context_.options.window->begin),
             context_.node.placement->ClockNs(context_.options.window->end)};
  } else if (extent_.has_value()) {
    known = *extent_;
  } else if (result_.seen.has_value()) {
    known = *result_.seen;
  }
  const bool unknown =
      loss.begin_ns == 0 && loss.end_ns == 0;  // the reader could not tell: all of it
  ClockInterval bounds{loss.begin_ns, loss.end_ns};
  if (unknown || loss.begin_ns == kUnknownLo) bounds.begin_ns = known.begin_ns;
  if (unknown || loss.end_ns == kUnknownHi) bounds.end_ns = known.end_ns;
  bounds.end_ns = std::max(bounds.begin_ns, bounds.end_ns);
  return bounds;
}

Loss NodeBuilder::Bounded(Loss loss) const {
  const ClockInterval bounds = BoundsOf(loss);
  loss.begin_ns = bounds.begin_ns;
  loss.end_ns = bounds.end_ns;
  if (!context_.node.root.empty()) {
    loss.source = absl::StrReplaceAll(loss.source, {{context_.node.root + "/", ""}});
    loss.detail = absl::StrReplaceAll(loss.detail, {{context_.node.root + "/", ""}});
  }
  return loss;
}

void NodeBuilder::PushHole(TrackId track, const Loss& loss) {
  Hole hole;
  hole.track = track;
  hole.begin = context_.At(loss.begin_ns).timeline;
  hole.end = std::max(hole.begin, context_.At(loss.end_ns).timeline);
  hole.loss = loss;
  context_.emitter->Push(hole);
}

void NodeBuilder::AddLoss(const Loss& loss, bool draw_on_node) {
  const Loss whole = Bounded(loss);
  const TimelineTime begin = context_.At(whole.begin_ns).timeline;
  const TimelineTime end = std::max(begin, context_.At(whole.end_ns).timeline);
  if (whole.reason != LossReason::kNotCovered) {
    counts_are_known_ = counts_are_known_ && whole.count.has_value() &&
                        whole.reason == LossReason::kDiscardedEvents;
    declared_lost_ += whole.count.value_or(0);
  }
  if (draw_on_node) PushHole(tracks_.node_track(), whole);
  if (context_.options.cut.has_value() &&
      (end < context_.options.cut->begin || begin >= context_.options.cut->end))
    return;
  const auto [entry, inserted] = losses_.try_emplace({whole.source, whole.reason});
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

}  // namespace syncline::timeline

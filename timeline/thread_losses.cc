// SPDX-License-Identifier: Apache-2.0
#include "timeline/thread_losses.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace syncline::timeline {

void ThreadLosses::AddStream() {
  streams_.emplace_back().tracker = std::make_unique<StreamLossTracker>(
      [this](const Loss& loss, uint32_t thread) { OnSuspect(loss, thread); });
}

void ThreadLosses::Update(uint32_t stream, std::span<const Loss> losses, bool draw_on_node) {
  Stream& entry = streams_[stream];
  if (losses.size() == entry.added) return;
  for (; entry.added < losses.size(); ++entry.added) {
    ledger_->Add(losses[entry.added], draw_on_node);
  }
  entry.tracker->Update(losses);
}

void ThreadLosses::Seen(uint32_t thread, uint32_t stream, int64_t time_ns) {
  TrackTable::Thread& entry = tracks_->ThreadAt(thread);
  const std::optional<int64_t> previous_ns = entry.last_ns;
  if (previous_ns.has_value() && entry.last_source != stream) {
    streams_[entry.last_source].tracker->Left(thread, *previous_ns, time_ns);
  }
  entry.last_ns = time_ns;
  entry.last_source = stream;
  streams_[stream].tracker->Seen(thread, previous_ns, time_ns);
}

bool ThreadLosses::Numbered(uint32_t thread, uint16_t number, int64_t time_ns) {
  TrackTable::Thread& entry = tracks_->ThreadAt(thread);
  TaskNumbers& numbers = entry.numbers;
  const bool missing = numbers.any() && !numbers.Follows(number);
  if (missing) {
    Loss gap;
    gap.begin_ns = numbers.last_ns();
    gap.end_ns = time_ns - 1;  // what begins now is known
    gap.detail = "the thread counted more tasks than were found";
    if (ledger_->counts_are_known() && ledger_->declared() < TaskNumbers::kNumbers) {
      gap.count = numbers.MissingBefore(number);
    }
    entry.spans->Lost(context_.At(gap.begin_ns), gap.end_ns);
    ledger_->PushHole(entry.spans->track(), gap);
  }
  numbers.Found(number, time_ns);
  // Losses are known before the events of their packet: this may be one of them.
  std::erase_if(numbers.pending(), [&](Loss& loss) { return !IsAfterTasks(numbers, &loss); });
  return missing;
}

bool ThreadLosses::IsAfterTasks(const TaskNumbers& numbers, Loss* loss) const {
  const ClockInterval bounds = ledger_->BoundsOf(*loss);
  loss->begin_ns = std::max(bounds.begin_ns, numbers.last_ns());
  loss->end_ns = bounds.end_ns;
  return loss->end_ns > numbers.last_ns();
}

void ThreadLosses::OnSuspect(const Loss& loss, uint32_t thread) {
  TrackTable::Thread& entry = tracks_->ThreadAt(thread);
  // What does not nest has no numbers, and its begin and end may be of different threads.
  const Moment until = context_.At(ledger_->BoundsOf(loss).end_ns);
  tracks_->ProcessAt(entry.process).async->Lost(until);
  if (!entry.numbers.any()) {
    HitBy(loss, &entry);
    return;
  }
  // It may become known when the last of the thread's tasks was read.
  Loss rest = loss;
  if (IsAfterTasks(entry.numbers, &rest)) entry.numbers.pending().push_back(std::move(rest));
}

void ThreadLosses::HitBy(const Loss& stream_loss, TrackTable::Thread* thread) {
  const Loss loss = ledger_->Bounded(stream_loss);
  thread->spans->Lost(context_.At(loss.begin_ns), loss.end_ns);
  ledger_->PushHole(thread->spans->track(), loss);
}

void ThreadLosses::Settle(TrackTable::Thread* thread) {
  for (const Loss& loss : thread->numbers.TakePending()) HitBy(loss, thread);
}

}  // namespace syncline::timeline

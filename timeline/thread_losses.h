// SPDX-License-Identifier: Apache-2.0
// Which threads of a node the losses of its streams hit, by where the threads were seen
// (loss_tracker.h) and by the numbers of their tasks (task_numbers.h).
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_THREAD_LOSSES_H_
#define SYNCLINE_TIMELINE_THREAD_LOSSES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/loss.h"
#include "timeline/loss_ledger.h"
#include "timeline/loss_tracker.h"
#include "timeline/node_context.h"
#include "timeline/track_table.h"

namespace syncline::timeline {

class ThreadLosses {
 public:
  ThreadLosses(const NodeContext& context, TrackTable* tracks, LossLedger* ledger)
      : context_(context), tracks_(tracks), ledger_(ledger) {}
  ThreadLosses(const ThreadLosses&) = delete;
  ThreadLosses& operator=(const ThreadLosses&) = delete;

  // Streams are numbered from 0.
  void AddStream();
  // `losses` of the stream as its cursor reports them, growing.
  void Update(uint32_t stream, std::span<const Loss> losses, bool draw_on_node);

  // An event of the thread: says whether the losses hit it of the streams that it comes after.
  void Seen(uint32_t thread, uint32_t stream, int64_t time_ns);
  // The same in short, of a thread whose previous event was in this stream, too; see
  // StreamLossTracker.
  bool SeenAgain(uint32_t thread, uint32_t stream, int64_t time_ns) {
    return streams_[stream].tracker->SeenAgain(thread, time_ns);
  }
  // The number of the task that begins or ends then. True: others before it are missing.
  bool Numbered(uint32_t thread, uint16_t number, int64_t time_ns);
  // No number will come that tells what waits for one.
  void Settle(TrackTable::Thread* thread);

 private:
  struct Stream {
    std::unique_ptr<StreamLossTracker> tracker;
    size_t added = 0;  // of its losses
  };

  void OnSuspect(const Loss& loss, uint32_t thread);
  // Cuts off what the numbers of the thread's tasks answer for; false when nothing is left.
  bool IsAfterTasks(const TaskNumbers& numbers, Loss* loss) const;
  void HitBy(const Loss& stream_loss, TrackTable::Thread* thread);

  const NodeContext& context_;
  TrackTable* tracks_;
  LossLedger* ledger_;
  std::vector<Stream> streams_;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_THREAD_LOSSES_H_

// SPDX-License-Identifier: Apache-2.0
// Which threads a loss may have hit.
//
// The tracer counts loss per CPU stream and packet interval, not per thread. A thread may have been
// hit when it was silent meanwhile: when the loss lies between two of its events, one of which, at
// least, is on that stream. Suspect are also the thread that was seen there last before the loss,
// the one first after it, and those seen during it.
//
// What is not covered: a thread that went to another CPU, lost its only events there, and came
// back. Of tasks their numbers tell (task_numbers.h), and which suspicion is unfounded.
//
// Losses become known as the stream is read, mostly before the events of their interval; one that
// becomes known later falls on whoever was seen on the stream since it began.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_LOSS_TRACKER_H_
#define SYNCLINE_TIMELINE_LOSS_TRACKER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "common/loss.h"

namespace syncline::timeline {

class StreamLossTracker {
 public:
  using ThreadIndex = uint32_t;
  // Called once per loss and suspect thread.
  using OnSuspect = std::function<void(const Loss&, ThreadIndex)>;

  explicit StreamLossTracker(OnSuspect on_suspect) : on_suspect_(std::move(on_suspect)) {}

  // `losses` as the cursor reports them, growing, in the order of time.
  void Update(std::span<const Loss> losses);
  // An event of `thread` in this stream; its previous one, in whatever stream, was at `previous_ns`
  // (nullopt: this is its first).
  void Seen(ThreadIndex thread, std::optional<int64_t> previous_ns, int64_t time_ns);
  // The same in short, when nothing of the stream's losses is left to be told to `thread`, whose
  // previous event was in this stream, too; else false, and nothing was done.
  bool SeenAgain(ThreadIndex thread, int64_t time_ns) {
    const Recent& recent = recent_[thread % kRecent];
    if (recent.seen == nullptr || recent.thread != thread) return false;
    Thread& seen = *recent.seen;
    if (seen.told < losses_.size() && losses_[seen.told].begin_ns <= time_ns) return false;
    seen.last_ns = time_ns;
    last_thread_ = thread;
    last_ns_ = time_ns;
    return true;
  }
  // The same event, for the stream of the previous one: the thread has gone elsewhere.
  void Left(ThreadIndex thread, int64_t previous_ns, int64_t time_ns);

 private:
  struct Thread {
    size_t told = 0;                 // losses before this one are dealt with
    std::optional<int64_t> last_ns;  // when it was seen last in this stream
  };
  // Some threads take turns on a CPU.
  struct Recent {
    ThreadIndex thread = 0;
    Thread* seen = nullptr;  // in threads_
  };
  static constexpr size_t kRecent = 8;

  Thread& At(ThreadIndex thread) {
    Recent& recent = recent_[thread % kRecent];
    if (recent.seen == nullptr || recent.thread != thread) recent = {thread, &threads_[thread]};
    return *recent.seen;
  }
  void Suspect(ThreadIndex thread, size_t loss);

  OnSuspect on_suspect_;
  std::vector<Loss> losses_;
  std::unordered_map<ThreadIndex, Thread> threads_;
  std::array<Recent, kRecent> recent_;  // by the thread's last bits
  ThreadIndex last_thread_ = 0;
  std::optional<int64_t> last_ns_;  // of any thread
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_LOSS_TRACKER_H_

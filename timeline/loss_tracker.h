// Which threads a loss may have hit.
//
// The tracer counts loss per CPU stream and packet interval, not per thread. So every thread that
// was seen on that stream in the interval is suspect, and so are the one that ran there last before
// it and the one that was seen first after it.
//
// Losses become known as the stream is read, mostly before the events of their interval; one that
// becomes known later falls on whoever was seen on the stream since it began.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_LOSS_TRACKER_H_
#define SYNCLINE_TIMELINE_LOSS_TRACKER_H_

#include <cstdint>
#include <functional>
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

  // `losses` as the cursor reports them, growing.
  void Update(std::span<const Loss> losses);
  // An event of `thread` in this stream.
  void Seen(ThreadIndex thread, int64_t time_ns);

 private:
  struct Pending {
    Loss loss;
    std::vector<ThreadIndex> suspects;
  };

  void Suspect(Pending* pending, ThreadIndex thread);

  OnSuspect on_suspect_;
  size_t known_ = 0;
  std::vector<Pending> pending_;
  std::unordered_map<ThreadIndex, int64_t> last_seen_ns_;
  ThreadIndex last_thread_ = 0;
  bool any_seen_ = false;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_LOSS_TRACKER_H_

// SPDX-License-Identifier: Apache-2.0
// The numbers that a thread gives the begins and ends of its tasks, modulo 65,536. A gap is a loss
// of tasks of its own: also of a thread that went to another CPU, lost what it did there, and came
// back, which no stream tells. And where there is no gap, none of its tasks was among what the
// streams lost until now; so such losses wait for the next number. Of what is not numbered
// (metadata, marks) the streams' losses are all that is known.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_TASK_NUMBERS_H_
#define SYNCLINE_TIMELINE_TASK_NUMBERS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "common/loss.h"

namespace syncline::timeline {

class TaskNumbers {
 public:
  static constexpr uint64_t kNumbers = uint64_t{1} << 16;

  // One was found. None before is: the thread's tasks are not numbered, as far as is known.
  bool any() const { return next_ != kNone; }
  // Whether it is the one that follows the last; false before the first.
  bool Follows(uint16_t number) const { return number == next_; }
  // How many lie between the last and this one, modulo kNumbers.
  uint16_t MissingBefore(uint16_t number) const { return static_cast<uint16_t>(number - next_); }
  void Found(uint16_t number, int64_t time_ns) {
    next_ = static_cast<uint16_t>(number + 1);
    last_ns_ = time_ns;
  }
  int64_t last_ns() const { return last_ns_; }  // when the last was written

  // Losses since the last that may have hit the thread's tasks, which the next number will tell.
  bool has_pending() const { return !pending_.empty(); }
  std::vector<Loss>& pending() { return pending_; }
  std::vector<Loss> TakePending() { return std::exchange(pending_, {}); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t next_ = kNone;
  int64_t last_ns_ = 0;
  std::vector<Loss> pending_;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_TASK_NUMBERS_H_

// SPDX-License-Identifier: Apache-2.0
// Which call of a program launched what a device did, and inside of which operator.
//
// A device's event and the call of the driver or runtime that launched it carry the same
// correlation id. The operator is the innermost that was open on the calling thread as the call
// began. Nothing is guessed: without a call of the same id there is no launch, nor where several
// have it (the files of several processes put into one), and a call outside of all operators has
// none. (External ids would say the same in files from 2024 on; before, they
// are something else.)
//
// Memory: one entry per call. Thread-safety: one thread.
#ifndef SYNCLINE_KINETO_LAUNCHES_H_
#define SYNCLINE_KINETO_LAUNCHES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace syncline::kineto {

inline constexpr uint32_t kNoEvent = 0xffffffff;

class Launches {
 public:
  struct Launch {
    uint32_t call = kNoEvent;
    uint32_t operator_event = kNoEvent;
  };

  // The next thread's events follow, by their begins, outer ones before those inside.
  void OnThread() {
    open_.clear();
    ++thread_;
  }
  // `event` is the caller's number of it.
  void OnOperator(uint32_t event, int64_t begin_ns, int64_t end_ns);
  // Of a call inside another with the same id the outer one counts. Views must stay valid.
  void OnCall(uint32_t event, int64_t begin_ns, int64_t end_ns, std::string_view correlation);

  Launch Find(std::string_view correlation) const;

 private:
  struct Open {
    uint32_t event = kNoEvent;
    int64_t end_ns = 0;
  };
  struct Call {
    Launch launch;
    uint32_t thread = 0;
    int64_t end_ns = 0;
  };
  void CloseBefore(int64_t begin_ns);

  uint32_t thread_ = 0;
  std::vector<Open> open_;
  std::unordered_map<std::string_view, Call> calls_;
};

}  // namespace syncline::kineto

#endif  // SYNCLINE_KINETO_LAUNCHES_H_

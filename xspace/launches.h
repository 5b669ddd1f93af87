// SPDX-License-Identifier: Apache-2.0
// Which call launched the work of a device, and inside of what. Internal to xspace/.
//
// Work and call carry the same correlation id. What the call was made inside of is the innermost
// span that was open on its thread as it began; marks of steps, and other calls, are none. Nothing
// is guessed: an id that several calls have launches nothing, unless one call is inside the other,
// then it is the outer one.
//
// Memory: an entry per call. Thread-safety: one thread while it is filled.
#ifndef SYNCLINE_XSPACE_LAUNCHES_H_
#define SYNCLINE_XSPACE_LAUNCHES_H_

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace syncline::xspace {

inline constexpr char kCorrelationField[] = "correlation_id";
inline constexpr char kOperatorField[] = "operator";
inline constexpr char kLaunchedField[] = "_launched_ns";
// EventClass::attributes, and what stands there: as Kineto calls them (common/kineto_categories.h).
inline constexpr char kCategory[] = "category";
inline constexpr char kKernelCategory[] = "kernel";
inline constexpr char kCopyCategory[] = "gpu_memcpy";
inline constexpr char kFillCategory[] = "gpu_memset";
inline constexpr char kDriverCategory[] = "gpu_driver";

// An event of a thread of the program.
struct HostEvent {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::string_view name;  // outlives Launches
  bool is_call = false;   // of the device's driver
  bool is_step = false;
  uint64_t correlation = 0;  // 0: none
};

class Launches {
 public:
  struct Launch {
    int64_t begin_ns = 0;
    std::string_view inside;  // empty: of nothing
  };

  // All events of one thread, in any order.
  void AddThread(std::vector<HostEvent> events);

  // nullptr: no call has it, or it is not known which.
  const Launch* Find(uint64_t correlation) const;

 private:
  struct Call {
    Launch launch;
    uint32_t thread = 0;
    int64_t end_ns = 0;
    bool known = true;
  };
  void AddCall(const HostEvent& call, std::string_view inside);

  uint32_t thread_ = 0;
  std::unordered_map<uint64_t, Call> calls_;
};

}  // namespace syncline::xspace

#endif  // SYNCLINE_XSPACE_LAUNCHES_H_

// SPDX-License-Identifier: Apache-2.0
// What time an event has in the file. Perfetto refuses negative times, and its interface shows
// times as the file gives them: they should count from as near to T as what lies before T allows,
// which is known at the end only.
//
// Therefore events are written on a clock of the file's own, which reads one hour at T, and the
// first packet of the file says what this clock is on Perfetto's BOOTTIME. That one number is
// corrected at the end: BOOTTIME is zero at T, or at the earliest event where there is one before
// T. A stream that cannot go back keeps the hour.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_PERFETTO_FILE_CLOCK_H_
#define SYNCLINE_EXPORT_PERFETTO_FILE_CLOCK_H_

#include <algorithm>
#include <cstdint>
#include <ostream>

#include "common/time.h"

namespace syncline::perfetto {

class FileClock {
 public:
  // Writes the first packet. `epoch_unix_ns`: T as Unix time; 0: unknown. `out` outlives this.
  FileClock(std::ostream* out, int64_t epoch_unix_ns);

  // On the file's own clock (snapshot::kTimeline). More than an hour before T can only be damage;
  // it must not become a huge unsigned number.
  uint64_t At(TimelineTime time) {
    const int64_t ns = std::max(time.ns, -kZeroNs);
    earliest_ns_ = std::min(earliest_ns_, ns);
    return static_cast<uint64_t>(ns + kZeroNs);
  }
  // Nothing will be written any more.
  void Finish();

 private:
  static constexpr int64_t kZeroNs = 3'600'000'000'000;  // what the file's own clock reads at T

  std::ostream* out_;
  std::streamoff zero_at_ = -1;  // where the file says what BOOTTIME is at T; -1: cannot go there
  int64_t earliest_ns_ = 0;      // of events before T
};

}  // namespace syncline::perfetto

#endif  // SYNCLINE_EXPORT_PERFETTO_FILE_CLOCK_H_

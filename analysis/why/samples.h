// SPDX-License-Identifier: Apache-2.0
// A rank's samples as series over time: of its driver, of its other threads, of the control group
// that throttles it. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_SAMPLES_H_
#define SYNCLINE_ANALYSIS_WHY_SAMPLES_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/full_group.h"
#include "analysis/why/model.h"

namespace syncline::analysis::why {

// How far a sample may lie outside of the time asked for: half of the slowest usual period.
inline constexpr int64_t kMarginNs = 25'000'000;

// States of a thread, as the kernel writes them: uninterruptible sleep; running, or ready to.
inline constexpr char kBlockedState = 'D';
inline constexpr char kRunningState = 'R';

// What grew, as read at an instant.
struct Reading {
  int64_t at_ns = 0;  // the middle of the bracket
  int64_t on_cpu_ns = 0;
  int64_t run_queue_ns = 0;
  int32_t cpu = -1;
  char state = 0;             // as evidence::ThreadSample has it; 0: not known
  int64_t major_faults = -1;  // likewise; -1: not known
  int64_t minor_faults = -1;  // likewise
  int64_t clock_khz = -1;     // likewise
};

// Between two readings of a driver.
struct Growth {
  OwnInterval interval;
  int64_t run_queue_ns = 0;
  int64_t throttled_ns = 0;  // of `run_queue_ns`, by the group's own count
  int64_t helpers_ns = 0;    // by how much more a compute thread of the process was kept waiting
  int64_t helpers_throttled_ns = 0;  // of `helpers_ns`
  int32_t cpu = -1;                  // where the driver ran when the interval ended
  double judged = 1;                 // the part of the interval that lies in judged steps
};

struct GroupFacts {
  const evidence::Group* group = nullptr;  // nullptr: no group throttled the rank
  int64_t quota_ns = -1;
  int64_t period_ns = 0;
  int64_t periods = 0;
  int64_t throttled_periods = 0;
};

// How many threads a process had, at least and at most.
struct ThreadCount {
  uint32_t least = 0;
  uint32_t most = 0;
};

struct RankSamples {
  std::vector<Reading> driver;  // of the time asked for
  std::vector<Growth> growths;  // between its neighbours
  GroupFacts group;
  int group_version = 0;  // of the groups that were seen; 0: none
  // Processor time of the process's other threads, but for those that carry out collectives, by
  // time: how many CPUs they kept busy on average. nullopt: not recorded, or not of all of those.
  std::optional<double> helper_cpus;
  std::optional<ThreadCount> threads;  // nullopt: not recorded
  bool measured() const { return growths.size() >= 2; }
};

// `within`: readings outside of it are not used. `worker_tids`: threads that carry out collectives,
// which are no compute threads.
RankSamples SamplesOf(const RankInput& rank, int32_t driver_tid, const OwnInterval& within,
                      std::span<const int32_t> worker_tids);

// The part of `steps` between the first reading of the driver and its last one, 0 to 1.
double SampledPart(std::span<const OwnInterval> steps, std::span<const Reading> driver);

// Fills Growth::judged. `steps`: in order, apart from each other.
void SetJudged(std::span<const OwnInterval> steps, std::vector<Growth>* growths);

// Whether readings say in which state the thread was: nine of ten or more.
bool StatesKnown(std::span<const Reading> readings);

// What was read from storage for a recorded process, between its first and its last sample in
// `within`. nullopt: not two samples say it.
struct BytesRead {
  int64_t bytes = 0;
  int64_t time_ns = 0;
};
std::optional<BytesRead> BytesReadOf(const evidence::Evidence& evidence, uint32_t process,
                                     const OwnInterval& within);

// Of the control groups that may limit a process's memory, the one that was full most often between
// its first and its last sample in `within`. nullopt: none was.
std::optional<FullGroup> FullGroupOf(const evidence::Evidence& evidence, uint32_t process,
                                     const OwnInterval& within);

// All readings of a thread, by time.
std::vector<Reading> ReadingsOf(const evidence::Evidence& evidence, uint32_t thread);

// What has grown until `at_ns`, between readings in proportion; outside of them as at the ends.
// `readings`: of R, which has `at_ns` and grows in `field`; by time; not empty.
template <class Readings, class R>
int64_t ValueAt(const Readings& readings, int64_t R::*field, int64_t at_ns) {
  const auto after =
      std::upper_bound(readings.begin(), readings.end(), at_ns,
                       [](int64_t at, const R& reading) { return at < reading.at_ns; });
  if (after == readings.begin()) return readings.front().*field;
  const R& before = *(after - 1);
  if (after == readings.end() || after->at_ns == before.at_ns) return before.*field;
  const double part =
      static_cast<double>(at_ns - before.at_ns) / static_cast<double>(after->at_ns - before.at_ns);
  return before.*field +
         static_cast<int64_t>(part * static_cast<double>((*after).*field - before.*field));
}

// By how much it has grown in that time; what shrinks has not.
template <class R>
int64_t GrownIn(const std::vector<R>& readings, int64_t R::*field, const OwnInterval& within) {
  return std::max<int64_t>(
      0, ValueAt(readings, field, within.end_ns) - ValueAt(readings, field, within.begin_ns));
}

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_SAMPLES_H_

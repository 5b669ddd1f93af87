// SPDX-License-Identifier: Apache-2.0
// When a node's threads ran, were ready to run, or slept, as its scheduler traced it: known before
// the events are walked. Each thread's states are a lane of the group "scheduling" of its process;
// what is lost of the trace is a hole of that group.
//
// Thread-safety: plain values; one thread.
#ifndef SYNCLINE_TIMELINE_SCHEDULING_SERIES_H_
#define SYNCLINE_TIMELINE_SCHEDULING_SERIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/identity.h"
#include "common/loss.h"
#include "timeline/series_place.h"
#include "timeline/sink.h"

namespace syncline::timeline {

class Emitter;

inline constexpr uint32_t kNoName = 0xffffffff;

// It paused, was ready, then ran, at once one behind the other; any of them may be missing (0 ns).
struct ScheduledTurn {
  struct Taker {
    uint32_t who = kNoName;  // index into SchedulingSeries::names
    int64_t ns = 0;
  };
  int64_t until_ns = 0;  // of the node's trace clock: it stopped running
  int64_t ran_ns = 0;
  int64_t ready_ns = 0;
  int64_t pause_ns = 0;
  ThreadState::State pause = ThreadState::State::kAsleep;
  int32_t cpu = -1;
  uint32_t waker = kNoName;  // as Taker::who
  uint32_t first_taker = 0;  // [first_taker, first_taker + takers) of SchedulingSeries::takers
  uint8_t takers = 0;
};

struct ScheduledLane {
  ProcessKey process;  // key.node is filled in by the builder
  int32_t tid = 0;     // as the timeline's own tracks call it
  std::string name;
  std::vector<ScheduledTurn> turns;  // by time
};

struct SchedulingSeries {
  std::vector<std::string> names;  // who had a CPU, or woke a thread
  std::vector<ScheduledTurn::Taker> takers;
  std::vector<ScheduledLane> threads;
  std::vector<Loss> losses;  // of all threads
};

void PushScheduling(const SchedulingSeries& series, const SeriesPlace& place, Emitter* emitter);

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_SCHEDULING_SERIES_H_

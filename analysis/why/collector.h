// SPDX-License-Identifier: Apache-2.0
// Keeps, while the timeline streams by, what `syncline why` is made of: tasks of threads that
// launch collectives, step optimizers or carry collectives out, in their own clock; holes; and who
// the processes are.
//
// Memory: that of all tasks, packed (task_spans.h), until Take(), which drops the threads that
// matter to no one; and of one thread at a time its tasks unpacked. Thread-safety: one thread.
#ifndef SYNCLINE_ANALYSIS_WHY_COLLECTOR_H_
#define SYNCLINE_ANALYSIS_WHY_COLLECTOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/why/model.h"
#include "timeline/sink.h"

namespace syncline::analysis::why {

struct CollectedThread {
  int32_t tid = 0;
  TaskSpans spans;  // by begin; of one begin, the outer first
  std::vector<timeline::Interval> holes;
  uint64_t launches = 0;
  uint64_t steps = 0;
};

struct CollectedProcess {
  uint32_t node = 0;
  ProcessKey key;
  std::map<std::string, std::string> facts;  // of its track: "job", "rank", "command line"
  std::vector<timeline::Interval> holes;     // with those of its node
  std::vector<CollectedThread> threads;      // that matter
  std::vector<std::string> accelerators;     // initialised
  std::vector<PlaceSample> places;           // by time
  // Of all its threads: tasks whose end was recorded, without marks of ours and of Python's, and
  // when the last of them ended, in the node's clock; optimizer's steps and launches among them.
  uint64_t calls = 0;
  std::optional<int64_t> last_call_ns;
  uint64_t ended_steps = 0;
  uint64_t ended_launches = 0;
  uint64_t launches() const;
  uint64_t steps() const;
};

struct Collected {
  std::vector<std::string> names;  // of all tasks; names[0] is ""
  std::vector<CollectedProcess> processes;
};

class Collector final : public timeline::SpanSink {
 public:
  void OnText(timeline::TextId id, std::string_view text) override;
  void OnTrack(const timeline::Track& track) override;
  void OnSpanEnd(const timeline::Span& span) override;
  void OnHole(const timeline::Hole& hole) override;

  // Once, after everything was pushed.
  Collected Take();

 private:
  struct Thread {
    timeline::TrackId process = timeline::kNoTrack;
    bool matters = false;
    uint64_t calls = 0;
    int64_t last_call_ns = 0;
    uint64_t ended_steps = 0;
    uint64_t ended_launches = 0;
    bool in_order = true;  // its spans are, and packed
    CollectedThread collected;
  };

  // Puts the spans of a thread in order, of which no more are to be expected.
  static void Settle(Thread* thread);
  NameId ShapeOf(const timeline::Span& span);
  void Count(const timeline::Span& span, uint8_t roles, Thread* thread) const;

  std::vector<std::string> texts_{""};
  std::vector<uint8_t> roles_{0};  // beside texts_
  std::vector<bool> executions_{false};
  std::vector<bool> marks_{false};
  std::map<std::string, NameId> shapes_;  // from 1 on; they get places behind texts_ in the end
  std::map<timeline::TrackId, Thread> threads_;
  std::vector<Thread*> of_this_node_;  // the threads of the node that is streaming by
  std::map<timeline::TrackId, CollectedProcess> processes_;
  std::map<timeline::TrackId, uint32_t> nodes_;
  std::map<uint32_t, std::vector<timeline::Interval>> node_holes_;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_COLLECTOR_H_

// SPDX-License-Identifier: Apache-2.0
// Which of oneDNN's primitives ran under which task, in which implementation, on which data, and
// which reorders (changes of the data's layout) ran between them.
//
// Of a primitive counts the time of the thread that executes it. Parts that it gives to helper
// threads are primitives, too: where a process has primitives in other tasks at all, those of
// threads that have none such are taken for parts, and counted apart.
#ifndef SYNCLINE_ANALYSIS_PRIMITIVES_H_
#define SYNCLINE_ANALYSIS_PRIMITIVES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/onednn.h"
#include "common/identity.h"
#include "timeline/sink.h"

namespace syncline::analysis {

// On all nodes: of one description under one task.
struct PrimitiveTotal {
  std::string task;           // the innermost around it, numbers shown as "#"; empty: none
  PrimitiveDescription what;  // where it is not described, its kind alone
  uint64_t calls = 0;
  int64_t total_ns = 0;
};

// Reorders of one description under one task, that ran between the same two primitives of their
// thread: each named by the task around it, else by its kind; empty: none was recorded there.
struct ReorderTotal {
  std::string task;
  PrimitiveDescription what;
  std::string before;
  std::string after;
  uint64_t calls = 0;
  int64_t total_ns = 0;
};

struct PrimitiveProcess {
  uint32_t node = 0;  // index into Report::nodes
  std::string name;   // as its track is called
  uint64_t calls = 0;
  int64_t total_ns = 0;
  int64_t reorder_ns = 0;    // of it
  int64_t reference_ns = 0;  // of it: in implementations that are not made to be fast
  std::map<std::string, int64_t> by_set_ns;  // by the instruction set that is named; "": none is
  uint64_t not_described = 0;                // of the calls
  uint64_t helper_parts = 0;                 // not among the calls, nor in the times
  uint64_t not_whole = 0;                    // cut off or hit by a loss; not among the calls
  uint64_t made = 0;  // primitives that were made, or looked up in oneDNN's cache
  int64_t make_ns = 0;
};

// The same work in other implementations on other processes.
struct ImplementationDifference {
  std::string task;
  PrimitiveDescription what;  // without implementation and layouts
  int64_t total_ns = 0;       // of all processes
  struct Side {
    std::vector<std::string> implementations;
    std::vector<std::string> processes;
  };
  std::vector<Side> sides;  // two or more
};

struct PrimitiveReport {
  std::vector<PrimitiveProcess> processes;            // that have any
  std::vector<PrimitiveTotal> totals;                 // the largest first
  std::vector<ReorderTotal> reorders;                 // the largest first
  std::vector<ImplementationDifference> differences;  // the largest first
};

// Memory: what the report has, and the primitives of tasks that are open. Thread-safety: one
// thread.
class PrimitiveSink final : public timeline::SpanSink {
 public:
  PrimitiveSink() = default;
  PrimitiveSink(const PrimitiveSink&) = delete;  // it points into itself
  PrimitiveSink& operator=(const PrimitiveSink&) = delete;
  void OnText(timeline::TextId id, std::string_view text) override;
  void OnTrack(const timeline::Track& track) override;
  void OnSpanEnd(const timeline::Span& span) override;

  // Once, after everything was pushed.
  PrimitiveReport Take();

 private:
  struct Primitive {
    uint16_t depth = 0;
    bool resolved = false;  // `task` is known
    timeline::TextId kind = timeline::kNoText;
    timeline::TextId description = timeline::kNoText;
    timeline::TextId task = timeline::kNoText;
    TimelineTime begin;
    TimelineTime end;
    int64_t self_ns = 0;
  };
  struct Sum {
    uint64_t calls = 0;
    int64_t total_ns = 0;
  };
  // task, kind, description
  using RowKey = std::tuple<timeline::TextId, timeline::TextId, timeline::TextId>;
  using ReorderKey = std::tuple<RowKey, timeline::TextId, timeline::TextId>;  // before, after
  struct Reorder {
    RowKey row;
    timeline::TextId before = timeline::kNoText;
    int64_t self_ns = 0;
  };
  struct Thread {
    size_t process = 0;
    bool in_tasks = false;  // a primitive was in another task
    uint64_t calls = 0;
    std::deque<Primitive> open;                 // by end; those at its begin wait for their task
    timeline::TextId last = timeline::kNoText;  // the newest primitive but for reorders
    std::vector<Reorder> pending;               // behind `last`
    std::map<RowKey, Sum> rows;
    std::map<ReorderKey, Sum> reorders;
  };
  struct Process {
    PrimitiveProcess values;
    bool in_tasks = false;  // any of its threads
    std::map<RowKey, Sum> rows;
  };

  static void AddTo(const Sum& more, Sum* sum);
  static timeline::TextId DescriptionOf(const timeline::Span& span);
  void Resolve(const timeline::Span& span, Thread* thread) const;
  void Drain(Thread* thread);
  void Add(const Primitive& primitive, Thread* thread);
  static void EndReorders(timeline::TextId after, Thread* thread);
  void JoinThreads(std::map<ReorderKey, Sum>* reorders);
  PrimitiveDescription Describe(const RowKey& row) const;

  bool any_ = false;  // a domain of oneDNN's was seen
  timeline::TextId reorder_ = timeline::kNoText;
  std::vector<std::string> texts_{""};
  std::vector<uint8_t> kinds_{0};  // beside texts_: what a domain of this name holds
  std::vector<Process> processes_;
  std::map<timeline::TrackId, size_t> process_tracks_;
  std::deque<Thread> threads_;     // addresses are kept
  std::vector<Thread*> by_track_;  // nullptr: no thread
};

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_PRIMITIVES_H_

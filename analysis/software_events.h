// SPDX-License-Identifier: Apache-2.0
// What the kernel did to the threads under each task: page faults, switches and changes of
// processor (evidence/software_events.h), each counted for the innermost task that was open on its
// thread at its time.
//
// Of minor faults each so many are noted, and a note stands for all since the one before. Nothing
// is projected: where watching ended within the window, or records were lost, all is of the time
// until then (SoftwareNode::table_ns).
#ifndef SYNCLINE_ANALYSIS_SOFTWARE_EVENTS_H_
#define SYNCLINE_ANALYSIS_SOFTWARE_EVENTS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "common/identity.h"
#include "evidence/code_samples.h"
#include "timeline/sink.h"

namespace syncline::analysis {

// Of events of one kind.
struct SoftwareCount {
  double count = 0;
  double half_width = 0;  // by how much the choice of what is noted may be wrong; 0: exact
  double away_ns = 0;     // of switches: until the thread ran again, added up
};

// Of what a thread did, or had done to it.
enum class TaskWhere : uint8_t {
  kTask,
  kOutside,       // no task was open on the thread
  kWithoutTasks,  // the thread has no tasks at all: helpers, pools of libraries
};

struct SoftwareTask {
  using Where = TaskWhere;
  Where where = Where::kTask;
  std::string domain;
  std::string name;    // numbers in it shown as "#"
  uint64_t calls = 0;  // while the thread was watched; 0 where there is no task
  std::array<SoftwareCount, evidence::kSoftwareKinds> kinds;

  const SoftwareCount& Of(evidence::SoftwareKind kind) const {
    return kinds[static_cast<size_t>(kind)];
  }
};

// Of a node whose threads were watched.
struct SoftwareNode {
  uint32_t node = 0;        // index into Report::nodes
  bool kernel = false;      // faults in the kernel's own work for a thread, too
  int64_t watched_ns = -1;  // of `all_ns`; -1: the agent did not finish
  int64_t all_ns = 0;
  int64_t cost_ns = 0;   // to the threads, by the agent's measure of one
  uint64_t lost = 0;     // records
  int64_t table_ns = 0;  // of the window from its begin on: what tasks have is of that time
  // The kernel's own counts, of the threads that lived until the end.
  std::array<uint64_t, evidence::kSoftwareKinds> kernels{};  // of kMoved: 0, there is none
};

struct SoftwareReport {
  std::vector<SoftwareNode> nodes;
  std::vector<SoftwareTask> tasks;  // most faults first, then most switches
};

// One node's, and the part that counts: [begin_ns, end_ns) of the node's trace clock.
struct SoftwareInput {
  uint32_t node = 0;
  const evidence::CodeSamples* code = nullptr;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// A part of HotSink, which is given the timeline. Not copied: it points into itself.
class SoftwarePlaces {
 public:
  SoftwarePlaces() = default;
  SoftwarePlaces(const SoftwarePlaces&) = delete;
  SoftwarePlaces& operator=(const SoftwarePlaces&) = delete;
  SoftwarePlaces(SoftwarePlaces&&) = default;  // what maps and vectors hold stays where it is

  // `input.code` is only read here.
  void Add(const SoftwareInput& input);
  void OnTrack(const timeline::Track& track);
  void OnSpanEnd(const timeline::Span& span);
  // `texts`: by TextId.
  SoftwareReport Take(const std::vector<std::string>& texts) const;

 private:
  struct Placed {
    int64_t at_ns = 0;
    evidence::SoftwareKind kind = evidence::SoftwareKind::kMinorFault;
    double count = 0;
    double half_width_squared = 0;
    double away_ns = 0;
    uint16_t depth = 0;  // of the innermost task that was open
    timeline::TextId category = timeline::kNoText;
    timeline::TextId name = timeline::kNoText;  // kNoText: none was
  };
  struct Thread {
    bool has_tasks = false;
    int64_t from_ns = 0;
    int64_t until_ns = 0;
    std::vector<Placed> events;                    // by time
    std::unordered_map<uint64_t, uint64_t> calls;  // by category and name
  };

  std::vector<SoftwareNode> nodes_;
  double note_max_ = 64;  // minor faults that a note stands for: the agent's first period, or more
  std::map<ThreadKey, Thread> threads_;
  std::vector<Thread*> by_track_;
};

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_SOFTWARE_EVENTS_H_
